package guard

import (
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/kvcanary/kvcanary/internal/guard/shape"
)

// relay passes an answer on as it comes.
func (t *trip) relay(x *exchange) error {
	if err := checkAnswer(x.answer); err != nil {
		return err
	}
	t.streams = isStream(x.header)
	t.rec.Stream = t.streams
	t.head(x.answer)
	if t.streams {
		t.commit(x.status)
		if err := t.flush(); err != nil {
			return err
		}
	}
	buf := getBuffer()
	defer putBuffer(buf)
	b := (*buf)[:cap(*buf)]
	for {
		n, err := t.next(x, b)
		if n > 0 {
			if err := t.pass(x, b[:n]); err != nil {
				return err
			}
		}
		switch err {
		case nil:
		case io.EOF:
			return t.finish(x)
		default:
			return t.upstreamError(err)
		}
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

// pass sends a part of the answer on.
func (t *trip) pass(x *exchange, p []byte) error {
	if !t.committed {
		t.commit(x.status)
	}
	if err := t.write(p); err != nil || !t.streams {
		return err
	}
	return t.flush()
}

// finish ends an answer that has ended cleanly.
func (t *trip) finish(x *exchange) error {
	if !t.committed {
		t.commit(x.status)
	}
	// Trailers need chunks, which an answer of stated length does not come in.
	if x.length < 0 && len(x.trailer) > 0 {
		copyAnswer(t.w.Header(), x.trailer, http.TrailerPrefix)
	}
	t.linger()
	return nil
}

// head sets the headers of the answer.
func (t *trip) head(a *answer) {
	h := t.w.Header()
	copyAnswer(h, a.header, "")
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
	if a.status >= 300 && a.status < 400 && a.status != http.StatusNotModified {
		return shape.Error{Status: http.StatusBadGateway, Code: "upstream_redirects", Message: "the engine sends its clients elsewhere: no redirect is followed or passed on"}
	}
	return nil
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
