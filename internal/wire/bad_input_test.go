package wire

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
)

// short are timeouts for servers that are silent on purpose.
var short = Options{HeaderTimeout: 100 * time.Millisecond, IdleTimeout: 100 * time.Millisecond}

// flush writes a piece of a body and sends it.
func flush(w http.ResponseWriter, s string) {
	io.WriteString(w, s)
	w.(http.Flusher).Flush()
}

// hijack takes the connection of a request over, its body unread.
func hijack(w http.ResponseWriter) net.Conn {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	return conn
}

// hang ends when the client goes away.
func hang(r *http.Request) {
	io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// wantFailure checks kind, and that the message is one clear line with its hint.
func wantFailure(t *testing.T, a *Answer, kind FailureKind, hint string) {
	t.Helper()
	if a.Refusal != nil || a.Failure == nil || a.Failure.Kind != kind {
		t.Fatalf("failure %+v, refusal %+v, want %s", a.Failure, a.Refusal, kind)
	}
	if m := a.Failure.Message; !strings.Contains(m, hint) || strings.ContainsAny(m, "\n\r") || len(m) > 500 {
		t.Errorf("message %q, want %q in it", m, hint)
	}
	if a.Served() || a.End.IsZero() {
		t.Errorf("served %v, end %v", a.Served(), a.End)
	}
}

func wantRefusal(t *testing.T, a *Answer, kind RefusalKind, words string) {
	t.Helper()
	if a.Failure != nil || a.Refusal == nil || a.Refusal.Kind != kind {
		t.Fatalf("refusal %+v, failure %+v, want %s", a.Refusal, a.Failure, kind)
	}
	if !strings.Contains(a.Refusal.Message, words) {
		t.Errorf("message %q, want %q in it", a.Refusal.Message, words)
	}
}

// TestBadBodies has every answer that is wrong in what it says.
func TestBadBodies(t *testing.T) {
	const sse, js = "text/event-stream", "application/json"
	errorEvent := `{"error":{"object":"error","message":"Input length (20480 tokens) exceeds the maximum allowed length (20474 tokens).","type":"BAD_REQUEST","param":null,"code":400}}`
	for _, c := range []struct {
		name, contentType, body string
		failure                 FailureKind
		refusal                 RefusalKind
		words                   string
	}{
		{name: "html", contentType: "text/html", body: "<!doctype html><title>Welcome</title>", failure: FailedNotAPI, words: "most end in /v1"},
		{name: "html as json", contentType: js, body: "\n <html></html>", failure: FailedNotAPI, words: "answered HTML"},
		{name: "html as stream", contentType: sse, body: "<html></html>", failure: FailedNotAPI, words: "answered HTML"},
		{name: "empty", contentType: sse, body: "", failure: FailedNotAPI, words: "empty body"},
		{name: "white space only", contentType: js, body: "\n\n \n", failure: FailedNotAPI, words: "nothing in it is an answer"},
		{name: "done only", contentType: sse, body: "data: [DONE]\n\n", failure: FailedNotAPI, words: "nothing in it is an answer"},
		{name: "plain text", contentType: "text/plain", body: "it works!\n", failure: FailedNotAPI, words: "nothing in it is an answer"},
		{name: "other JSON", contentType: js, body: `{"status":"ok"}`, failure: FailedNotAPI, words: "without choices"},
		{name: "bad JSON", contentType: js, body: `{"choices": oops}`, failure: FailedNotAPI, words: "not JSON"},
		{name: "event not JSON", contentType: sse, body: events(chunkHello, "oops", chunkStop, "[DONE]"), failure: FailedNotAPI, words: "an event of the stream is not JSON"},
		{name: "JSON cut", contentType: js, body: `{"choices":[{"message":{"content":"hel`, failure: FailedCut, words: "breaks off"},
		{name: "stream without end", contentType: sse, body: events(chunkHello), failure: FailedCut, words: "without a finish reason"},
		{name: "LM Studio error", contentType: js, body: `{"error":"Unexpected endpoint or method."}`, refusal: RefusedOther, words: "Unexpected endpoint"},
		{name: "z.ai code", contentType: js, body: `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`, refusal: RefusedTooLong, words: "exceeds max length"},
		{name: "z.ai flat", contentType: js, body: `{"code":500,"msg":"404 NOT_FOUND","success":false}`, refusal: RefusedServer, words: "NOT_FOUND"},
		{name: "flat error", contentType: js, body: `{"object":"error","message":"no","code":400}`, refusal: RefusedOther, words: "no"},
		{name: "SGLang error event", contentType: sse, body: events(errorEvent, "[DONE]"), refusal: RefusedPool, words: "maximum allowed length"},
		{name: "error event by name", contentType: sse, body: "event: error\ndata: {\"message\":\"boom\",\"code\":500}\n\n", refusal: RefusedServer, words: "boom"},
		{name: "llama.cpp error line", contentType: sse, body: `error: {"code":400,"message":"request (5827 tokens) exceeds the available context size (4096 tokens)","type":"exceed_context_size_error","n_prompt_tokens":5827,"n_ctx":4096}` + "\n\n", refusal: RefusedContext, words: "5827"},
		{name: "error line of words", contentType: sse, body: "error: out of memory\n\n", refusal: RefusedOther, words: "out of memory"},
		{name: "bare error in stream", contentType: sse, body: events(chunkHello) + `{"error":{"message":"boom","code":500}}` + "\n", refusal: RefusedServer, words: "boom"},
		{name: "pretty error as stream", contentType: sse, body: "{\n \"error\": {\n  \"message\": \"boom\", \"code\": 500}}\n", refusal: RefusedServer, words: "boom"},
		{name: "error after text", contentType: sse, body: events(chunkHello, errorEvent, "[DONE]"), refusal: RefusedPool, words: "maximum allowed length"},
		{name: "window as finish", contentType: js, body: `{"choices":[{"message":{"content":""},"finish_reason":"model_context_window_exceeded"}]}`, refusal: RefusedContext, words: "model_context_window_exceeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := serve(t, answer(200, c.contentType, c.body), Options{}).Do(context.Background(), prompt("hi"))
			if c.failure != "" {
				wantFailure(t, a, c.failure, c.words)
			} else {
				wantRefusal(t, a, c.refusal, c.words)
				if !a.Refusal.InAnswer {
					t.Error("not marked as inside an answer")
				}
			}
			if string(a.Raw.Bytes) != c.body {
				t.Errorf("raw %q", a.Raw.Bytes)
			}
			if strings.Contains(c.body, "hello") && a.Text(Content) != "hello " {
				t.Errorf("what had arrived is lost: %q", a.Text(Content))
			}
		})
	}
}

// TestStillServed has answers that are odd and yet answers.
func TestStillServed(t *testing.T) {
	usage := func(u string) string { return strings.Replace(chunkUsage, `"prompt_tokens":7`, u, 1) }
	for _, c := range []struct {
		name, body string
		usage      *Usage
	}{
		{"no usage", events(chunkHello, chunkWorld, chunkStop, "[DONE]"), nil},
		{"no DONE", events(chunkHello, chunkWorld, chunkStop, chunkUsage), &Usage{Prompt: 7, Completion: 2, Cached: 3}},
		{"no last blank line", strings.TrimRight(events(chunkHello, chunkWorld, chunkStop), "\n"), nil},
		{"no finish", events(chunkHello, chunkWorld, "[DONE]"), nil},
		{"CRLF, comments, BOM", "\ufeff: hi\r\n\r\n" + strings.ReplaceAll(goodStream, "\n", "\r\n"), &Usage{Prompt: 7, Completion: 2, Cached: 3}},
		{"keep-alive lines", "\n\n\n" + goodStream, &Usage{Prompt: 7, Completion: 2, Cached: 3}},
		{"usage twice", events(chunkHello, chunkWorld, strings.Replace(chunkUsage, "7", "1", 1), chunkStop, chunkUsage, "[DONE]"), &Usage{Prompt: 7, Completion: 2, Cached: 3}},
		{"usage negative", events(chunkHello, chunkWorld, chunkStop, usage(`"prompt_tokens":-7`), "[DONE]"), nil},
		{"usage NaN", events(chunkHello, chunkWorld, chunkStop, usage(`"prompt_tokens":NaN`), "[DONE]"), nil},
		{"usage in part NaN", events(chunkHello, chunkWorld, chunkStop, strings.Replace(chunkUsage, `"completion_tokens":2`, `"completion_tokens":-Infinity`, 1), "[DONE]"), &Usage{Prompt: 7, Completion: 0, Cached: 3}},
		{"usage of another type", events(chunkHello, chunkWorld, chunkStop, usage(`"prompt_tokens":{}`), "[DONE]"), nil},
		{"usage as float", events(chunkHello, chunkWorld, chunkStop, usage(`"prompt_tokens":7.0`), "[DONE]"), &Usage{Prompt: 7, Completion: 2, Cached: 3}},
		{"error null", events(strings.Replace(chunkHello, "{", `{"error":null,`, 1), chunkWorld, chunkStop, "[DONE]"), nil},
		{"text after DONE", goodStream + "data: more\n\n", &Usage{Prompt: 7, Completion: 2, Cached: 3}},
		{"stream without data:", strings.ReplaceAll(events(chunkHello, chunkWorld, chunkStop), "data: ", ""), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, contentType := range []string{"text/event-stream", "application/octet-stream"} {
				a := serve(t, answer(200, contentType, c.body), Options{}).Do(context.Background(), prompt("hi"))
				if !a.Served() || a.Text(Content) != "hello world" {
					t.Fatalf("content %q, refusal %+v, failure %+v", a.Text(Content), a.Refusal, a.Failure)
				}
				if (a.Usage == nil) != (c.usage == nil) || a.Usage != nil && *a.Usage != *c.usage {
					t.Errorf("usage %+v, want %+v", a.Usage, c.usage)
				}
				if string(a.Raw.Bytes) != c.body {
					t.Errorf("raw %q", a.Raw.Bytes)
				}
			}
		})
	}
}

func TestStatuses(t *testing.T) {
	for _, c := range []struct {
		status int
		header string
		kind   RefusalKind
		wait   time.Duration
	}{
		{401, "", RefusedAuth, 0}, {403, "", RefusedAuth, 0}, {404, "", RefusedModel, 0}, {405, "", RefusedModel, 0},
		{429, "", RefusedRate, 0}, {429, "3", RefusedRate, 3 * time.Second}, {402, "", RefusedQuota, 0},
		{413, "", RefusedBodySize, 0}, {500, "", RefusedServer, 0}, {503, "2", RefusedServer, 2 * time.Second}, {418, "", RefusedOther, 0},
	} {
		t.Run(fmt.Sprint(c.status, c.header), func(t *testing.T) {
			a := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if c.header != "" {
					w.Header().Set("Retry-After", c.header)
				}
				http.Error(w, `{"error":{"message":"not now"}}`, c.status)
			}, Options{}).Do(context.Background(), prompt("hi"))
			wantRefusal(t, a, c.kind, "not now")
			if a.Status != c.status || a.Refusal.Status != c.status || a.Refusal.RetryAfter != c.wait || a.Refusal.InAnswer {
				t.Errorf("answer %d, refusal %+v", a.Status, a.Refusal)
			}
			if !strings.Contains(a.Text(ErrorBody), "not now") {
				t.Errorf("error piece %q", a.Text(ErrorBody))
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	a := dial(t, "http://"+l.Addr().String(), Options{}).Do(context.Background(), prompt("hi"))
	wantFailure(t, a, FailedConnect, "nothing listens there")
	if a.Status != 0 {
		t.Errorf("status %d", a.Status)
	}
	// A resolver's answer does not need a resolver.
	f := connectFailure(context.Background(), "h", &net.OpError{Err: &net.DNSError{IsNotFound: true}})
	wantFailure(t, &Answer{Failure: f, End: time.Now()}, FailedConnect, "no such host")
	// A proxy that is down is not the target.
	proxy := &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return &url.URL{Scheme: "http", Host: l.Addr().String()}, nil }}
	c := dial(t, "http://target.test", Options{HTTP: &http.Client{Transport: proxy}})
	wantFailure(t, c.Do(context.Background(), prompt("hi")), FailedConnect, "the proxy of the environment")
}

func TestTLSFailures(t *testing.T) {
	h := answer(200, "text/event-stream", goodStream)
	secure := httptest.NewUnstartedServer(h)
	secure.Config.ErrorLog = quiet()
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewServer(h)
	defer plain.Close()
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	future := func() time.Time { return secure.Certificate().NotAfter.Add(time.Hour) }
	for _, c := range []struct {
		name, url string
		tls       *tls.Config
		hint      string
	}{
		{"unknown authority", secure.URL, nil, "not trusted here"},
		{"other name", secure.URL, &tls.Config{RootCAs: roots, ServerName: "elsewhere.test"}, "for another name"},
		{"expired", secure.URL, &tls.Config{RootCAs: roots, Time: future}, "expired"},
		{"https to http", strings.Replace(plain.URL, "http:", "https:", 1), nil, "use http://"},
		{"http to https", strings.Replace(secure.URL, "https:", "http:", 1), nil, "use https://"},
		{"old version", secure.URL, &tls.Config{RootCAs: roots, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}, "handshake failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantFailure(t, dial(t, c.url, Options{TLS: c.tls}).Do(context.Background(), prompt("hi")), FailedTLS, c.hint)
		})
	}
	if a := dial(t, secure.URL, Options{TLS: &tls.Config{RootCAs: roots}}).Do(context.Background(), prompt("hi")); !a.Served() {
		t.Errorf("with the right authority: %+v", a.Failure)
	}
}

func TestTimeouts(t *testing.T) {
	for _, c := range []struct {
		name, hint, kept string
		h                http.HandlerFunc
	}{
		{"no header", "no answer for 100ms", "", func(w http.ResponseWriter, r *http.Request) { hang(r) }},
		{"no body", "no first byte", "", func(w http.ResponseWriter, r *http.Request) { flush(w, ""); hang(r) }},
		{"stream stops", "no further byte", "hello ", func(w http.ResponseWriter, r *http.Request) { flush(w, events(chunkHello)); hang(r) }},
		{"document stops", "no further byte", "", func(w http.ResponseWriter, r *http.Request) { flush(w, `{"choices":[`); hang(r) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := serve(t, c.h, short).Do(context.Background(), prompt("hi"))
			wantFailure(t, a, FailedTimeout, c.hint)
			if a.Text(Content) != c.kept {
				t.Errorf("kept %q", a.Text(Content))
			}
		})
	}
}

// A server that stops reading stalls the upload.
func TestUploadStalls(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a := dial(t, "http://"+l.Addr().String(), short).Do(context.Background(), prompt(strings.Repeat("word ", 3<<20)))
	wantFailure(t, a, FailedTimeout, "no answer")
}

// A stream that never ends is bounded by its bytes or by the total time,
// whichever comes first.
func TestEndlessStreams(t *testing.T) {
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			flush(w, events(chunkHello))
		}
	}, Options{MaxAnswerBytes: 1 << 18, SpillDir: t.TempDir()}).Do(context.Background(), prompt("hi"))
	wantFailure(t, a, FailedTooBig, "over a limit")
	if a.Raw.Size != 1<<18 || len(a.Text(Content)) < 1000 {
		t.Errorf("raw %+v, %d bytes of content", a.Raw, len(a.Text(Content)))
	}
	a = serve(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			flush(w, ": still here\n\n")
			time.Sleep(time.Millisecond)
		}
	}, Options{TotalTimeout: 100 * time.Millisecond}).Do(context.Background(), prompt("hi"))
	wantFailure(t, a, FailedTimeout, "not done")
}

// TestHugeAnswers offers ten gigabytes in every shape; the limit is what is read.
func TestHugeAnswers(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, head, more string
		limit            int64
	}{
		{"stream", "", events(chunkHello), 1 << 20},
		{"after the finish", events(chunkStop), events(chunkHello), 1 << 20},
		{"one line", "data: ", "x", maxEvent * 2},
		{"document", `{"choices":[{"message":{"content":"`, "hello ", maxDocument * 2},
		{"comments", "", ": nothing\n", 1 << 20},
		{"white space", "", " \n", 1 << 20},
		{"plain", "hello", "x", 1 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, c.head)
				io.Copy(w, io.LimitReader(endless(strings.Repeat(c.more, 4096/len(c.more)+1)), 10<<30))
			}, Options{MaxAnswerBytes: c.limit, SpillDir: dir}).Do(context.Background(), prompt("hi"))
			wantFailure(t, a, FailedTooBig, "over a limit")
			if a.Raw.Size > c.limit {
				t.Errorf("%d bytes received", a.Raw.Size)
			}
			if st, err := os.Stat(a.Raw.Path); err != nil || st.Size() != a.Raw.Size {
				t.Errorf("file %v, %v, blob %+v", st, err, a.Raw)
			}
		})
	}
}

// A small compressed body may be a large one.
func TestCompressed(t *testing.T) {
	zip := func(r io.Reader) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		io.Copy(z, r)
		z.Close()
		return b.Bytes()
	}
	send := func(encoding string, body []byte) *Answer {
		return serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			w.Write(body)
		}, Options{MaxAnswerBytes: 1 << 20}).Do(context.Background(), prompt("hi"))
	}
	good := zip(strings.NewReader(goodStream))
	if a := send("gzip", good); !a.Served() || a.Text(Content) != "hello world" || string(a.Raw.Bytes) != goodStream {
		t.Errorf("good: %+v", a.Failure)
	}
	wantFailure(t, send("gzip", zip(io.LimitReader(endless(events(chunkHello)), 4<<20))), FailedTooBig, "over a limit")
	wantFailure(t, send("gzip", good[:len(good)/2]), FailedCut, "middle of the answer")
	wantFailure(t, send("gzip", []byte("not gzip at all")), FailedCut, "middle of the answer")
	wantFailure(t, send("br", good), FailedNotAPI, "compressed as br")
}

// TestCutAnywhere cuts a chunked stream after every byte. It is then cut, or
// its finish reason had come; what had arrived is kept.
func TestCutAnywhere(t *testing.T) {
	cut := make(chan int, 1)
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		n := <-cut
		conn := hijack(w)
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s", len(goodStream), goodStream[:n])
		conn.Close()
	}, Options{})
	finished := strings.Index(goodStream, chunkStop) + len(chunkStop)
	for n := 0; n <= len(goodStream); n++ {
		cut <- n
		a := c.Do(context.Background(), prompt("hi"))
		if n < finished {
			wantFailure(t, a, FailedCut, "see the server's log")
		} else if n > finished+1 && !a.Served() {
			t.Fatalf("cut at %d: %+v", n, a.Failure)
		}
		if string(a.Raw.Bytes) != goodStream[:n] {
			t.Fatalf("cut at %d: raw %q", n, a.Raw.Bytes)
		}
		if n > strings.Index(goodStream, chunkWorld)+len(chunkWorld)+1 && a.Text(Content) != "hello world" {
			t.Fatalf("cut at %d: content %q", n, a.Text(Content))
		}
	}
}

func TestHangUps(t *testing.T) {
	for _, c := range []struct {
		name, say string
		kind      FailureKind
		hint      string
	}{
		{"nothing", "", FailedCut, "before any answer"},
		{"half a header", "HTTP/1.1 200 OK\r\nContent-Ty", FailedNotAPI, "proper HTTP"},
		{"not HTTP", "SSH-2.0-OpenSSH_9.6\r\n\r\n", FailedNotAPI, "proper HTTP"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := serve(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				conn := hijack(w)
				io.WriteString(conn, c.say)
				conn.Close()
			}, Options{}).Do(context.Background(), prompt("hi"))
			wantFailure(t, a, c.kind, c.hint)
		})
	}
}

func TestInvalidUTF8(t *testing.T) {
	body := strings.Replace(goodStream, "world", "wor\xff\xfeld", 1)
	a := serve(t, answer(200, "text/event-stream", body), Options{}).Do(context.Background(), prompt("hi"))
	if !a.Served() || a.Text(Content) != "hello wor\ufffd\ufffdld" || string(a.Raw.Bytes) != body {
		t.Errorf("content %q, raw %q, failure %+v", a.Text(Content), a.Raw.Bytes, a.Failure)
	}
}

// TestEarlyAnswer has a server that answers from the headers alone and closes:
// the answer must arrive, not the broken pipe.
func TestEarlyAnswer(t *testing.T) {
	for _, body := range []string{`{"error":{"message":"too large","code":413}}`, ""} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			conn := hijack(w)
			fmt.Fprintf(conn, "HTTP/1.1 413 Payload Too Large\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			conn.Close()
		}, Options{})
		big := prompt(strings.Repeat("many words and ", 1<<18))
		for range 8 {
			a := c.Do(context.Background(), big)
			if a.Status != 413 || a.Refusal == nil || body != "" && a.Refusal.Kind != RefusedBodySize {
				t.Fatalf("status %d, refusal %+v, failure %+v", a.Status, a.Refusal, a.Failure)
			}
		}
	}
}

// The same by a server that closes properly, over HTTP/1.1 and HTTP/2.
func TestEarlyAnswerByGo(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, `{"error":{"message":"The input (9 tokens) is longer than the model's context length (8 tokens)."}}`, 400)
	})
	for _, h2 := range []bool{false, true} {
		srv := httptest.NewUnstartedServer(h)
		srv.EnableHTTP2 = h2
		srv.StartTLS()
		defer srv.Close()
		roots := x509.NewCertPool()
		roots.AddCert(srv.Certificate())
		c := dial(t, srv.URL, Options{TLS: &tls.Config{RootCAs: roots}})
		for range 3 {
			a := c.Do(context.Background(), prompt(strings.Repeat("many words and ", 1<<18)))
			wantRefusal(t, a, RefusedContext, "longer")
		}
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	followed := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed = true }))
	defer other.Close()
	for _, status := range []int{301, 302, 307, 308} {
		r := prompt("hi")
		r.Key = "sk-marked-secret-0001"
		a := serve(t, func(w http.ResponseWriter, req *http.Request) {
			http.Redirect(w, req, other.URL+"/v2/chat?k="+strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "), status)
		}, Options{}).Do(context.Background(), r)
		wantFailure(t, a, FailedNotAPI, "redirects (status "+fmt.Sprint(status)+") to "+other.URL+"/v2/chat, ")
	}
	if followed {
		t.Error("followed")
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		flush(w, events(chunkHello))
		cancel()
		hang(r)
	}, Options{}).Do(ctx, prompt("hi"))
	wantFailure(t, a, FailedCanceled, "stopped")
	c := serve(t, answer(200, "text/event-stream", goodStream), Options{})
	wantFailure(t, c.Do(ctx, prompt("hi")), FailedCanceled, "stopped")
}

func TestUnreadablePrompt(t *testing.T) {
	r := prompt("")
	r.Messages[0].Text = broken{"abc"}
	wantFailure(t, serve(t, answer(200, "", goodStream), Options{}).Do(context.Background(), r), FailedRequest, "disk on fire")
}

// An open connection after the end of the answer delays nothing for long and
// spoils nothing.
func TestOpenAfterDone(t *testing.T) {
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		flush(w, goodStream)
		hang(r)
	}, short).Do(context.Background(), prompt("hi"))
	if !a.Served() || a.Text(Content) != "hello world" {
		t.Errorf("failure %+v", a.Failure)
	}
}

// A target that switches protocols leaves a bare connection, which would be
// waited on for ever.
func TestSwitchingProtocolsIsNoAnswer(t *testing.T) {
	hijack := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { conn.Close() })
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
	}
	s := httptest.NewServer(http.HandlerFunc(hijack))
	defer s.Close()
	c, err := NewClient(Options{BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	a := c.Do(ctx, prompt("hi"))
	if a.Failure == nil || a.Failure.Kind != FailedNotAPI {
		t.Errorf("failure %+v", a.Failure)
	}
	if _, ok, _ := c.CountTokens(ctx, "", "m", prompt("hi").Messages); ok {
		t.Error("it counts tokens")
	}
	if ctx.Err() != nil {
		t.Error("it was waited for")
	}
}
