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
