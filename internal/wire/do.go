package wire

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
)

// Do sends one prompt and reads the whole answer. It returns no error: what
// goes wrong is the Refusal or the Failure of the answer, beside what had come
// until then.
//
// A target that refuses max_tokens, stream_options, temperature or another
// field that has a substitute is asked again without it, once a field and
// client; so is one of a dialect with two ways to send the key that lets nobody
// in. Answer.Resent counts that.
func (c *Client) Do(ctx context.Context, r Request) *Answer {
	for resent := 0; ; resent++ {
		q := c.getQuirks()
		a, param := c.exchange(ctx, r, q)
		if c.mayBearKey(a, r, q) && r.mayResend() {
			q.bearerKey = true
			again, p := c.exchange(ctx, r, q)
			resent++
			drop(a)
			if a, param = again, p; a.Refusal == nil || a.Refusal.Kind != RefusedAuth {
				c.bearKey()
			}
		}
		a.Resent = resent
		if param == "" || resent >= 3 || !c.learn(q, param) || !r.mayResend() {
			return a
		}
		drop(a)
	}
}

func (r *Request) mayResend() bool { return r.Resend == nil || r.Resend() }

// drop removes what is kept of an answer that another one takes the place of.
func drop(a *Answer) {
	if a.Raw.Path != "" {
		os.Remove(a.Raw.Path)
	}
}

// mayBearKey reports whether a key that was turned away could be sent in
// another way.
func (c *Client) mayBearKey(a *Answer, r Request, q quirks) bool {
	return c.dialect.keyedTwice && !q.bearerKey && r.Key != "" && a.Refusal != nil && a.Refusal.Kind == RefusedAuth
}

// bearKey sends every key as a bearer token from now on.
func (c *Client) bearKey() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quirks.bearerKey = true
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
	e := &exchange{c: c, a: a, r: r, q: q, key: r.Key, blot: c.blotter(r.Key), t: newTranscript(c.o.Now), spool: newSpool(c.o.SpillDir, c.o.KeepInMemory)}
	param := e.run(ctx, c.dialect.body(r, q))
	a.Pieces, a.Usage, a.FirstToken = e.t.pieces(), e.t.usage, e.t.firstToken
	a.Joined, a.Overran = e.t.weave.strands(), e.t.over || e.t.weave.over
	a.ID, a.Model, a.Finish = e.t.id, e.t.model, e.t.finish
	a.Raw = e.spool.close()
	if a.End.IsZero() {
		a.End = c.o.Now()
	}
	// What is put together of many events has passed the blotter in pieces.
	e.blot.Answer(a)
	return a, param
}

// exchange is one request under way.
type exchange struct {
	c     *Client
	a     *Answer
	r     Request
	q     quirks
	key   string
	blot  *Blotter
	t     *transcript
	spool *spool
	dog   *watchdog
	left  *leaver
	rest  *sseReader // the stream after its end, nil if the answer was none
}

func (e *exchange) run(ctx context.Context, segs []segment) (param string) {
	ctx, cancel := context.WithTimeoutCause(ctx, e.c.o.TotalTimeout, &stalled{e.c.o.TotalTimeout, "not done"})
	defer cancel()
	ctx, e.dog = newWatchdog(ctx, e.c.o.HeaderTimeout, "no answer")
	defer e.dog.stop()
	ctx, e.left = newLeaver(ctx, e.r.Hangup)
	defer e.left.stop()

	resp, err := e.c.send(ctx, http.MethodPost, e.c.prompts, e.key, e.q.names(e.r), segs, e.dog.touch)
	if err != nil {
		e.a.Failure = connectFailure(ctx, e.c.host, err)
		return ""
	}
	defer resp.Body.Close()
	e.dog.phase(e.c.o.HeaderTimeout, "no first byte of the answer")
	e.head(resp)
	body := e.body(ctx, resp.Body)
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
	e.t.headers(e.blot.Header(resp.Trailer))
	return param
}

// names are the headers of one request alone.
func (q quirks) names(r Request) http.Header {
	h := r.names()
	if q.bearerKey {
		bearer(h, r.Key)
	}
	return h
}

// send makes a request with a streamed body of known length. names are
// headers beside those that every request has.
func (c *Client) send(ctx context.Context, method, url, key string, names http.Header, segs []segment, moved func()) (*http.Response, error) {
	size, err := bodySize(segs)
	if err != nil {
		return nil, err
	}
	var body io.Reader
	if segs != nil {
		body = &bodyReader{segs: segs, moved: moved}
		if size >= aheadFrom {
			body = newAhead(body) // the transport closes it
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	req.ContentLength, req.GetBody = size, nil
	if segs != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	maps.Copy(req.Header, names)
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("User-Agent", c.o.UserAgent)
	c.dialect.auth(req.Header, key)
	resp, err := c.http.Do(req)
	err = c.shown.explain(err)
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
		// Such a body is the bare connection, which no context ends: hang up.
		resp.Body.Close()
		resp.Body = http.NoBody
	}
	return resp, err
}

// head takes status and headers.
func (e *exchange) head(resp *http.Response) {
	e.a.Status = resp.StatusCode
	e.a.Header = e.blot.Header(resp.Header)
	e.t.headers(e.a.Header)
}

func (e *exchange) fail(kind FailureKind, format string, args ...any) {
	e.a.Failure = &Failure{kind, e.c.host + ": " + fmt.Sprintf(format, args...)}
}

// refused reads an answer whose status is an error.
func (e *exchange) refused(resp *http.Response, body io.Reader) (param string) {
	doc, _ := io.ReadAll(io.LimitReader(body, maxError))
	// What is over the bound goes into the raw bytes. An error body that
	// breaks off has told its status all the same.
	io.Copy(io.Discard, body)
	e.t.addError(doc)
	e.t.weave.document(ErrorBody, doc)
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
	return &Failure{FailedNotAPI, fmt.Sprintf("%s: redirects (status %d) %s, which is not followed so that no key goes astray: give the final address as the base URL",
		e.c.host, resp.StatusCode, where)}
}
