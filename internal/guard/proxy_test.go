package guard

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAnswerPassesThrough(t *testing.T) {
	var seen *http.Request
	var body string
	url := engine(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		seen, body = r, string(b)
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("X-Ratelimit-Remaining-Tokens", "7")
		h.Set("X-Request-Id", "of the engine")
		h.Set("Set-Cookie", "worker=3")
		h.Set("Server", "engine/1")
		h.Set("Connection", "X-Hop")
		h.Set("X-Hop", "1")
		h.Set("Kvcanary-Admission", "pass")
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, `{"object":"chat.completion"}`)
	})
	f := guardBefore(t, url+"/v1/", func(o *Options) { o.Upstreams[0].Key = "sk-engine" })
	q, _ := http.NewRequest("POST", f.url+"/v1/chat/completions?debug=1", strings.NewReader(chat))
	for name, value := range map[string]string{
		"Authorization": "Bearer sk-client", "X-Request-Id": "client-7", "X-Data-Parallel-Rank": "3", "Openai-Beta": "x",
		"X-Forwarded-For": "10.0.0.1", "Cookie": "a=b", "Connection": "keep-alive, X-Secret-Hop", "X-Secret-Hop": "1", "Te": "trailers", "Accept-Encoding": "gzip",
	} {
		q.Header.Set(name, value)
	}
	res, err := f.client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusTeapot || string(b) != `{"object":"chat.completion"}` || body != chat {
		t.Errorf("answered %d %s to %s", res.StatusCode, b, body)
	}
	if seen.URL.String() != "/v1/chat/completions" {
		t.Errorf("the engine was asked for %s", seen.URL)
	}
	var names []string
	for name := range seen.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "Accept-Encoding Authorization Content-Length Content-Type Openai-Beta User-Agent X-Request-Id" {
		t.Errorf("the engine was sent %s", got)
	}
	if h := seen.Header; h.Get("Authorization") != "Bearer sk-engine" || h.Get("Accept-Encoding") != "identity" || !strings.HasPrefix(h.Get("X-Request-Id"), "kvg-") {
		t.Errorf("the engine was sent %v", h)
	}
	if h := res.Header; h.Get("X-Request-Id") != "client-7" || h.Get("Kvcanary-Request-Id") != seen.Header.Get("X-Request-Id") ||
		h.Get("X-Ratelimit-Remaining-Tokens") != "7" || h.Get("Content-Length") != "28" || h.Get("Kvcanary-Admission") != "off" || h.Get("Kvcanary-Changed") != "Cookie, X-Data-Parallel-Rank, X-Forwarded-For, X-Request-Id" {
		t.Errorf("the client was sent %v", h)
	}
	for _, name := range []string{"Set-Cookie", "Server", "X-Hop"} {
		if v := res.Header.Get(name); v != "" {
			t.Errorf("the client was sent %s: %s", name, v)
		}
	}
	if r := f.last(t, 1); r.Status != http.StatusTeapot || r.Upstream != "engine" || r.BodyBytes != int64(len(chat)) || r.Blocked <= 0 || r.Blocked > r.Total || r.Code != "" {
		t.Errorf("recorded %+v", r)
	}
}

func TestStreamIsFlushedEventByEvent(t *testing.T) {
	next := make(chan struct{})
	url := engine(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.Header().Set("Trailer", "X-Tokens, Set-Cookie")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
			<-next
		}
		w.Header().Set("X-Tokens", "3")
		w.Header().Set("Set-Cookie", "a=b")
	})
	f := guardBefore(t, url, nil)
	res, err := f.client.Post(f.url+"/v1/chat/completions", "", strings.NewReader(chat))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for i := range 3 {
		line, err := lines.ReadString('\n')
		if want := fmt.Sprintf("data: %d\n", i); line != want || err != nil {
			t.Fatalf("got %q, %v, want %q", line, err, want)
		}
		lines.ReadString('\n')
		next <- struct{}{}
	}
	if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil {
		t.Errorf("then came %q, %v", rest, err)
	}
	if res.Trailer.Get("X-Tokens") != "3" || len(res.Trailer) != 1 {
		t.Errorf("trailers are %v", res.Trailer)
	}
	if r := f.last(t, 1); !r.Stream || r.FirstByte <= 0 {
		t.Errorf("recorded %+v", r)
	}
}

// Until its last chunk comes, an upload is no whole request, so that the engine
// sees the prompt while it is still being sent.
func TestLargeBodyStreams(t *testing.T) {
	var first chan struct{}
	url := engine(t, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadFull(r.Body, make([]byte, heldBody)); err == nil {
			close(first)
		}
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n+heldBody, " ", err)
	})
	f := guardBefore(t, url, nil)
	body := chatOf(heldBody + 2<<20)
	for name, stated := range map[string]int64{"stated": int64(len(body)), "chunked": -1} {
		first = make(chan struct{})
		pr, pw := io.Pipe()
		go func() {
			io.WriteString(pw, body[:heldBody+70_000])
			<-first
			io.WriteString(pw, body[heldBody+70_000:])
			pw.Close()
		}()
		q, _ := http.NewRequest("POST", f.url+"/v1/chat/completions", pr)
		q.ContentLength = stated
		res, err := f.client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(res.Body); string(b) != fmt.Sprint(len(body), " <nil>") {
			t.Errorf("%s: the engine read %s", name, b)
		}
		res.Body.Close()
	}
	if r := f.last(t, 2); r.BodyBytes != int64(len(body)) || r.Model != "m" {
		t.Errorf("recorded %+v", r)
	}
}

func TestClientThatLeavesCancelsUpstream(t *testing.T) {
	for name, streams := range map[string]bool{"before the answer": false, "within a stream": true} {
		t.Run(name, func(t *testing.T) {
			begun, gone := make(chan struct{}), make(chan struct{})
			url := engine(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				if streams {
					w.Header().Set("Content-Type", "text/event-stream")
					io.WriteString(w, "data: 1\n\n")
					w.(http.Flusher).Flush()
				}
				close(begun)
				<-r.Context().Done()
				close(gone)
			})
			f := guardBefore(t, url, nil)
			ctx, cancel := context.WithCancel(t.Context())
			q, _ := http.NewRequestWithContext(ctx, "POST", f.url+"/v1/messages", strings.NewReader(chat))
			go func() {
				<-begun
				cancel()
			}()
			res, err := f.client.Do(q)
			if err == nil {
				_, err = io.ReadAll(res.Body)
				res.Body.Close()
			}
			if err == nil {
				t.Error("a cancelled request ended well")
			}
			<-gone
			if r := f.last(t, 1); r.Code != "client_gone" {
				t.Errorf("recorded %+v", r)
			}
		})
	}
}

func TestBodiesOverTheLimitAreRefused(t *testing.T) {
	url := engine(t, func(w http.ResponseWriter, r *http.Request) {
		if n, err := io.Copy(io.Discard, r.Body); err == nil && n > 2_000_000 {
			t.Errorf("the engine got a whole body of %d bytes", n)
		}
	})
	f := guardBefore(t, url, func(o *Options) { o.Limits.BodyBytes = 2_000_000 })
	for name, body := range map[string]io.Reader{
		"stated":  strings.NewReader(chatOf(3_000_000)),
		"chunked": io.MultiReader(strings.NewReader(chatOf(3_000_000))),
		"slight":  io.MultiReader(strings.NewReader(chatOf(2_000_001))),
	} {
		res, err := f.client.Post(f.url+"/v1/messages", "", body)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != 413 || !strings.Contains(string(b), "2,000,000 bytes") || !strings.Contains(string(b), "request_too_large") {
			t.Errorf("%s: %d %s", name, res.StatusCode, b)
		}
	}
	if status, _, b := f.post(t, "/v1/messages", chatOf(2_000_000)); status != 200 {
		t.Errorf("a body of exactly the limit: %d %s", status, b)
	}
}

// One who must wait is told so, and one who is not let in learns nothing else.
func TestConcurrencyOfOneTenant(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	url := engine(t, func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-end
	})
	f := guardBefore(t, url, func(o *Options) { o.Limits.TenantConcurrency = 1 })
	done := make(chan int)
	post := func(key string) (int, http.Header) {
		q, _ := http.NewRequest("POST", f.url+"/api/chat", strings.NewReader(chat))
		q.Header.Set("Authorization", "Bearer "+key)
		res, err := f.client.Do(q)
		if err != nil {
			t.Error(err)
			return 0, nil
		}
		res.Body.Close()
		return res.StatusCode, res.Header
	}
	for _, key := range []string{"a", "b"} {
		go func() {
			status, _ := post(key)
			done <- status
		}()
		<-begun
	}
	if status, h := post("a"); status != 429 || h.Get("Retry-After") == "" {
		t.Errorf("a tenant's second request: %d %v", status, h)
	}
	close(end)
	for range 2 {
		if status := <-done; status != 200 {
			t.Errorf("status %d", status)
		}
	}
	go func() { <-begun }()
	if status, _ := post("a"); status != 200 {
		t.Errorf("when it had ended: %d", status)
	}
}

func TestDrainLetsStreamsEndAndCutsOffTheRest(t *testing.T) {
	end := make(chan struct{})
	url := engine(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: 1\n\n")
		w.(http.Flusher).Flush()
		select {
		case <-end:
		case <-r.Context().Done():
		}
		io.WriteString(w, "data: [DONE]\n\n")
	})
	f := guardBefore(t, url, nil)
	begin := func() *http.Response {
		res, err := f.client.Post(f.url+"/v1/chat/completions", "", strings.NewReader(chat))
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	one := begin()
	ctx, cancel := context.WithCancel(t.Context())
	cut := make(chan int)
	go func() { cut <- f.Drain(ctx) }()
	eventually(t, "the guard to drain", func() bool { return f.Ready() != nil })
	if status, _, b := f.post(t, "/v1/chat/completions", chat); status != 503 || !strings.Contains(b, "draining") {
		t.Errorf("while draining: %d %s", status, b)
	}
	cancel()
	if n := <-cut; n != 1 {
		t.Errorf("cut off %d requests, want 1", n)
	}
	b, err := io.ReadAll(one.Body)
	one.Body.Close()
	if err == nil || strings.Contains(string(b), "[DONE]") || !strings.Contains(string(b), `"code":"draining"`) {
		t.Errorf("the stream ended %v, with %s", err, b)
	}
	close(end)
}

func TestReloadKeepsStreams(t *testing.T) {
	next := make(chan struct{})
	old := engine(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: old\n\n")
		w.(http.Flusher).Flush()
		<-next
		io.WriteString(w, "data: [DONE]\n\n")
	})
	fresh := engine(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "fresh") })
	f := guardBefore(t, old, nil)
	res, err := f.client.Post(f.url+"/v1/chat/completions", "", strings.NewReader(chat))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := f.Reload(Options{Upstreams: []Upstream{{Name: "fresh", BaseURL: "ftp://x"}}, Tenants: Tenants{Any: true}}); err == nil {
		t.Error("bad options are taken")
	}
	if err := f.Reload(Options{Upstreams: []Upstream{{Name: "fresh", BaseURL: fresh}}, Tenants: Tenants{Any: true}, Admission: unjudging}); err != nil {
		t.Fatal(err)
	}
	if _, _, b := f.post(t, "/v1/chat/completions", chat); b != "fresh" {
		t.Errorf("after a reload the old upstream answers: %s", b)
	}
	close(next)
	if b, err := io.ReadAll(res.Body); string(b) != "data: old\n\ndata: [DONE]\n\n" || err != nil {
		t.Errorf("the stream ended %v, with %s", err, b)
	}
}

// A broken invariant ends one request, and nothing else.
func TestPanicEndsOneRequest(t *testing.T) {
	url := engine(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") })
	calls := 0
	f := guardBefore(t, url, func(o *Options) {
		o.Random = readerFunc(func(p []byte) (int, error) {
			if calls++; calls == 2 { // the first is for the salts
				panic("kvcanary: internal error: no luck")
			}
			return len(p), nil
		})
	})
	status, _, b := f.post(t, "/v1/messages", chat)
	if status != 500 || !strings.Contains(b, `"api_error"`) || strings.Contains(b, "luck") {
		t.Errorf("%d %s", status, b)
	}
	if status, _, b := f.post(t, "/v1/messages", chat); status != 200 {
		t.Errorf("the next request: %d %s", status, b)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestSlowBodyIsGivenUp(t *testing.T) {
	url := engine(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	f := guardBefore(t, url, func(o *Options) { o.Limits.BodyTime = 50 * time.Millisecond })
	pr, pw := io.Pipe()
	defer pw.Close()
	go pw.Write([]byte(`{"model":"m"`))
	res, err := f.client.Post(f.url+"/v1/messages", "", pr)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusRequestTimeout {
		t.Errorf("status %d", res.StatusCode)
	}
}

// TestAnEmptyStreamEnds: one whose length is stated to be nothing has ended as
// soon as it begins, and leaves its connection to the next request.
func TestAnEmptyStreamEnds(t *testing.T) {
	for _, status := range []string{"200 OK", "503 Busy", "204 No Content"} {
		e := saying(t, "HTTP/1.1 "+status+"\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\n\r\n")
		f := guardBefore(t, e.url, nil)
		for i := range 3 {
			got, _, b := f.post(t, "/v1/chat/completions", chat)
			if fmt.Sprint(got) != status[:3] || b != "" {
				t.Errorf("%s, request %d: %d %q", status, i, got, b)
			}
			if r := f.last(t, i+1); r.Code != "" {
				t.Errorf("%s, request %d: recorded %+v", status, i, r)
			}
		}
		if n := e.connections(); n != 1 {
			t.Errorf("%s: 3 requests went over %d connections", status, n)
		}
	}
}

// TestEarlyAnswerIsReadWhole: an engine that refuses a prompt before all of it
// has come is heard to the end, though the client has stopped sending.
func TestEarlyAnswerIsReadWhole(t *testing.T) {
	const event = "data: {\"error\":{\"message\":\"too busy\"}}\n\n"
	begun := make(chan struct{})
	e := newRawEngine(t, func(c net.Conn, br *bufio.Reader) {
		if _, err := http.ReadRequest(br); err != nil {
			return
		}
		fmt.Fprintf(c, "HTTP/1.1 503 Busy\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n", len(event))
		<-begun
		io.WriteString(c, event)
		io.Copy(io.Discard, br)
	})
	f := guardBefore(t, e.url, nil)
	c, err := net.Dial("tcp", f.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	body := chatOf(2 * heldBody)
	fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body[:heldBody+heldBody/2])
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	close(begun)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(res.Body); res.StatusCode != 503 || string(b) != event || err != nil {
		t.Errorf("%d %q, %v", res.StatusCode, b, err)
	}
}
