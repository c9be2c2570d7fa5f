package guard

import (
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/kvcanary/kvcanary/internal/guard/shape"
	"github.com/kvcanary/kvcanary/internal/guard/watch"
)

// relay passes an answer on as it comes, as far as the watch lets it.
func (t *trip) relay(x *exchange) error {
	if err := checkAnswer(x.answer); err != nil {
		return err
	}
	t.by, t.streams = x.up, isStream(x.header)
	t.rec.Stream = t.streams
	h := t.w.Header()
	copyAnswer(h, x.header, "")
	t.look(x.answer)
	if t.watch != nil && t.watch.Headers(h) {
		return t.stopped()
	}
	t.head(h, x.answer)
	if t.streams {
		t.commit(x.status)
		if err := t.flush(); err != nil {
			return err
		}
	}
	for {
		switch err := t.step(x); err {
		case nil:
		case io.EOF:
			return t.finish(x)
		default:
			return err
		}
	}
}

// streamRoom is how much of a stream is passed on at once, bytes. With what a
// watch holds back it fits the buffer that the watch keeps, which else would be
// made anew for each.
const streamRoom = 4 << 10

// step passes on what comes next. At the end of the answer it returns io.EOF.
func (t *trip) step(x *exchange) error {
	if t.streams {
		x.await() // without a buffer: most of the time a stream waits
	}
	buf := getBuffer()
	defer func() {
		if !t.astray {
			putBuffer(buf)
		}
	}()
	room := cap(*buf)
	if t.streams {
		room = streamRoom
	}
	*buf = (*buf)[:room]
	n, err := t.next(x, *buf)
	if n > 0 {
		release, stop := (*buf)[:n], false
		if t.watch != nil {
			release, stop = t.watch.Write(release)
		}
		if err := t.pass(x, release, stop); err != nil {
			return err
		}
	}
	if err != nil && err != io.EOF {
		return t.upstreamError(err)
	}
	return err
}

// look begins to watch an answer.
func (t *trip) look(a *answer) {
	w := &t.s.Watch
	if w.Off {
		return
	}
	o := watch.Options{
		Dialect: t.route.dialect, Stream: t.streams, Strict: !w.Audit, Failed: a.status >= 400,
		Coders: w.Coders, Counted: t.counted, Exact: t.exact, Limit: t.rec.LimitTokens, MaxHeld: w.MaxHeld, MaxDocument: w.MaxDocument,
	}
	if t.own != nil {
		o.Own = t.own.has
	}
	o.Text = t.compare()
	t.watch = t.s.watches.Get(o)
}

// stopped is why an answer must not go on.
func (t *trip) stopped() error {
	e := shape.Error{Status: http.StatusBadGateway, Code: "answer_stopped", Message: "the answer was stopped: the engine's account of it does not hold together"}
	for _, f := range t.watch.Findings() {
		if f.Stops && f.Kind == watch.Leak {
			e.Code, e.Message = "leak_stopped", "the answer was stopped: it carried text of another request"
		}
	}
	return e
}

// watched records what the watch has seen.
func (t *trip) watched() {
	if t.watch == nil {
		return
	}
	t.hold(0)
	_, t.rec.Held = t.watch.Held()
	t.rec.PromptTokens, t.rec.OutputTokens = t.watch.Usage()
	if t.exact && t.by != nil {
		t.by.gate.Learn(t.counted, t.rec.PromptTokens)
	}
	for _, f := range t.watch.Findings() {
		kept := Finding{Kind: f.Kind, Channel: string(f.Channel), Words: f.Words, Explain: f.Explain}
		if f.Kind == watch.Leak {
			kept.From = f.From.String()
		}
		t.rec.Findings = append(t.rec.Findings, kept)
	}
	t.overlaps()
	if !t.astray {
		t.s.watches.Put(t.watch)
	}
	t.watch = nil
}

// hold keeps account of what is held back.
func (t *trip) hold(now int) {
	if now != t.held {
		t.g.held.Add(int64(now - t.held))
		t.held = now
	}
}

// next reads a part of the answer: of a stream what there is, of a document as
// much as b holds, so that a short one that breaks off is answered with an error.
func (t *trip) next(x *exchange, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = x.Read(b[n:])
		if n += m; t.streams && n > 0 {
			break
		}
	}
	if err != nil && err != io.EOF && !t.committed {
		n = 0
	}
	return n, err
}

// pass sends on what was released of the answer, and ends it if it must.
func (t *trip) pass(x *exchange, release []byte, stop bool) error {
	if t.watch != nil {
		now, _ := t.watch.Held()
		t.hold(now)
	}
	if stop && !t.streams {
		return t.stopped()
	}
	if len(release) > 0 {
		if !t.committed {
			t.commit(x.status)
		}
		if err := t.write(release); err != nil {
			return err
		}
		if t.streams && !stop {
			if err := t.flush(); err != nil {
				return err
			}
		}
	}
	if stop {
		return t.stopped()
	}
	return nil
}

// finish ends an answer that has ended cleanly.
func (t *trip) finish(x *exchange) error {
	// Trailers need chunks, which an answer of stated length does not come in.
	var trailers http.Header
	if x.length < 0 && len(x.trailer) > 0 {
		trailers = http.Header{}
		copyAnswer(trailers, x.trailer, "")
	}
	if t.watch != nil {
		if t.watch.Headers(trailers) {
			return t.stopped()
		}
		release, stop := t.watch.Close()
		if err := t.pass(x, release, stop); err != nil {
			return err
		}
	}
	if !t.committed {
		t.commit(x.status)
	}
	copyAnswer(t.w.Header(), trailers, http.TrailerPrefix)
	t.arm(t.s.Now()) // the server has an end to write
	t.linger()
	return nil
}

// head adds to the headers of the answer those that are not the upstream's.
func (t *trip) head(h http.Header, a *answer) {
	t.ownAnswer(h)
	if a.length >= 0 && a.status != http.StatusNoContent && a.status != http.StatusNotModified {
		h["Content-Length"] = []string{strconv.FormatInt(a.length, 10)}
	}
	t.leaveBody()
}

// checkAnswer refuses answers that cannot be watched, or that would have the
// client do something else.
func checkAnswer(a *answer) error {
	for _, v := range a.header["Content-Encoding"] {
		if v != "" && !strings.EqualFold(v, "identity") {
			return shape.Error{Status: http.StatusBadGateway, Code: "upstream_encoded",
				Message: "the engine's answer is compressed, unasked: it cannot be looked through"}
		}
	}
	if len(a.header["Content-Type"]) > 1 {
		return shape.Error{Status: http.StatusBadGateway, Code: "upstream_failed", Message: "the engine's answer says twice of what kind it is: it cannot be told how a client reads it"}
	}
	for _, v := range a.header["Content-Type"] {
		if wideLetters(v) {
			return shape.Error{Status: http.StatusBadGateway, Code: "upstream_encoded",
				Message: "the engine's answer is not in UTF-8: it cannot be looked through"}
		}
	}
	if a.status >= 300 && a.status < 400 && a.status != http.StatusNotModified {
		return shape.Error{Status: http.StatusBadGateway, Code: "upstream_redirects", Message: "the engine sends its clients elsewhere: no redirect is followed or passed on"}
	}
	return nil
}

// blanks take out what may stand around a sign of equality for some readers.
var blanks = strings.NewReplacer(" ", "", "\t", "")

// wideLetters says that a content type names an encoding in which ASCII is not
// as it is in UTF-8.
func wideLetters(contentType string) bool {
	_, charset, ok := strings.Cut(blanks.Replace(strings.ToLower(contentType)), "charset=")
	charset = strings.TrimLeft(charset, "\"'")
	return ok && (strings.HasPrefix(charset, "utf-16") || strings.HasPrefix(charset, "utf-32") || strings.HasPrefix(charset, "utf-7") || strings.HasPrefix(charset, "ucs"))
}

// isStream says that an answer is one that is to be passed on event by event.
func isStream(h http.Header) bool {
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "text/event-stream", "application/x-ndjson", "application/ndjson", "application/jsonl", "application/stream+json":
		return true
	}
	return false
}
