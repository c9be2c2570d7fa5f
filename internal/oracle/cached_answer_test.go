package oracle_test

import (
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// A gateway that says of an answer to one tenant's prompt that it has kept it,
// where only another has sent that prompt, says that it keeps them for all.
func TestAnswersThatTheTargetSaysItHasKept(t *testing.T) {
	for name, c := range map[string]struct {
		hit, miss string // headers
		own       bool   // it was the same tenant who had sent it
		found     bool
	}{
		"said":             {"Cf-Aig-Cache-Status: HIT\n", "Cf-Aig-Cache-Status: MISS\n", false, true},
		"said in words":    {"Date: now\nX-Portkey-Cache-Status: SEMANTIC HIT\n", "", false, true},
		"said by standard": {"Cache-Status: gateway; hit; ttl=3\n", "Cache-Status: gateway; fwd=miss\n", false, true},
		"said of all":      {"X-Cache: HIT\n", "X-Cache: HIT\n", false, false},
		"not said":         {"X-Cache: MISS\n", "X-Cache: MISS\n", false, false},
		"another word":     {"X-Cache: white\n", "", false, false},
		"another header":   {"X-Song: HIT\n", "", false, false},
		"its own":          {"X-Cache: HIT\n", "", true, false},
	} {
		w := newWorld(t)
		w.served(0, "content", "noted")
		tenant := 1
		if c.own {
			tenant = 0
		}
		hit := w.served(tenant, "content", "noted", "header", c.hit)
		hit.Arm, hit.Group, hit.Holds = wire.ArmHit, 1, []int{0}
		miss := w.served(tenant, "content", "noted", "header", c.miss)
		miss.Arm, miss.Group = wire.ArmMiss, 1
		if !c.found {
			w.expect(w.judge("sharing"))
			continue
		}
		j := w.judge("sharing")
		w.expect(j, "sharing 1/bob from 0/ada in , 0 words at 0")
		if !strings.Contains(j.Findings[0].Explain, "only ada has sent") {
			t.Errorf("%s: %q", name, j.Findings[0].Explain)
		}
	}
}
