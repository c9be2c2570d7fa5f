package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/kvcanary/kvcanary/internal/guard/overlap"
	"github.com/kvcanary/kvcanary/internal/guard/request"
	"github.com/kvcanary/kvcanary/internal/guard/shape"
	"github.com/kvcanary/kvcanary/internal/guard/watch"
	"github.com/kvcanary/kvcanary/internal/prose"
)

// trip is one request on its way through the guard.
type trip struct {
	g   *Guard
	s   *setup
	w   http.ResponseWriter
	r   *http.Request
	rc  *http.ResponseController
	ctx context.Context

	rec      Record
	clientID string // by which the client knows its request, "" if it gave no name
	route    *route
	target   string
	tenant   Tenant
	body     *clientBody
	reader   *request.Reader // rewrites body
	own      *carried
	watch    *watch.Watch    // nil: answers are not looked at
	overlap  *overlap.Answer // nil: not compared with what others have sent

	counted int       // tokens of the prompt, or a bound on them; 0 if not known
	exact   bool      // counted is a count
	by      *upstream // that has answered; nil for none yet
	held    int       // bytes of the answer, as Guard.held has them

	reserved int64 // bytes, of Guard.buffered
	seated   bool  // counted among its tenant's

	committed bool      // the answer's status and headers are sent
	streams   bool      // the answer is one that an error event can end
	wrote     time.Time // when the time for writing was set
	last      []byte    // the last two bytes that were written
	// astray says that a write to the client has failed. HTTP/2 gives up on one
	// while another goroutine may still be sending its bytes: none of the memory
	// that held them may serve another request.
	astray bool
}

// serve answers the request, whatever happens.
func (t *trip) serve(cancel context.CancelCauseFunc) {
	t.rec.Start = t.s.Now()
	t.rec.Dialect = dialectOf(t.r.URL.Path)
	defer t.end()
	err := t.name()
	if err == nil {
		if err = t.g.enter(t, cancel); err == nil {
			defer t.g.leave(t)
			err = t.run()
		}
	}
	if err != nil {
		t.fail(err)
	}
}

// end says what has become of the request. A broken invariant ends this request
// only, and its upstream connection with it.
func (t *trip) end() {
	p := recover()
	if p != nil && p != http.ErrAbortHandler {
		t.s.Log.LogAttrs(context.Background(), slog.LevelError, "internal error", slog.String("request", t.rec.ID),
			slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
		p = t.failAgain()
	}
	t.observe()
	if p != nil {
		panic(p)
	}
}

// failAgain answers a request whose serving panicked; it returns what is to be
// panicked with to have the connection closed, nil if that is not called for.
func (t *trip) failAgain() (abort any) {
	defer func() {
		if recover() != nil {
			abort = http.ErrAbortHandler
		}
	}()
	t.fail(shape.Error{Status: http.StatusInternalServerError, Code: "internal", Message: "internal error in the guard: tell its operator the request id"})
	return nil
}

func (t *trip) observe() {
	t.rec.Total = t.s.Now().Sub(t.rec.Start)
	if t.body != nil {
		t.rec.BodyBytes = t.body.n
		t.rec.Blocked += t.body.waited
	}
	t.watched()
	if t.s.Observe != nil {
		t.s.Observe(&t.rec)
	}
}

// name gives the request the guard's own name, and keeps the client's.
func (t *trip) name() (err error) {
	if t.rec.ID, err = newID(t.s.Random); err != nil {
		return err
	}
	for _, header := range []string{"X-Request-Id", "X-Client-Request-Id"} {
		if id := t.r.Header.Get(header); t.clientID == "" && len(id) <= 128 && visible(id) {
			t.clientID = id
		}
	}
	return nil
}

func (t *trip) run() (err error) {
	var allow string
	if t.route, t.target, allow = find(t.r.Method, t.r.URL); t.route == nil {
		return t.lost(allow)
	}
	t.rec.Dialect, t.rec.Route = t.route.dialect, t.route.path
	if t.tenant, err = t.s.Tenants.of(t.r.Header); err != nil {
		return err
	}
	t.rec.Tenant = t.tenant.Name
	if err = t.g.seat(t); err != nil {
		return err
	}
	t.own = t.s.carries()
	t.own.head(t.r, t.route)
	x, err := t.send()
	t.forget()
	if err != nil {
		return err
	}
	defer func() {
		t.rec.Blocked += x.c.blocked
		x.close()
	}()
	return t.relay(x)
}

// forget gives back what the request's body took. Its answer may take an hour.
func (t *trip) forget() {
	t.leaveReader()
	if t.reserved > 0 {
		t.g.release(t)
	}
}

// lost is the error for what is not in the table of routes.
func (t *trip) lost(allow string) error {
	if allow != "" {
		t.w.Header().Set("Allow", allow)
		return shape.Error{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Message: "this path takes " + allow}
	}
	return shape.Error{Status: http.StatusNotFound, Code: "not_found", Message: "there is no such path here"}
}

// send gets the request to an upstream, and the head of its answer.
func (t *trip) send() (*exchange, error) {
	k := &call{method: t.route.method, target: t.target, whole: -1}
	p := &prompt{}
	ups := t.s.ring.order("")
	if k.method == http.MethodPost {
		var first *upstream
		if !t.s.ring.byModel {
			first = ups[0]
		}
		var err error
		if p, err = t.read(first); err != nil {
			return nil, err
		}
		if t.learn(&p.facts); t.s.ring.byModel {
			ups = t.s.ring.order(p.facts.Model)
		}
		k.interrupt = t.body.halt
	}
	return t.offer(ups, p, k)
}

// offer sends a request to the first of several upstreams that can be reached
// and that may have it.
func (t *trip) offer(ups []*upstream, p *prompt, k *call) (*exchange, error) {
	var refused, err error
	for _, u := range ups {
		t.rec.Upstream, t.rec.Engine = u.Name, u.engine()
		var changed []string
		if k.header, changed, err = u.headers(t.r, t.route, t.rec.ID); err != nil {
			return nil, bodyRefused(err)
		}
		t.change(changed)
		if k.method == http.MethodPost && p.rest == nil {
			if err = t.rewrite(p, u); err != nil {
				return nil, err
			}
			t.learn(&p.facts)
			if err = t.admit(u, &p.facts, p.whole, k.header, p.held); err != nil {
				refused = cmp.Or(refused, err)
				continue
			}
		}
		k.body, k.rest, k.whole = p.held, p.rest, p.whole
		from := t.s.Now()
		var x *exchange
		if x, err = u.begin(t.ctx, k); err == nil {
			u.good()
			return x, nil
		}
		t.rec.Blocked += t.s.Now().Sub(from)
		// A body that is read as it comes is for one upstream only.
		if !errors.Is(err, errNotSent) || p.rest != nil || t.ctx.Err() != nil {
			return nil, t.upstreamError(err)
		}
	}
	switch {
	case err == nil:
		return nil, shape.Error{Status: http.StatusNotFound, Code: "model_not_found", Param: "model", Message: "no engine here serves this model"}
	case refused != nil:
		return nil, refused
	}
	return nil, t.upstreamError(err)
}

// upstreamError says for the client what is wrong with an upstream, and in the
// record what it is exactly.
func (t *trip) upstreamError(err error) error {
	var e shape.Error
	if errors.As(err, &e) || errors.Is(err, errGone) {
		return err
	}
	// An interrupted upload looks to the server as if the client had gone.
	if cause := context.Cause(t.ctx); cause == errDrained || cause != nil && !t.body.wasHalted() {
		return cause
	}
	t.rec.Trouble = err.Error()
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, errNotSent):
		return shape.Error{Status: http.StatusServiceUnavailable, Code: "upstream_unreachable", Message: "the engine cannot be reached: try again later"}
	case errors.As(err, &timeout) && timeout.Timeout():
		return shape.Error{Status: http.StatusGatewayTimeout, Code: "upstream_timeout", Message: "the engine has been silent for too long"}
	}
	return shape.Error{Status: http.StatusBadGateway, Code: "upstream_failed", Message: "the engine's answer broke off, or was none that can be trusted"}
}

// fail ends the request with an error in the client's dialect: as an answer, as
// the event that ends a stream, or, where neither is possible any more, by
// closing the connection.
func (t *trip) fail(err error) {
	e := t.shaped(err)
	if e.Code != "" {
		t.rec.Code = e.Code
	}
	e.RequestID = t.rec.ID
	if t.committed {
		if t.streams && !errors.Is(err, errGone) {
			t.write(append(t.boundary(), shape.Event(t.rec.Dialect, e)...))
			t.flush()
		}
		// Not a clean end: no client must take what it has for all of it.
		panic(http.ErrAbortHandler)
	}
	if errors.Is(err, errGone) || errors.Is(err, context.Canceled) {
		panic(http.ErrAbortHandler)
	}
	h := t.w.Header()
	clear(h)
	t.ownAnswer(h)
	if t.route == nil && e.Status == http.StatusMethodNotAllowed {
		_, _, allow := find(t.r.Method, t.r.URL)
		h.Set("Allow", allow)
	}
	if e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	t.leaveBody()
	contentType, body := shape.Body(t.rec.Dialect, e)
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	t.commit(e.Status)
	t.write(body)
	t.linger()
}

// leaveBody gives a client that is still sending a second for it. The server
// reads a little more of a body, or closes the connection when the answer has
// gone; without that such a client would lose the answer. Where reading was
// interrupted the server has taken the connection for dead, and would cancel the
// next request on it.
func (t *trip) leaveBody() {
	if t.body == nil || t.body.ended {
		return
	}
	t.rc.SetReadDeadline(t.s.Now().Add(time.Second))
	if (t.body.broken || t.body.wasHalted()) && t.r.ProtoMajor == 1 {
		t.w.Header().Set("Connection", "close")
	}
}

// linger leaves a client whose body could not be read to its end the time to
// read the answer: closing a connection on which there are unread bytes has
// them, and the answer, thrown away. net/http lingers only where it has stopped
// reading by itself.
func (t *trip) linger() {
	if t.body == nil || t.body.ended || !t.body.broken && !t.body.wasHalted() || t.r.ProtoMajor != 1 {
		return
	}
	if t.flush() == nil {
		<-t.s.Sleep(500 * time.Millisecond)
	}
}

// codeGone is the code of a request whose client left.
const codeGone = "client_gone"

// shaped turns any error into one that can be shown.
func (t *trip) shaped(err error) shape.Error {
	var e shape.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, errDrained):
		return shape.Error{Status: http.StatusServiceUnavailable, Code: "draining", Message: "this guard is shutting down, and the answer took too long: try again"}
	case errors.Is(err, errGone), errors.Is(err, context.Canceled):
		return shape.Error{Status: 499, Code: codeGone, Message: errGone.Error()}
	}
	return shape.Error{Status: http.StatusInternalServerError, Code: "internal", Message: "internal error in the guard: tell its operator the request id"}
}

// ownAnswer sets the headers that are the guard's to say.
func (t *trip) ownAnswer(h http.Header) {
	h["Kvcanary-Request-Id"] = []string{t.rec.ID}
	id := t.clientID
	if id == "" {
		id = t.rec.ID
	}
	h["X-Request-Id"] = []string{id}
	if t.rec.Dialect == "anthropic" {
		h["Request-Id"] = []string{id}
	}
	if len(t.rec.Changed) > 0 {
		h["Kvcanary-Changed"] = []string{strings.Join(t.rec.Changed, ", ")}
	}
	if t.rec.Verdict != "" {
		h["Kvcanary-Admission"] = []string{admission(t.rec.Verdict, t.rec.Reason)}
	}
}

func (t *trip) commit(status int) {
	t.committed = true
	t.rec.Status = status
	t.w.WriteHeader(status)
}

// boundary is what brings a stream that broke off within an event to the end of
// it, so that the next one is read as one.
func (t *trip) boundary() []byte {
	end := "\n\n"
	if t.rec.Dialect == "ollama" {
		end = "\n"
	}
	if len(t.last) == 0 || strings.HasSuffix(string(t.last), end) {
		return nil
	}
	return []byte(end)
}

// write sends bytes of the answer. A client that does not take them in time is
// gone.
func (t *trip) write(p []byte) error {
	from := t.s.Now()
	t.arm(from)
	if t.rec.FirstByte == 0 {
		t.rec.FirstByte = from.Sub(t.rec.Start)
	}
	_, err := t.w.Write(p)
	t.last = append(t.last[:0], p[max(0, len(p)-2):]...)
	if !t.streams {
		t.disarm()
	}
	t.rec.Blocked += t.s.Now().Sub(from)
	if err != nil {
		t.astray = true
		return errGone
	}
	return nil
}

// arm sets the time by which the client must have taken what is written next.
func (t *trip) arm(now time.Time) {
	if limit := t.s.Limits.WriteTime; now.Sub(t.wrote) > limit/8 {
		t.wrote = now
		t.rc.SetWriteDeadline(now.Add(limit + limit/8))
	}
}

// disarm lifts it. HTTP/2 resets a stream whose time is over even if nothing is
// written to it.
func (t *trip) disarm() {
	if t.r.ProtoMajor == 2 {
		t.wrote = time.Time{}
		t.rc.SetWriteDeadline(time.Time{})
	}
}

// flush has what was written leave at once.
func (t *trip) flush() error {
	from := t.s.Now()
	t.arm(from)
	err := t.rc.Flush()
	t.disarm()
	t.rec.Blocked += t.s.Now().Sub(from)
	if err != nil {
		return errGone
	}
	return nil
}

func errBusy(status int, code, message string) error {
	return shape.Error{Status: status, Code: code, Message: message}
}

func thousands(n int64) string { return prose.Thousands(int(n)) }
