package daemon

import (
	"runtime/debug"
	"runtime/metrics"
)

// memory gives back to the system what a burst of requests has taken. The
// runtime does so only above the size that the heap may next grow to, and streams
// that are open allocate nothing, so that it would stay for as long as they do.
type memory struct {
	cycles uint64 // collections up to the last look
	kept   uint64 // free bytes that the runtime did not give back when it was asked to
}

// idle is from how many bytes on that are free, or not looked at since the last
// collection, it is worth another one; where more is in use, whose collection
// takes longer, an eighth of that.
const idle = 2 << 20

// worth reports whether it is worth a collection to give back bytes that are free
// where so many are in use.
func worth(free, used uint64) bool { return free >= max(idle, used/8) }

// tidy is to be called now and then. It does nothing while collections go on by
// themselves: what is free then is about to be used.
func (m *memory) tidy() {
	s := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	quiet := s[0].Value.Uint64() == m.cycles
	m.cycles = s[0].Value.Uint64()
	free := s[1].Value.Uint64()
	m.kept = min(m.kept, free)
	used := s[3].Value.Uint64()
	fresh := max(s[2].Value.Uint64(), used) - used
	if quiet && worth(free-m.kept+fresh, used) {
		debug.FreeOSMemory()
		metrics.Read(s)
		m.kept = s[1].Value.Uint64()
	}
}
