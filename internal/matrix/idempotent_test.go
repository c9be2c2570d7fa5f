package matrix

import (
	"context"
	"testing"
)

// A service that repeats its answers by request id, within a tenant, is accused
// of nothing, and the run still tells that tenants are kept apart.
func TestIdempotentByRequestID(t *testing.T) {
	table, err := Run(context.Background(), Options{
		Trials: 2, Faults: []string{NoFault + ":idempotent"}, Probes: pick(t, "ids"), Seed: 5000, Lab: mini(),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range table.Cells {
		if c.Found.Count > 0 || c.Unsure > 0 {
			t.Errorf("%s: %v, %d inconclusive of %d", c.Fault, c.Kinds, c.Unsure, c.Trials)
		}
	}
}
