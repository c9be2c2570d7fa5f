package gateway

import "sync"

// buffers are what chunks lie in between being read and being parsed. One that
// is given back is the first to be used again, for whichever connection.
//
// The lock makes each use of a buffer whole. Whether the buffer still holds
// what its user has put there is a question of when it is given back.
type buffers struct {
	early bool // with fault EarlyGive: given back as soon as a chunk is queued

	mu   sync.Mutex
	free []*buffer
}

type buffer struct {
	text  [chunkSize]byte
	given uint64 // how often it has been handed out
}

// view is a chunk in a buffer.
type view struct {
	buf   *buffer
	n     int
	given uint64
}

// fill puts a chunk into a buffer that nobody uses.
func (p *buffers) fill(text []byte) view {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b *buffer
	if n := len(p.free); n > 0 {
		b = p.free[n-1]
		p.free = p.free[:n-1]
	} else {
		b = new(buffer)
	}
	b.given++
	return view{buf: b, n: copy(b.text[:], text), given: b.given}
}

// text is what the buffer holds now where the chunk was put; same says that it
// has not been handed out again since.
func (p *buffers) text(v view) (text []byte, same bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]byte(nil), v.buf.text[:v.n]...), v.buf.given == v.given
}

// give makes the buffer of a chunk free.
func (p *buffers) give(v view) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, v.buf)
}
