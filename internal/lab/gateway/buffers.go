package gateway

import "sync"

// buffers are what answers lie in between being read and being parsed, one for
// each answer. One that is given back is the first to be used again, for
// whichever connection.
//
// Locks make each use of a buffer whole. Whether anybody else uses it at the
// same time is a question of who gives it back, and how often.
type buffers struct {
	twice   bool // with fault GiveTwice: whoever cancels gives it back too
	numbers bool // with BufferGenerations: who uses it compares how often it has been handed out

	mu   sync.Mutex
	free []*buffer
}

// unread is how many bytes of an answer wait for a client that does not keep up.
const unread = 4096

type buffer struct {
	mu      sync.Mutex
	changed sync.Cond
	text    []byte // read and not parsed
	taken   uint64 // how often it has been handed out
}

// reading is one answer's use of a buffer.
type reading struct {
	*buffer
	taken  uint64
	strict bool // nobody uses it for whom it was not handed out last
	ended  bool // nothing more is put in
	left   bool // nobody takes out
}

// take hands out a buffer that nobody uses.
func (p *buffers) take() *reading {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := new(buffer)
	b.changed.L = &b.mu
	if n := len(p.free); n > 0 {
		b = p.free[n-1]
		p.free = p.free[:n-1]
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken++
	b.text = b.text[:0]
	b.changed.Broadcast() // to whoever uses it all the same
	return &reading{buffer: b, taken: b.taken, strict: p.numbers}
}

// give makes a buffer free.
func (p *buffers) give(r *reading) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, r.buffer)
}

// put adds what was read. It waits while there is much that was not parsed;
// false says that nobody will, or that the buffer is another's now.
func (r *reading) put(text []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.text) > unread && !r.left {
		r.changed.Wait()
	}
	if r.stale() {
		return false
	}
	r.text = append(r.text, text...)
	r.changed.Broadcast()
	return !r.left
}

// get takes out all that is there, and waits for something. more says that
// there was something, stale, that it is not to be used.
func (r *reading) get() (text []byte, stale, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.text) == 0 && !r.ended {
		r.changed.Wait()
	}
	if r.stale() {
		return nil, true, false
	}
	text = append(text, r.text...)
	r.text = r.text[:0]
	r.changed.Broadcast()
	return text, false, len(text) > 0
}

// stale says that the buffer was handed out again, where that is looked at.
func (r *reading) stale() bool { return r.strict && r.taken != r.buffer.taken }

// end says that nothing more is put in.
func (r *reading) end() { r.set(&r.ended) }

// leave says that nobody takes out.
func (r *reading) leave() { r.set(&r.left) }

func (r *reading) set(flag *bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*flag = true
	r.changed.Broadcast()
}
