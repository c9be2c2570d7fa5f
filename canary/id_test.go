package canary

import (
	"testing"

	"pgregory.net/rapid"
)

func TestIDParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := rapid.IntRange(0, MaxRun).Draw(t, "run")
		tenant := rapid.IntRange(0, MaxTenant).Draw(t, "tenant")
		seq := rapid.IntRange(0, MaxSeq).Draw(t, "seq")
		id := MakeID(run, tenant, seq)
		if id.Run() != run || id.Tenant() != tenant || id.Seq() != seq || id>>idBits != 0 {
			t.Fatalf("MakeID(%d, %d, %d) = %v", run, tenant, seq, id)
		}
	})
}

func TestIDOutOfRange(t *testing.T) {
	for _, p := range [][3]int{{-1, 0, 0}, {MaxRun + 1, 0, 0}, {0, -1, 0}, {0, MaxTenant + 1, 0}, {0, 0, -1}, {0, 0, MaxSeq + 1}} {
		wantPanic(t, func() { MakeID(p[0], p[1], p[2]) })
	}
	c := New(testKey(1))
	wantPanic(t, func() { c.Token(1 << idBits) })
	wantPanic(t, func() { c.Nonce(1<<idBits, 0) })
	wantPanic(t, func() { c.Nonce(0, -1) })
	wantPanic(t, func() { c.Words(1<<idBits, 0, 1) })
}
