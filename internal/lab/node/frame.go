package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/pagetag"
)

// Frame is what travels on a link: an event of the handoff with the data that
// belongs to it, or a node's statistics.
type Frame struct {
	Event    handoff.Event
	Sampling Sampling     // of Submit
	Of       Origin       // of Submit
	Cached   int          // of Meta, Token and Done: tokens of the prompt that were not computed
	Mark     pagetag.Mark // of Page
	Data     []byte       // of Submit: the prompt's tokens; of Page: the page's bytes; of Meta: the checksum
	Stats    *Stats       // in place of an event
	Meet     string       // likewise: where the peer listens that prefill shall call
}

// Sampling is how the tokens of an answer are chosen.
type Sampling struct {
	Temperature float64
	Seed        uint64
}

// Stats is what a node says about itself.
type Stats struct {
	UsedPages     int // draining ones too
	DrainingPages int
	Running       int
	Waiting       int
	Failed        int64  // handoffs that did not end in a commit
	Epoch         uint64 // of the acquaintance with the other node; 0 while there is none
}

// Shape bounds what may stand in a frame. Both ends of a link have the same one.
type Shape struct {
	PageSize  int // tokens
	PageBytes int
	Context   int  // tokens
	Pages     int  // of the larger pool
	OneSided  bool // pages do not come as messages
}

// ErrFrame is wrapped by all errors about bytes that are not a frame.
var ErrFrame = errors.New("bad frame")

const (
	frameEvent = 1
	frameStats = 2
	frameMeet  = 3

	flagStop        = 1
	flagPlaceholder = 2
	flagSummed      = 4
	flagOK          = 8
	flagFlawed      = 16
	flags           = flagStop | flagPlaceholder | flagSummed | flagOK | flagFlawed

	headRoom  = 256 // bytes, more than the fixed fields of any event take
	maxNumber = math.MaxInt32
)

// maxBody is the longest body that a frame may have, in bytes.
func (s Shape) maxBody() int {
	return headRoom + max(s.PageBytes, s.Context+originMax, s.Pages*binary.MaxVarintLen32)
}

// appendFrame appends a frame with its length in front.
func appendFrame(b []byte, f *Frame) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	switch {
	case f.Stats != nil:
		b = appendStats(append(b, frameStats), f.Stats)
	case f.Meet != "":
		b = append(append(b, frameMeet), f.Meet...)
	default:
		b = appendEvent(append(b, frameEvent), f)
	}
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

func appendStats(b []byte, s *Stats) []byte {
	for _, v := range [...]int{s.UsedPages, s.DrainingPages, s.Running, s.Waiting, int(s.Failed)} {
		b = binary.AppendUvarint(b, uint64(v))
	}
	return binary.LittleEndian.AppendUint64(b, s.Epoch)
}

func appendEvent(b []byte, f *Frame) []byte {
	e := &f.Event
	var set byte
	for i, on := range [...]bool{e.Stop, e.Placeholder, e.Summed, e.OK, e.Flawed} {
		if on {
			set |= 1 << i
		}
	}
	b = append(b, byte(e.Kind), set, e.Token, byte(e.Finish), byte(e.Refusal.Reason))
	b = binary.AppendUvarint(b, uint64(e.Room))
	b = binary.AppendUvarint(b, e.Gen)
	for _, v := range [...]int{
		e.Tokens, e.MaxNew, e.Sent, e.Prompt, e.Made, e.Pos, e.Index, int(e.From), int(e.To),
		e.Refusal.Have, e.Refusal.Extra, e.Refusal.Limit, len(e.Pages),
	} {
		b = binary.AppendUvarint(b, uint64(v))
	}
	for _, page := range e.Pages {
		b = binary.AppendUvarint(b, uint64(page))
	}
	if e.Kind == handoff.Submit {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(f.Sampling.Temperature))
		b = binary.LittleEndian.AppendUint64(b, f.Sampling.Seed)
		b = f.Of.append(b)
	}
	if tellsCached(e.Kind) {
		b = binary.AppendUvarint(b, uint64(f.Cached))
	}
	if e.Kind == handoff.Page {
		mark := f.Mark.Bytes()
		b = append(b, mark[:]...)
	}
	return append(b, f.Data...)
}

// tellsCached reports whether frames of a kind say how much of the prompt was
// not computed.
func tellsCached(k handoff.Kind) bool {
	return k == handoff.Meta || k == handoff.Token || k == handoff.Done
}

// parseFrame reads the body of a frame. Data of the result is a part of body.
func parseFrame(body []byte, s Shape) (Frame, error) {
	r := reader{rest: body}
	switch kind := r.byte(); kind {
	case frameStats:
		st := r.stats()
		if r.err == nil && len(r.rest) != 0 {
			r.fail("%d bytes after statistics", len(r.rest))
		}
		return Frame{Stats: st}, r.err
	case frameMeet:
		if len(r.rest) == 0 || len(r.rest) > maxAddr {
			r.fail("an address of %d bytes", len(r.rest))
		}
		return Frame{Meet: string(r.rest)}, r.err
	case frameEvent:
		f := r.event(s)
		if r.err == nil {
			r.data(&f, s)
		}
		return f, r.err
	default:
		r.fail("type %d is not known", kind)
		return Frame{}, r.err
	}
}

// reader takes fields from the front of a body; after the first failure all
// that it yields is zero.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrFrame, fmt.Sprintf(format, args...))
	}
	r.rest = nil
}

func (r *reader) take(n int) []byte {
	if len(r.rest) < n {
		r.fail("it ends too early")
		return make([]byte, n)
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) byte() byte     { return r.take(1)[0] }
func (r *reader) uint64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

func (r *reader) uvarint(limit uint64) uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > limit {
		r.fail("a number is cut or above %d", limit)
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) int() int { return int(r.uvarint(maxNumber)) }

func (r *reader) stats() *Stats {
	return &Stats{
		UsedPages: r.int(), DrainingPages: r.int(), Running: r.int(), Waiting: r.int(),
		Failed: int64(r.uvarint(math.MaxInt64)), Epoch: r.uint64(),
	}
}

func (r *reader) event(s Shape) (f Frame) {
	e := &f.Event
	e.Kind = handoff.Kind(r.byte())
	set := r.byte()
	e.Stop, e.Placeholder = set&flagStop != 0, set&flagPlaceholder != 0
	e.Summed, e.OK, e.Flawed = set&flagSummed != 0, set&flagOK != 0, set&flagFlawed != 0
	e.Token, e.Finish = r.byte(), handoff.Finish(r.byte())
	e.Refusal.Reason = handoff.Reason(r.byte())
	e.Room, e.Gen = handoff.Room(r.uvarint(math.MaxUint64)), r.uvarint(math.MaxUint64)
	for _, p := range [...]*int{&e.Tokens, &e.MaxNew, &e.Sent, &e.Prompt, &e.Made, &e.Pos, &e.Index} {
		*p = r.int()
	}
	e.From, e.To = int32(r.int()), int32(r.int())
	e.Refusal.Have, e.Refusal.Extra, e.Refusal.Limit = r.int(), r.int(), r.int()
	e.Pages = r.pages(s)
	if e.Kind == handoff.Submit {
		f.Sampling = Sampling{math.Float64frombits(r.uint64()), r.uint64()}
		f.Of = r.origin()
	}
	if tellsCached(e.Kind) {
		f.Cached = r.int()
	}
	if e.Kind == handoff.Page {
		f.Mark = pagetag.Mark{Owner: r.uint64(), Place: r.uint64()}
	}
	if r.err == nil && (!e.Kind.Valid() || set > flags || !e.Finish.Valid() || !e.Refusal.Valid() || e.Room == 0) {
		r.fail("event %v of room %d has a field that is not known", e.Kind, e.Room)
	}
	return f
}

func (r *reader) pages(s Shape) []int32 {
	n := r.int()
	if n > s.Pages || n > len(r.rest) {
		r.fail("%d pages where the pool has %d", n, s.Pages)
	}
	if r.err != nil || n == 0 {
		return nil
	}
	pages := make([]int32, n)
	for i := range pages {
		pages[i] = int32(r.uvarint(uint64(s.Pages - 1)))
	}
	return pages
}

// data takes what is left as the data that the kind of event calls for.
func (r *reader) data(f *Frame, s Shape) {
	n := len(r.rest)
	switch k := f.Event.Kind; {
	case k == handoff.Page && s.OneSided:
		r.fail("a page, where prefill writes pages itself")
	case k == handoff.Page && n != s.PageBytes:
		r.fail("a page of %d bytes where a page has %d", n, s.PageBytes)
	case k == handoff.Submit && n != 0 && n != f.Event.Tokens:
		r.fail("a prompt of %d bytes that says it has %d tokens", n, f.Event.Tokens)
	case k == handoff.Meta && f.Event.Summed != (n == sumBytes) || k == handoff.Meta && !f.Event.Summed && n != 0:
		r.fail("a checksum of %d bytes where one has %d", n, sumBytes)
	case k != handoff.Page && k != handoff.Submit && k != handoff.Meta && n != 0:
		r.fail("%d bytes after event %v", n, k)
	case n != 0:
		f.Data = r.rest
	}
}
