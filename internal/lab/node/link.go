package node

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// Inbound is a frame that has arrived, or the end of the link it came from.
type Inbound struct {
	From  handoff.Role
	Frame Frame
	Err   error // the link has ended; no frame comes with it and none after it

	link *Link
	buf  []byte
}

// Release gives the frame's page buffer back; its Data must not be used after.
func (in *Inbound) Release() {
	if in.buf != nil {
		in.link.bodies <- in.buf
		in.buf, in.Frame.Data = nil, nil
	}
}

// On reports whether the frame, or the end, is that of a link.
func (in *Inbound) On(l *Link) bool { return in.link == l }

// inFlight is how many bytes of pages one end of a link holds at most while
// they wait for the wire, or for the node to store them.
const inFlight = 4 << 20

func buffers(pageBytes int) int { return min(max(inFlight/pageBytes, 4), 512) }

// Link carries frames to and from another role over a connection, in order.
//
// Sending never blocks, so two nodes that send to each other cannot lock up:
// small frames queue without limit (there are a few for each request under
// way), pages only while buffers are left.
type Link struct {
	peer   handoff.Role
	shape  Shape
	conn   net.Conn
	inbox  chan<- Inbound
	bodies chan []byte   // buffers for page frames that arrive
	pages  chan []byte   // buffers for page frames that leave
	done   chan struct{} // closed by Close
	wake   chan struct{} // something is queued

	mu    sync.Mutex
	queue [][]byte
	stats *Stats // the newest not yet sent: it goes out ahead of the queue
	once  sync.Once
	wg    sync.WaitGroup
}

// NewLink starts to carry frames over conn; what arrives goes to inbox. The
// link owns conn from here on. Close it to let its goroutines end.
func NewLink(conn net.Conn, peer handoff.Role, shape Shape, inbox chan<- Inbound) *Link {
	n := buffers(shape.PageBytes)
	l := &Link{
		peer: peer, shape: shape, conn: conn, inbox: inbox,
		bodies: make(chan []byte, n), pages: make(chan []byte, n),
		done: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	for range n { // nil stands for a buffer that has not been needed yet
		l.bodies <- nil
		l.pages <- nil
	}
	l.wg.Add(2)
	go l.read()
	go l.write()
	return l
}

// Close ends the link at once; frames still queued are lost.
func (l *Link) Close() {
	l.shut()
	l.wg.Wait()
}

func (l *Link) shut() {
	l.once.Do(func() {
		close(l.done)
		l.conn.Close()
	})
}

// Send queues a frame that carries no page.
func (l *Link) Send(f *Frame) { l.push(appendFrame(nil, f)) }

// SendPage queues a page frame, whose data is copied, or says that no buffer
// is left: then Buffers has to become readable first.
func (l *Link) SendPage(f *Frame) bool {
	select {
	case buf := <-l.pages:
		l.push(appendFrame(buf[:0], f))
		return true
	default:
		return false
	}
}

// Report queues statistics in place of older ones that still wait.
func (l *Link) Report(s Stats) {
	l.mu.Lock()
	l.stats = &s
	l.mu.Unlock()
	l.nudge()
}

func (l *Link) push(b []byte) {
	l.mu.Lock()
	l.queue = append(l.queue, b)
	l.mu.Unlock()
	l.nudge()
}

func (l *Link) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *Link) pop() (stats *Stats, queue [][]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stats, queue = l.stats, l.queue
	l.stats, l.queue = nil, nil
	return stats, queue
}

func (l *Link) write() {
	defer l.wg.Done()
	defer l.shut()
	w := bufio.NewWriterSize(l.conn, 64<<10)
	for {
		stats, queue := l.pop()
		if stats == nil && len(queue) == 0 {
			if w.Flush() != nil {
				return
			}
			select {
			case <-l.wake:
				continue
			case <-l.done:
				return
			}
		}
		if stats != nil {
			if _, err := w.Write(appendFrame(nil, &Frame{Stats: stats})); err != nil {
				return
			}
		}
		for _, b := range queue {
			if _, err := w.Write(b); err != nil {
				return
			}
			l.recycle(b)
		}
	}
}

// recycle returns the buffer of a page frame. Others are let go: a page frame
// is the only one whose fifth and sixth byte say event and Page.
func (l *Link) recycle(b []byte) {
	if b[4] == frameEvent && handoff.Kind(b[5]) == handoff.Page {
		l.pages <- b
	}
}

func (l *Link) read() {
	defer l.wg.Done()
	defer l.shut()
	r := bufio.NewReaderSize(l.conn, 64<<10)
	for {
		in, err := l.next(r)
		if err != nil {
			in = Inbound{From: l.peer, Err: err, link: l}
		}
		select {
		case l.inbox <- in:
		case <-l.done:
			if err == nil {
				continue // the next read fails
			}
			// The owner of the inbox may be gone: leave the news if there is room.
			select {
			case l.inbox <- in:
			default:
			}
		}
		if err != nil {
			return
		}
	}
}

func (l *Link) next(r *bufio.Reader) (Inbound, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Inbound{}, ended(err)
	}
	n := int(binary.LittleEndian.Uint32(head[:]))
	if n < 2 || n > l.shape.maxBody() {
		return Inbound{}, fmt.Errorf("%w: %d bytes long where at most %d can be", ErrFrame, n, l.shape.maxBody())
	}
	kind, err := r.Peek(2)
	if err != nil {
		return Inbound{}, ended(err)
	}
	in := Inbound{From: l.peer, link: l}
	var body []byte
	if kind[0] == frameEvent && handoff.Kind(kind[1]) == handoff.Page {
		if body, err = l.body(n); err != nil {
			return Inbound{}, err
		}
		in.buf = body
	} else {
		body = make([]byte, n)
	}
	if _, err := io.ReadFull(r, body); err != nil {
		return Inbound{}, ended(err)
	}
	in.Frame, err = parseFrame(body, l.shape)
	return in, err
}

// body waits for a page buffer: a node that does not keep up makes the sender wait.
func (l *Link) body(n int) ([]byte, error) {
	select {
	case buf := <-l.bodies:
		if cap(buf) < n {
			buf = make([]byte, n)
		}
		return buf[:n], nil
	case <-l.done:
		return nil, io.EOF
	}
}

// ended is io.EOF where the other end hung up, which also shows as a broken
// connection when something was on its way there.
func ended(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: the link ended inside it", ErrFrame)
	case errors.Is(err, io.ErrClosedPipe), errors.Is(err, net.ErrClosed), errors.Is(err, syscall.ECONNRESET):
		return io.EOF
	}
	return err
}
