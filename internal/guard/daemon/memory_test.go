package daemon

import (
	"runtime/metrics"
	"testing"
)

// The runtime may keep a few megabytes whatever it is asked; a burst is more.
func TestMemoryIsGivenBack(t *testing.T) {
	taken := func() uint64 { // by objects, dead ones too, and by what is free
		s := []metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64() + s[1].Value.Uint64()
	}
	before := taken()
	burst := make([][]byte, 64)
	for i := range burst {
		burst[i] = make([]byte, 1<<20)
	}
	clear(burst)
	var m memory
	for taken() > before+16<<20 {
		m.tidy() // it acts once there was no collection since the last look
	}
}

// A process with much in use does not collect all of it every second for the few
// megabytes that its requests leave: that took a tenth of a processor for 500 MB.
func TestCollectionsAreWorthIt(t *testing.T) {
	for _, c := range []struct {
		free, used uint64
		want       bool
	}{{1 << 20, 0, false}, {2 << 20, 0, true}, {2 << 20, 16 << 20, true}, {3 << 20, 32 << 20, false}, {4 << 20, 32 << 20, true}, {40 << 20, 500 << 20, false}, {63 << 20, 500 << 20, true}} {
		if got := worth(c.free, c.used); got != c.want {
			t.Errorf("%d bytes free and %d in use: %v", c.free, c.used, got)
		}
	}
}
