package canary

import "sync"

const (
	// markEvery is how many words lie between waymarks, on average.
	markEvery = 1 << 10
	// markSlots is how many waymarks are kept: the walks of a few canaries of
	// a million words, some 200 kB.
	markSlots = 1 << 12
)

// waymarks remembers states that walks back have passed, and whose they were.
// Without it, an answer made of many small pieces from deep inside a long
// canary would cost a full walk for each of them. It changes no result.
type waymarks struct {
	mu    sync.Mutex
	slots []waymark // by the low bits of the tail; made on first use
}

// waymark is a state at a place in a canary; while walking, at is the number
// of steps after which it was passed.
type waymark struct {
	state state
	id    ID
	at    int
	set   bool
}

func (w *waymarks) get(s state) (id ID, at int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.slots == nil {
		return 0, 0, false
	}
	m := &w.slots[s.tail%markSlots]
	return m.id, m.at, m.set && m.state == s
}

// put sets the waymarks passed on a walk of the given length from id's beginning.
func (w *waymarks) put(passed []waymark, id ID, length int) {
	if len(passed) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.slots == nil {
		w.slots = make([]waymark, markSlots)
	}
	for _, m := range passed {
		w.slots[m.state.tail%markSlots] = waymark{m.state, id, length - m.at, true}
	}
}
