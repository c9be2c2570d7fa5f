package wire

import (
	"io"
	"sync"
)

const (
	aheadBlock  = 64 << 10 // bytes made at a time
	aheadBlocks = 4        // made and not yet sent
	// aheadFrom is the size from which a body is made ahead of being sent, bytes.
	aheadFrom = 1 << 20
)

// ahead reads a body a few blocks ahead, so that a long prompt is made while
// what comes before it is on its way. Close ends it, soon and not at once.
type ahead struct {
	full chan block
	free chan []byte
	stop chan struct{}
	once sync.Once
	cur  block  // given out in part
	left []byte // of cur
}

type block struct {
	p   []byte
	err error
}

func newAhead(src io.Reader) *ahead {
	a := &ahead{
		full: make(chan block, aheadBlocks), free: make(chan []byte, aheadBlocks),
		stop: make(chan struct{}),
	}
	for range aheadBlocks {
		a.free <- make([]byte, aheadBlock)
	}
	go a.fill(src)
	return a
}

func (a *ahead) fill(src io.Reader) {
	for {
		var p []byte
		select {
		case p = <-a.free:
		case <-a.stop:
			return
		}
		n, err := io.ReadFull(src, p)
		if err == io.ErrUnexpectedEOF {
			err = io.EOF
		}
		a.full <- block{p[:n], err} // there is room for every block
		if err != nil {
			return
		}
	}
}

func (a *ahead) Read(p []byte) (int, error) {
	for len(a.left) == 0 {
		if a.cur.err != nil {
			return 0, a.cur.err
		}
		if a.cur.p != nil {
			a.free <- a.cur.p[:aheadBlock]
		}
		select {
		case a.cur = <-a.full:
			a.left = a.cur.p
		case <-a.stop:
			return 0, io.ErrClosedPipe
		}
	}
	n := copy(p, a.left)
	a.left = a.left[n:]
	return n, nil
}

// Close implements [io.Closer].
func (a *ahead) Close() error {
	a.once.Do(func() { close(a.stop) })
	return nil
}
