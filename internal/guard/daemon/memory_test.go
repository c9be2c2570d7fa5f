package daemon

import (
	"runtime/metrics"
	"testing"
)

func TestMemoryIsGivenBack(t *testing.T) {
	free := func() uint64 {
		s := []metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	var m memory
	burst := make([][]byte, 64)
	for i := range burst {
		burst[i] = make([]byte, 1<<20)
	}
	clear(burst)
	for range 10 { // until two looks see no collection between them
		m.tidy()
		if m.tidy(); free() < idle {
			return
		}
	}
	t.Errorf("%d bytes are free and not given back", free())
}
