package guard

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

const okHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

// once answers the first request of a connection with the same bytes, and closes it.
func once(t testing.TB, answer string) *rawEngine {
	return newRawEngine(t, func(c net.Conn, br *bufio.Reader) {
		if readRequest(br) == nil {
			io.WriteString(c, answer)
		}
	})
}

// An answer that is not what it says is never passed off as a whole one.
func TestHostileAnswers(t *testing.T) {
	const cut = "ERROR unexpected EOF"
	long := strings.Repeat("x", 40_000)
	for name, c := range map[string]struct {
		answer string
		status int    // that the client sees
		want   string // in what the client reads
	}{
		"garbage":                 {"\x16\x03\x01 hello\r\n\r\n", 502, "upstream_failed"},
		"nothing":                 {"", 502, "upstream_failed"},
		"half a head":             {"HTTP/1.1 200 OK\r\nContent-Le", 502, "upstream_failed"},
		"another protocol":        {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n", 502, "upstream_failed"},
		"flood of 1xx":            {strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 100), 502, "upstream_failed"},
		"1xx, then an answer":     {"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + okHead + "Content-Length: 2\r\n\r\nok", 200, "ok"},
		"compressed":              {okHead + "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok", 502, "upstream_encoded"},
		"in other letters":        {"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=UTF-16LE\r\nContent-Length: 2\r\n\r\nok", 502, "upstream_encoded"},
		"in other letters, apart": {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset = \"UTF-16\"\r\nContent-Length: 2\r\n\r\nok", 502, "upstream_encoded"},
		"of two kinds":            {okHead + "Content-Type: text/event-stream\r\nContent-Length: 2\r\n\r\nok", 502, "upstream_failed"},
		"redirect":                {"HTTP/1.1 307 x\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n", 502, "upstream_redirects"},
		"shorter than it says":    {okHead + "Content-Length: 10\r\n\r\nok", 502, "upstream_failed"},
		"no last chunk":           {okHead + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", 502, "upstream_failed"},
		"bad chunk size":          {okHead + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\nzz\r\n", 502, "upstream_failed"},
		"bad trailers":            {okHead + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX y\r\n\r\n", 502, "upstream_failed"},
		"endless trailers":        {okHead + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n" + strings.Repeat("X: y\r\n", 20_000) + "\r\n", 502, "upstream_failed"},
		"long and cut":            {okHead + "Content-Length: 50000\r\n\r\n" + long, 200, cut},
		"cut when nothing is out": {okHead + "Content-Length: 50000\r\n\r\n" + long, 502, "upstream_failed"},
		"end with the connection": {okHead + "\r\nok", 200, "ok"},
		"stream without last chunk": {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n", 200,
			"upstream_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			f := guardBefore(t, once(t, c.answer).url, func(o *Options) { o.Watch.Audit = strings.HasPrefix(name, "long") })
			status, _, b := f.post(t, "/v1/chat/completions", chat)
			if status != c.status || !strings.Contains(b, c.want) || strings.Contains(b, "169.254") {
				t.Errorf("%d %q, want %d with %q", status, b, c.status, c.want)
			}
			if r := f.last(t, 1); (r.Code == "") != (c.want == "ok") {
				t.Errorf("recorded %+v", r)
			}
		})
	}
}

// What stands behind an answer belongs to nobody: an upstream that says more
// than it announced could else answer the next client.
func TestNothingBehindAnAnswerReachesTheNext(t *testing.T) {
	const more = okHead + "Content-Length: 6\r\n\r\nstolen"
	for name, answer := range map[string]string{
		"length": okHead + "Content-Length: 2\r\n\r\nok" + more,
		"chunks": okHead + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n" + more,
		"204":    "HTTP/1.1 204 No Content\r\n\r\n" + more,
	} {
		t.Run(name, func(t *testing.T) {
			e := saying(t, answer)
			f := guardBefore(t, e.url, nil)
			for i := range 20 {
				if _, _, b := f.post(t, "/v1/chat/completions", chat); strings.Contains(b, "stolen") {
					t.Fatalf("request %d got %q", i, b)
				}
			}
			if n := e.connections(); n != 20 {
				t.Errorf("20 requests went over %d connections", n)
			}
		})
	}
	t.Run("later", func(t *testing.T) {
		late := make(chan struct{})
		e := newRawEngine(t, func(c net.Conn, br *bufio.Reader) {
			for readRequest(br) == nil {
				io.WriteString(c, okHead+"Content-Length: 2\r\n\r\nok")
				<-late
				io.WriteString(c, more)
				late <- struct{}{}
			}
		})
		f := guardBefore(t, e.url, nil)
		for range 5 {
			if _, _, b := f.post(t, "/v1/chat/completions", chat); b != "ok" {
				t.Fatalf("got %q", b)
			}
			late <- struct{}{}
			<-late
		}
	})
}

func TestConnectionsAreReused(t *testing.T) {
	for name, answer := range map[string]string{
		"length": okHead + "Content-Length: 2\r\n\r\nok",
		"chunks": okHead + "Transfer-Encoding: chunked\r\n\r\n2;ext=1\r\nok\r\n0\r\n\r\n",
		"204":    "HTTP/1.1 204 No Content\r\n\r\n",
	} {
		e := saying(t, answer)
		f := guardBefore(t, e.url, nil)
		for range 20 {
			f.post(t, "/v1/chat/completions", chat)
		}
		if n := e.connections(); n != 1 {
			t.Errorf("%s: 20 requests went over %d connections", name, n)
		}
	}
}

// A connection that the upstream has closed in between costs no request.
func TestClosedIdleConnectionIsReplaced(t *testing.T) {
	closed := make(chan struct{})
	e := newRawEngine(t, func(c net.Conn, br *bufio.Reader) {
		readRequest(br)
		io.WriteString(c, okHead+"Content-Length: 2\r\n\r\nok")
		c.Close()
		closed <- struct{}{}
	})
	f := guardBefore(t, e.url, nil)
	for range 10 {
		if status, _, b := f.post(t, "/v1/chat/completions", chat); status != 200 || b != "ok" {
			t.Fatalf("%d %q", status, b)
		}
		<-closed
	}
}

// An upstream that hangs up after the request may have acted on it: the request
// is not sent again.
func TestNoRetryOnceSent(t *testing.T) {
	e := newRawEngine(t, func(c net.Conn, br *bufio.Reader) { readRequest(br) })
	other := engine(t, func(http.ResponseWriter, *http.Request) { t.Error("sent again") })
	f := guardBefore(t, e.url, func(o *Options) {
		o.Upstreams = append(o.Upstreams, Upstream{Name: "other", BaseURL: other})
	})
	if status, _, b := f.post(t, "/v1/chat/completions", chat); status != 502 {
		t.Errorf("%d %s", status, b)
	}
	if n := e.connections(); n != 1 {
		t.Errorf("sent %d times", n)
	}
}

// One that cannot be reached has been sent nothing: the next one serves.
func TestDeadUpstreamIsSkipped(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + l.Addr().String()
	l.Close()
	alive := engine(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	f := guardBefore(t, dead, func(o *Options) { o.Upstreams = append(o.Upstreams, Upstream{Name: "alive", BaseURL: alive}) })
	for range 4 {
		if status, _, b := f.post(t, "/v1/chat/completions", chat); status != 200 {
			t.Errorf("%d %s", status, b)
		}
	}
	if err := f.Ready(); err != nil {
		t.Errorf("with one of two up: %v", err)
	}
	f = guardBefore(t, dead, nil)
	status, h, b := f.post(t, "/v1/chat/completions", chat)
	if status != 503 || h.Get("Retry-After") == "" || !strings.Contains(b, "upstream_unreachable") || strings.Contains(b, dead[7:]) {
		t.Errorf("%d %v %s", status, h, b)
	}
	if f.Ready() == nil {
		t.Error("ready with no upstream")
	}
}

// A refusal that comes before the upload has ended is passed on; a success that
// does is none.
func TestEarlyAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		status int
		want   string
	}{
		"refusal": {"HTTP/1.1 400 x\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\ntoo long", 400, "too long"},
		"success": {okHead + "Content-Length: 2\r\n\r\nok", 502, "upstream_failed"},
	} {
		for how, closes := range map[string]bool{"closing": true, "reading no more": false} {
			t.Run(name+", "+how, func(t *testing.T) {
				stay := make(chan struct{})
				defer close(stay)
				e := newRawEngine(t, func(conn net.Conn, br *bufio.Reader) {
					br.Peek(1)
					io.WriteString(conn, c.answer)
					if !closes {
						<-stay
					}
				})
				f := guardBefore(t, e.url, nil)
				pr, pw := io.Pipe()
				defer pw.Close()
				go io.WriteString(pw, chatOf(8 << 20)[:7<<20]) // and then it waits
				res, err := f.client.Post(f.url+"/v1/chat/completions", "", pr)
				if err != nil {
					t.Fatal(err)
				}
				b, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if res.StatusCode != c.status || !strings.Contains(string(b), c.want) || !res.Close {
					t.Errorf("%d %s, close %v", res.StatusCode, b, res.Close)
				}
			})
		}
	}
}

// A prompt that an engine did not take to its end, and could not be sent because
// of that, has no success either: 32 MB are more than lie on the way.
func TestSuccessForWhatCouldNotBeSentIsNone(t *testing.T) {
	e := newRawEngine(t, func(conn net.Conn, br *bufio.Reader) {
		br.Peek(1)
		io.WriteString(conn, okHead+"Content-Length: 2\r\n\r\nok")
	})
	u := guardBefore(t, e.url, nil).setup.Load().ring.ups[0]
	body := make([]byte, 32<<20)
	x, err := u.begin(t.Context(), &call{method: http.MethodPost, target: "/v1/chat/completions", body: body, whole: int64(len(body))})
	if err == nil {
		x.close()
		t.Errorf("status %d", x.status)
	}
}

// The error of a stream that broke off within an event is an event of its own.
func TestErrorOfAStreamIsAnEvent(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/chat/completions": "data: {\"half\n\ndata: {\"error\":",
		"/v1/messages":         "data: {\"half\n\nevent: error\ndata: {",
		"/api/chat":            "data: {\"half\n{\"error\":",
	} {
		e := once(t, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\nc\r\ndata: {\"half\r\n")
		f := guardBefore(t, e.url, func(o *Options) { o.Watch.Off = true })
		if _, _, b := f.post(t, path, chat); !strings.HasPrefix(b, want) || !strings.Contains(b, "ERROR unexpected EOF") {
			t.Errorf("%s: %q", path, b)
		}
	}
}

func TestSilentUpstreamIsGivenUp(t *testing.T) {
	stay := make(chan struct{})
	defer close(stay)
	for name, c := range map[string]struct {
		before string
		status int
	}{
		"before its answer": {"", 504},
		"within a stream":   {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n", 200},
	} {
		e := newRawEngine(t, func(conn net.Conn, br *bufio.Reader) {
			readRequest(br)
			io.WriteString(conn, c.before)
			<-stay
		})
		f := guardBefore(t, e.url, func(o *Options) { o.Limits.StallTime = 50 * time.Millisecond })
		if status, _, b := f.post(t, "/v1/chat/completions", chat); status != c.status || !strings.Contains(b, "upstream_timeout") {
			t.Errorf("%s: %d %s", name, status, b)
		}
	}
}
