package guard

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Whatever a client writes on a connection, no request reaches the engine that
// the guard has not seen, and none is divided there in another way than here.
func TestNothingIsSmuggled(t *testing.T) {
	const (
		post     = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
		smuggled = "POST /flush_cache HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
		hidden   = "GET /server_info HTTP/1.1\r\nHost: x\r\n\r\n"
	)
	size := func(s string) string { return "Content-Length: " + strconv.Itoa(len(s)) + "\r\n" }
	chunk := func(s string) string { return fmt.Sprintf("%x", len(s)) + "\r\n" + s + "\r\n" }
	for name, c := range map[string]struct {
		sent  string
		posts int // chats that may reach the engine
	}{
		"plain":                      {post + size(chat) + "\r\n" + chat, 1},
		"two in a row":               {strings.Repeat(post+size(chat)+"\r\n"+chat, 2), 2},
		"length and chunks":          {post + size(chat) + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, 0},
		"chunks and a length":        {post + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" + chunk(chat) + "0\r\n\r\n" + smuggled, 1},
		"two lengths":                {post + "Content-Length: 0\r\n" + size(chat) + "\r\n" + smuggled, 0},
		"two equal lengths":          {post + size(chat) + size(chat) + "\r\n" + chat + smuggled, 1},
		"list of lengths":            {post + "Content-Length: 5, 5\r\n\r\n12345" + smuggled, 0},
		"signed length":              {post + "Content-Length: +5\r\n\r\n12345" + smuggled, 0},
		"length in hexadecimal":      {post + "Content-Length: 0x5\r\n\r\n12345" + smuggled, 0},
		"length with a space":        {post + "Content-Length : 0\r\n\r\n" + smuggled, 0},
		"shorter than it says":       {post + size(chat)[:len(size(chat))-2] + "9\r\n\r\n" + chat + smuggled, 0},
		"gzip, chunked":              {post + "Transfer-Encoding: gzip, chunked\r\n\r\n" + chunk(chat) + "0\r\n\r\n" + smuggled, 0},
		"xchunked":                   {post + "Transfer-Encoding: xchunked\r\n\r\n" + smuggled, 0},
		"chunked, padded":            {post + "Transfer-Encoding: \x0bchunked\r\n\r\n" + smuggled, 0},
		"chunked twice":              {post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(chat) + "0\r\n\r\n" + smuggled, 0},
		"chunk size with a sign":     {post + "Transfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n" + smuggled, 0},
		"chunk size that overflows":  {post + "Transfer-Encoding: chunked\r\n\r\n10000000000000005\r\nhello\r\n0\r\n\r\n" + smuggled, 0},
		"chunk size with 0x":         {post + "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n" + smuggled, 0},
		"chunk without a line end":   {post + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x", len(chat)) + "\r\n" + chat + "xx0\r\n\r\n" + smuggled, 0},
		"chunk ends in a line feed":  {post + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x", len(chat)) + "\n" + chat + "\r\n0\r\n\r\n" + smuggled, 0},
		"oversized extension":        {post + "Transfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("a", 1<<20) + "\r\n{\r\n0\r\n\r\n" + smuggled, 0},
		"many extensions":            {post + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+strings.Repeat("a", 2000)+"\r\n \r\n", 500) + "0\r\n\r\n" + smuggled, 0},
		"trailer with a length":      {post + "Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n" + chunk(chat) + "0\r\nContent-Length: 500\r\n\r\n" + smuggled, 0},
		"folded header":              {post + "X-A: b\r\n Transfer-Encoding: chunked\r\n" + size(chat) + "\r\n" + chat + smuggled, 1},
		"folded coding":              {post + "Transfer-Encoding:\r\n chunked\r\n" + size(chat) + "\r\n" + chat + smuggled, 0},
		"header with a line feed":    {post + "X-A: b\nTransfer-Encoding: chunked\r\n" + size(chat) + "\r\n" + chat + smuggled, 0},
		"header with NUL":            {post + "X-A: b\x00c\r\n" + size(chat) + "\r\n" + chat + smuggled, 0},
		"header with return":         {post + "User-Agent: b\rX: c\r\n" + size(chat) + "\r\n" + chat, 0},
		"no host":                    {"POST /v1/chat/completions HTTP/1.1\r\n" + size(chat) + "\r\n" + chat + smuggled, 0},
		"two hosts":                  {post + "Host: y\r\n" + size(chat) + "\r\n" + chat + smuggled, 0},
		"absolute":                   {"POST http://other/v1/chat/completions HTTP/1.1\r\nHost: x\r\n" + size(chat) + "\r\n" + chat, 1},
		"absolute, elsewhere":        {"POST http://x/server_info HTTP/1.1\r\nHost: x\r\n" + size(chat) + "\r\n" + chat, 0},
		"request in the body":        {post + size(hidden) + "\r\n" + hidden, 0},
		"path with a return":         {"GET /v1/models/a%0d%0aX:%20b HTTP/1.1\r\nHost: x\r\n\r\n", 0},
		"path with a space":          {"POST /v1/chat/completions /x HTTP/1.1\r\nHost: x\r\n" + size(chat) + "\r\n" + chat, 0},
		"upgrade":                    {post + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n" + size(chat) + "\r\n" + chat, 1},
		"websocket":                  {"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n", 0},
		"HTTP/2 without TLS":         {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0},
		"HTTP/0.9":                   {"GET /server_info\r\n\r\n", 0},
		"HTTP/1.0 with chunks":       {"POST /v1/chat/completions HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(chat) + "0\r\n\r\n" + smuggled, 0},
		"body of a GET":              {"GET /v1/models HTTP/1.1\r\nHost: x\r\n" + size(smuggled) + "\r\n" + smuggled, 0},
		"connection names a header":  {post + "Connection: Content-Length\r\n" + size(chat) + "\r\n" + chat + hidden, 1},
		"request line of a megabyte": {"GET /v1/models?" + strings.Repeat("a", 1<<20) + " HTTP/1.1\r\nHost: x\r\n\r\n", 0},
		"expects":                    {post + "Expect: 100-continue\r\n" + size(chat) + "\r\n" + chat, 1},
		"expects nonsense":           {post + "Expect: 200-ok\r\n" + size(chat) + "\r\n" + chat, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			posts := 0
			url := engine(t, func(w http.ResponseWriter, r *http.Request) {
				b, err := io.ReadAll(r.Body)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case r.URL.String() == "/v1/models" && r.Method == "GET" && len(b) == 0:
				case r.URL.String() != "/v1/chat/completions" || r.Method != "POST":
					t.Errorf("the engine was asked %s %s", r.Method, r.URL)
				case err == nil && string(b) == chat:
					posts++
				case err == nil:
					t.Errorf("the engine was sent %q", b)
				}
				io.WriteString(w, "{}")
			})
			f := guardBefore(t, url, func(o *Options) { o.Limits.HeaderTime, o.Limits.BodyTime = time.Second, time.Second })
			conn, err := net.Dial("tcp", f.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			// The last request ends the connection, if what comes before it has not.
			go io.WriteString(conn, c.sent+"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			answers, _ := io.ReadAll(conn)
			mu.Lock()
			defer mu.Unlock()
			if posts != c.posts {
				t.Errorf("%d chats reached the engine, want %d; the client read %q", posts, c.posts, answers)
			}
		})
	}
}
