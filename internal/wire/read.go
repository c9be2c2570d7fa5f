package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// errTooBig ends the reading of an answer that is over the limit.
var errTooBig = errors.New("answer over the limit")

// body is the way of the bytes: watched, bounded, without the key, kept.
func (e *exchange) body(ctx context.Context, src io.Reader) io.Reader {
	if e.r.Pace > 0 {
		src = &paced{ctx, src, e.r.Pace}
	}
	r := e.blot.Reader(&watched{src: src, left: e.c.o.MaxAnswerBytes, moved: e.dog.touch, first: func() {
		e.dog.phase(e.c.o.IdleTimeout, "no further byte of the answer")
	}})
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
		e.afterwards()
		io.Copy(io.Discard, br)
	}
	return e.judge(ctx, end)
}

// afterwards joins what a stream holds after its end.
func (e *exchange) afterwards() {
	for e.rest != nil {
		ev, err := e.rest.next()
		if err != nil {
			e.t.over = e.t.over || errors.Is(err, errEventTooBig)
			return
		}
		e.t.weave.document(Raw, ev.data)
	}
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
	case (b == '{' || b == '[' || b == '"') && !strings.Contains(e.a.Header.Get("Content-Type"), "ndjson"):
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
		e.t.weave.document(Raw, doc)
		e.t.done = true
		return nil
	}
	if err != nil {
		e.t.weave.document(Raw, doc)
		e.t.addError(doc)
		return err
	}
	if bytes.Count(doc, []byte("\n")) > 0 { // several documents: a stream without its "data:"
		return e.readStream(newSSEReader(bufio.NewReader(bytes.NewReader(doc))))
	}
	e.t.weave.document(Raw, doc)
	e.t.spoil("the body is not JSON", doc)
	return io.EOF
}

func (e *exchange) readStream(s *sseReader) error {
	s.aside = e.t.weave.line
	for !e.t.done {
		ev, err := s.next()
		if err != nil {
			return err
		}
		e.t.weave.document(Raw, ev.data)
		e.c.dialect.event(e.t, ev.name, ev.data)
		if e.left.shown(e.t.text) {
			return errLeft
		}
	}
	e.rest = s
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
		e.fail(FailedNotAPI, "status %d, but %s: does the target speak the dialect %s?", status, t.garbage, e.c.dialect.name)
	case t.half && t.finish == "":
		e.fail(FailedCut, "the answer breaks off in the middle of a document: see the server's log")
	case e.spool.size == 0:
		e.fail(FailedNotAPI, "answered status %d with an empty body: see the server's log", status)
	case t.chunks == 0:
		e.fail(FailedNotAPI, "status %d, but nothing in it is an answer of dialect %s: is the base URL right, and the dialect?", status, e.c.dialect.name)
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
