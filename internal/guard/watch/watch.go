package watch

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/kvcanary/kvcanary/canary"
)

// Options says what answer is watched, and how.
type Options struct {
	Dialect string // "openai", "completions", "responses", "anthropic" or "ollama"
	Stream  bool   // events (text/event-stream) or a document a line; else one document
	Strict  bool   // hold text back until it is known to be no canary; else everything is released at once
	Failed  bool   // the status was no success: the answer is an error, and no finding for that

	Coders []*canary.Coder      // the keys whose canaries are looked for
	Own    func(canary.ID) bool // canaries that the request itself carried; nil for none
	// Text is asked once for each text of the answer, as its pieces stand one after
	// the other, and what it returns gets these, with the escapes of JSON. Both may
	// be nil. What is read this way holds nothing back.
	Text func(Channel) func([]byte)

	Counted int  // tokens of the prompt, as counted or bounded before; 0 if unknown, or if parts have no bound
	Exact   bool // Counted is a count
	Limit   int  // most tokens of a prompt; 0 if unknown

	MaxHeld     int // most bytes of a stream that are kept at once; 0 takes DefaultHeld
	MaxDocument int // most bytes of an answer that is no stream; 0 takes DefaultDocument
}

// Bounds of what is kept, bytes.
const (
	// DefaultHeld is for streams. An event with twenty alternatives for every
	// token has some 4 kB; eight words are hardly ever more than forty of these,
	// and a strand that does not go on is waited for no longer than until a
	// sixteenth of the bound is held.
	DefaultHeld = 4 << 20
	// DefaultDocument is for answers that are not streamed, which are kept whole.
	DefaultDocument = 16 << 20
)

// The kinds of finding.
const (
	Leak     = "leak"            // a canary that the request did not carry
	FailOpen = "fail_open"       // a prompt that was not read, or was refused, has been answered
	OverSize = "over_limit"      // the upstream says it has read more than the limit
	Trouble  = "error_in_answer" // an answer whose status was a success says that it is an error
	Broken   = "broken_stream"   // text after the end of an answer: whose it is cannot be told
	Unseen   = "unwatched"       // a part of the answer could not be watched
)

// Finding is something that an answer showed. It holds no text of the answer.
type Finding struct {
	Kind    string
	Channel Channel
	From    canary.ID // of a leak: the canary
	Token   bool      // of a leak: it was a short token
	Words   int       // of a leak: its longest run of words
	Explain string    // one line for people
	Stops   bool      // a strict watch ends the answer for it
}

// LeastHit is how many bytes any canary that can be found has at least: a token
// has 23, of which five may be cut off, and eight words have three letters each.
const LeastHit = 18

// maxFindings bounds how many are kept.
const maxFindings = 64

// Watch watches one answer. It is not safe for concurrent use.
type Watch struct {
	o        Options
	findings []Finding
	stopped  bool
	closed   bool
	raw      []*canary.Scanner // read each unit by itself
	where    Channel           // what raw reads

	walk     walker
	places   map[uint64]*strand
	order    []*strand
	keys     []uint64 // the place of each strand of order
	guess    int      // the strand that the next text belongs to, if this event is like the last
	waiting  []*strand
	used     []*strand // all that have begun, for the next answer
	spare    []*strand // those that the answer before has left
	round    int64
	event    int64   // events so far
	grown    int64   // pieces so far
	comments uint64  // the letters of the last comment
	likely   Channel // where the last words stood that may be canary, seven or more
	likelyAt int64   // and the event

	frame    framer
	form     form  // the event that came last, if the next may be like it
	limit    int64 // up to where the stream may be released, bytes
	most     int   // most bytes held at once
	blind    bool  // of an audit: there was more than is kept, only raw is read
	out      []byte
	plain    []byte             // a text without its escapes
	spaced   []byte             // a text with a blank behind it
	lost     map[uint64]bool    // places whose texts are in no strand
	full     int64              // event in which no strand could make room for another
	firsts   map[uint64]*strand // the first strand at each place but for its index
	aside    []byte             // comments that overtake what is held
	overtook bool               // the unit before did

	ended   bool // the answer has said that it ends
	errored bool // the answer has said that it is an error
	said    bool // the answer has said something
	judged  bool
	count   [counters]int
}

// New returns a watch of one answer.
func New(o Options) *Watch {
	w := new(Watch)
	w.begin(o)
	return w
}

// Write takes the next bytes of the answer. What it releases may go to the
// client and is valid until the next call. If stop is true the answer must end
// after that: with the dialect's error event where it is a stream.
func (w *Watch) Write(p []byte) (release []byte, stop bool) {
	if w.halted() || w.closed {
		return nil, w.halted()
	}
	w.frame.drop()
	switch {
	case w.blind:
		w.scanRaw(p)
		return p, false
	case !w.o.Stream:
		w.frame.add(p)
	default:
		w.frame.add(p)
		w.read()
	}
	return w.released(p)
}

// Close says that the upstream's answer has ended as it should. Where it has
// broken off, Close is not called, and what was held is never released.
func (w *Watch) Close() (release []byte, stop bool) {
	if w.halted() || w.closed {
		return nil, w.halted()
	}
	w.closed = true
	w.frame.drop()
	switch {
	case w.blind:
		w.stopRaw()
	case w.o.Stream:
		w.rest()
	default:
		w.whole()
	}
	w.settle()
	w.judge()
	return w.released(nil)
}

// released is what may go to the client after p has been taken.
func (w *Watch) released(p []byte) (release []byte, stop bool) {
	if !w.o.Strict {
		w.audit()
		return p, false
	}
	if len(w.frame.buf) > w.o.MaxHeld {
		w.overfull()
	}
	if w.closed && !w.stopped {
		w.limit = w.frame.end()
	}
	if w.stopped && !w.o.Stream {
		return nil, true
	}
	release = w.frame.release(w.limit)
	w.most = max(w.most, w.frame.held())
	if len(w.aside) > 0 {
		w.out = append(append(w.out[:0], w.aside...), release...)
		w.aside, release = w.aside[:0], w.out
	}
	return release, w.stopped
}

// overfull says so if too much is held.
func (w *Watch) overfull() {
	if !w.stopped && w.frame.end()-w.limit > int64(w.o.MaxHeld) {
		w.add(Finding{Kind: Unseen, Channel: Raw, Stops: true,
			Explain: fmt.Sprintf("more than %d bytes of the answer would have to be held before they can be judged", w.o.MaxHeld)})
	}
}

// audit forgets what has been read, and all of it if it is too much.
func (w *Watch) audit() {
	w.limit = w.frame.framed()
	if w.o.Stream {
		w.frame.release(w.limit)
	}
	w.most, w.aside = 0, w.aside[:0]
	if len(w.frame.buf) > w.o.MaxHeld {
		w.blind = true
		w.add(Finding{Kind: Unseen, Channel: Raw,
			Explain: fmt.Sprintf("the answer has a document of more than %d bytes: from there on it is looked at as it comes only", w.o.MaxHeld)})
		w.scanRaw(w.frame.buf[w.frame.out:])
		w.frame = framer{}
	}
}

// Headers takes the headers or the trailers of the answer.
func (w *Watch) Headers(h http.Header) (stop bool) {
	if shortHeaders(h) {
		return w.halted()
	}
	w.where = Header
	w.plain = w.plain[:0]
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if len(name) >= LeastHit {
			w.scanRaw([]byte(name))
			w.stopRaw()
		}
		for _, v := range h[name] {
			w.plain = append(append(w.plain, v...), ' ')
		}
	}
	w.scanRaw(w.plain) // one behind the other: a canary may stand in several
	w.stopRaw()
	w.where = Raw
	return w.halted()
}

// shortHeaders reports whether no canary has room in any name, nor in all that
// they say.
func shortHeaders(h http.Header) bool {
	all := 0
	for name, values := range h {
		if len(name) >= LeastHit {
			return false
		}
		for _, v := range values {
			all += len(v) + 1
		}
	}
	return all <= LeastHit
}

// Findings are what has been found so far, in the order in which it came.
func (w *Watch) Findings() []Finding { return slices.Clone(w.findings) }

// Held is how many bytes are held back now, and the most that ever were.
func (w *Watch) Held() (now, most int) { return w.frame.held(), w.most }

// Usage is what the upstream says it has counted, tokens; 0 where it said nothing.
func (w *Watch) Usage() (prompt, output int) {
	prompt, _ = w.prompt()
	return prompt, w.count[outputTokens]
}

// hit takes a canary that was found.
func (w *Watch) hit(h canary.Hit, at Channel) {
	if w.o.Own != nil && w.o.Own(h.ID) {
		return
	}
	if at == Raw && w.likelyAt == w.event && w.likely != "" {
		at = w.likely // it is what a strand was about to find
	}
	f := Finding{Kind: Leak, Channel: at, From: h.ID, Token: h.Form == canary.ShortToken, Words: h.Words, Stops: true}
	f.Explain = fmt.Sprintf("%d words in a row of canary %v, which the request did not carry", h.Words, h.ID)
	if f.Token {
		f.Explain = fmt.Sprintf("the token of canary %v, which the request did not carry", h.ID)
	}
	for i := range w.findings {
		g := &w.findings[i]
		if g.Kind != Leak || g.From != f.From || g.Token != f.Token || g.Channel != at && at != Raw && g.Channel != Raw {
			continue
		}
		if f.Words > g.Words {
			g.Words, g.Explain = f.Words, f.Explain
		}
		if g.Channel == Raw {
			g.Channel = at
		}
		w.stopped = true
		return
	}
	w.add(f)
}

// add keeps a finding, once.
func (w *Watch) add(f Finding) {
	w.stopped = w.stopped || f.Stops
	if len(w.findings) < maxFindings && !slices.ContainsFunc(w.findings, func(g Finding) bool { return g == f }) {
		w.findings = append(w.findings, f)
	}
}
