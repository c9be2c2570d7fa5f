package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"
)

// Do sends one prompt and reads the whole answer. It returns no error: what
// goes wrong is the Refusal or the Failure of the answer, beside what had come
// until then.
//
// A target that refuses max_tokens, stream_options or temperature is asked
// again without it, once a field and client; Answer.Resent counts that.
func (c *Client) Do(ctx context.Context, r Request) *Answer {
	for resent := 0; ; resent++ {
		q := c.getQuirks()
		a, param := c.exchange(ctx, r, q)
		a.Resent = resent
		if param == "" || resent >= 3 || !c.learn(q, param) {
			return a
		}
		if a.Raw.Path != "" {
			os.Remove(a.Raw.Path)
		}
	}
}

func (c *Client) getQuirks() quirks {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.quirks
}

// learn notes a refused field, and reports whether a request that was sent
// with the quirks q would now look different.
func (c *Client) learn(q quirks, param string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, changed := q.learn(param)
	if changed {
		c.quirks, _ = c.quirks.learn(param)
	}
	return changed
}

// exchange makes one HTTP request. It also returns the name of the field by
// which the target refused it, if it did.
func (c *Client) exchange(ctx context.Context, r Request, q quirks) (*Answer, string) {
	a := &Answer{Start: c.o.Now()}
	e := &exchange{c: c, a: a, key: r.Key, t: newTranscript(c.o.Now), spool: newSpool(c.o.SpillDir, c.o.KeepInMemory)}
	param := e.run(ctx, c.dialect.body(r, q))
	a.Pieces, a.Usage, a.FirstToken = e.t.pieces(), e.t.usage, e.t.firstToken
	a.ID, a.Model, a.Finish = e.t.id, e.t.model, e.t.finish
	a.Raw = e.spool.close()
	if a.End.IsZero() {
		a.End = c.o.Now()
	}
	return a, param
}

// exchange is one request under way.
type exchange struct {
	c     *Client
	a     *Answer
	key   string
	t     *transcript
	spool *spool
	dog   *watchdog
}

func (e *exchange) run(ctx context.Context, segs []segment) (param string) {
	ctx, cancel := context.WithTimeoutCause(ctx, e.c.o.TotalTimeout, &stalled{e.c.o.TotalTimeout, "not done"})
	defer cancel()
	ctx, e.dog = newWatchdog(ctx, e.c.o.HeaderTimeout, "no answer")
	defer e.dog.stop()

	resp, err := e.c.send(ctx, http.MethodPost, e.c.api+e.c.dialect.path, e.key, segs, e.dog.touch)
	if err != nil {
		e.a.Failure = connectFailure(ctx, e.c.host, err)
		return ""
	}
	defer resp.Body.Close()
	e.dog.phase(e.c.o.HeaderTimeout, "no first byte of the answer")
	e.head(resp)
	body := e.body(resp.Body)
	switch {
	case resp.StatusCode >= 400:
		return e.refused(resp, body)
	case resp.StatusCode >= 300:
		e.a.Failure = e.redirect(resp)
	case resp.StatusCode >= 200:
		param = e.answered(ctx, resp, body)
	default:
		e.fail(FailedNotAPI, "answered with status %d, which no API does: is the base URL right?", resp.StatusCode)
	}
	e.t.headers(redactHeader(resp.Trailer, e.key))
	return param
}

// send makes a request with a streamed body of known length.
func (c *Client) send(ctx context.Context, method, url, key string, segs []segment, moved func()) (*http.Response, error) {
	size, err := bodySize(segs)
	if err != nil {
		return nil, err
	}
	var body io.Reader
	if segs != nil {
		body = &bodyReader{segs: segs, moved: moved}
	}
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	req.ContentLength, req.GetBody = size, nil
	if segs != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("User-Agent", c.o.UserAgent)
	c.dialect.auth(req.Header, key)
	return c.http.Do(req)
}

// head takes status and headers.
func (e *exchange) head(resp *http.Response) {
	e.a.Status = resp.StatusCode
	e.a.Header = redactHeader(resp.Header, e.key)
	e.t.headers(e.a.Header)
}

func redactHeader(h http.Header, key string) http.Header {
	out := make(http.Header, len(h))
	for name, values := range h {
		for _, v := range values {
			out[name] = append(out[name], redact(v, key))
		}
	}
	return out
}

// errTooBig ends the reading of an answer that is over the limit.
var errTooBig = errors.New("answer over the limit")

// body is the way of the bytes: watched, bounded, without the key, kept.
func (e *exchange) body(src io.Reader) io.Reader {
	r := newRedactReader(&watched{src: src, left: e.c.o.MaxAnswerBytes, moved: e.dog.touch, first: func() {
		e.dog.phase(e.c.o.IdleTimeout, "no further byte of the answer")
	}}, e.key)
	return io.TeeReader(r, e.spool)
}

// watched reports progress and stops at a limit.
type watched struct {
	src   io.Reader
	left  int64
	begun bool
	first func()
	moved func()
}

func (w *watched) Read(p []byte) (int, error) {
	if w.left <= 0 {
		// One byte more tells an answer of exactly the limit from a longer one.
		var b [1]byte
		if n, err := w.src.Read(b[:]); n == 0 {
			return 0, err
		}
		return 0, errTooBig
	}
	n, err := w.src.Read(p[:min(int64(len(p)), w.left)])
	w.left -= int64(n)
	if n > 0 {
		if !w.begun {
			w.begun = true
			w.first()
		}
		w.moved()
	}
	return n, err
}

func (e *exchange) fail(kind FailureKind, format string, args ...any) {
	e.a.Failure = &Failure{kind, redact(e.c.host+": "+fmt.Sprintf(format, args...), e.key)}
}

// refused reads an answer whose status is an error.
func (e *exchange) refused(resp *http.Response, body io.Reader) (param string) {
	doc, _ := io.ReadAll(io.LimitReader(body, maxError))
	// What is over the bound goes into the raw bytes. An error body that
	// breaks off has told its status all the same.
	io.Copy(io.Discard, body)
	e.t.addError(doc)
	e.a.Refusal, param = classify(resp.StatusCode, e.a.Header, doc, false, e.c.o.Now())
	if bytes.Contains(doc, []byte("HTTP request to an HTTPS server")) || bytes.Contains(doc, []byte("plain HTTP request was sent to HTTPS port")) {
		e.a.Refusal = nil
		e.fail(FailedTLS, "the server there speaks TLS: use https:// in the base URL")
	}
	return param
}

// redirect names where the target points, without what may be secret in it.
func (e *exchange) redirect(resp *http.Response) *Failure {
	where := "elsewhere"
	if u, err := url.Parse(resp.Header.Get("Location")); err == nil && u.String() != "" {
		u = resp.Request.URL.ResolveReference(u)
		where = "to " + oneLine((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), 200)
	}
	return &Failure{FailedNotAPI, redact(fmt.Sprintf("%s: redirects (status %d) %s, which is not followed so that no key goes astray: give the final address as the base URL",
		e.c.host, resp.StatusCode, where), e.key)}
}

// answered reads an answer with a status of success. An error may stand in it.
func (e *exchange) answered(ctx context.Context, resp *http.Response, body io.Reader) (param string) {
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		io.Copy(io.Discard, body)
		e.fail(FailedNotAPI, "the answer is compressed as %s, which was not asked for: is there a proxy in between?", oneLine(enc, 40))
		return ""
	}
	br := bufio.NewReaderSize(body, 32<<10)
	end := e.read(br)
	if e.a.End.IsZero() {
		e.a.End = e.c.o.Now()
	}
	if end == nil {
		// Whatever follows the end is kept too, for it may be anybody's.
		e.dog.phase(min(e.c.o.IdleTimeout, 2*time.Second), "nothing after the end of the answer")
		io.Copy(io.Discard, br)
	}
	return e.judge(ctx, end)
}

// read takes the body as a stream of events or as one document. It returns nil
// when the answer came to its end, else what ended it.
func (e *exchange) read(br *bufio.Reader) error {
	b, err := firstByte(br)
	switch {
	case err != nil:
		return err
	case b == '<':
		doc, err := io.ReadAll(io.LimitReader(br, maxError))
		e.t.spoil("HTML", doc)
		return err
	case b == '{' || b == '[' || b == '"':
		return e.readDocument(br)
	}
	return e.readStream(newSSEReader(br))
}

// maxDocument bounds an answer in one document, bytes.
const maxDocument = 8 << 20

func (e *exchange) readDocument(br *bufio.Reader) error {
	doc, err := io.ReadAll(io.LimitReader(br, maxDocument+1))
	if len(doc) > maxDocument {
		return errTooBig
	}
	if e.c.dialect.document(e.t, doc) {
		e.t.done = true
		return nil
	}
	if err != nil {
		e.t.addError(doc)
		return err
	}
	if bytes.Count(doc, []byte("\n")) > 0 { // several documents: a stream without its "data:"
		return e.readStream(newSSEReader(bufio.NewReader(bytes.NewReader(doc))))
	}
	e.t.spoil("the body is not JSON", doc)
	return io.EOF
}

func (e *exchange) readStream(s *sseReader) error {
	for !e.t.done {
		ev, err := s.next()
		if err != nil {
			return err
		}
		e.c.dialect.event(e.t, ev.name, ev.data)
	}
	return nil
}

// firstByte skips white space, which servers send to keep a connection open,
// and a byte order mark. It consumes no more.
func firstByte(br *bufio.Reader) (byte, error) {
	for {
		p, err := br.Peek(1)
		if err != nil {
			return 0, err
		}
		switch p[0] {
		case ' ', '\t', '\r', '\n':
			br.Discard(1)
		case 0xef:
			if p, _ = br.Peek(3); string(p) != "\ufeff" {
				return 0xef, nil
			}
			br.Discard(3)
		default:
			return p[0], nil
		}
	}
}

// judge says what became of an answer of status 200. end is nil if it came to
// its end by its own account.
func (e *exchange) judge(ctx context.Context, end error) (param string) {
	t, status := e.t, e.a.Status
	if t.errDoc != nil {
		e.a.Refusal, param = classify(status, e.a.Header, t.errDoc, true, e.c.o.Now())
		return param
	}
	switch {
	case end == nil && t.chunks > 0 && t.garbage == "":
		return e.overflowed()
	case errors.Is(end, errTooBig), errors.Is(end, errEventTooBig), end != nil && end != io.EOF && t.finish == "":
		e.broke(ctx, end)
	case t.garbage == "HTML":
		e.fail(FailedNotAPI, "answered HTML with status %d, not JSON: is the base URL right? most end in /v1", status)
	case t.garbage != "":
		e.fail(FailedNotAPI, "status %d, but %s: is this an API of dialect %s?", status, t.garbage, e.c.dialect.name)
	case t.half && t.finish == "":
		e.fail(FailedCut, "the answer breaks off in the middle of a document: see the server's log")
	case e.spool.size == 0:
		e.fail(FailedNotAPI, "answered status %d with an empty body: see the server's log", status)
	case t.chunks == 0:
		e.fail(FailedNotAPI, "status %d, but nothing in it is an answer of dialect %s: is the base URL right?", status, e.c.dialect.name)
	case t.finish == "":
		e.fail(FailedCut, "the stream ended without a finish reason or [DONE]: see the server's log")
	default:
		return e.overflowed()
	}
	return ""
}

// broke explains an answer that ended by an error of the connection or by a bound.
func (e *exchange) broke(ctx context.Context, end error) {
	f := stall(ctx, e.c.host)
	switch {
	case errors.Is(end, errTooBig), errors.Is(end, errEventTooBig):
		e.fail(FailedTooBig, "the answer is over a limit (%d bytes in all, %d in a document, %d in an event); the rest was not read",
			e.c.o.MaxAnswerBytes, maxDocument, maxEvent)
	case f != nil:
		e.a.Failure = f
	case e.t.garbage == "HTML":
		e.fail(FailedNotAPI, "answered HTML with status %d, not JSON: is the base URL right? most end in /v1", e.a.Status)
	default:
		e.fail(FailedCut, "the connection broke in the middle of the answer (%s): see the server's log", oneLine(rootCause(end), 100))
	}
}

// overflowed takes an answer that is nothing but a finish reason which names
// the window (z.ai, Anthropic) for the refusal that it is.
func (e *exchange) overflowed() string {
	if e.t.finish == "model_context_window_exceeded" && !e.t.answered() {
		e.a.Refusal = &Refusal{Kind: RefusedContext, Status: e.a.Status, InAnswer: true, Rule: "finish-window",
			Message: "finish reason model_context_window_exceeded and no text"}
	}
	return ""
}
