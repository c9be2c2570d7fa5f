package guard

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"testing"
)

func digests(keysAndNames ...string) map[[sha256.Size]byte]Tenant {
	out := map[[sha256.Size]byte]Tenant{}
	for i := 0; i < len(keysAndNames); i += 2 {
		out[sha256.Sum256([]byte(keysAndNames[i]))] = Tenant{Name: keysAndNames[i+1]}
	}
	return out
}

func parse(s string) (head, framing, error) {
	budget := 32 << 10
	h, err := readHead(bufio.NewReaderSize(strings.NewReader(s), 16), &budget)
	if err != nil {
		return h, framing{}, err
	}
	f, err := h.frame()
	return h, f, err
}

func TestHeads(t *testing.T) {
	for _, c := range []struct {
		name, head string
		want       framing
	}{
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", framing{length: 5, keep: true}},
		{"no reason", "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\n", framing{length: 5, keep: true}},
		{"chunks", "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n", framing{length: -1, chunked: true, keep: true}},
		{"closing", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: x, Close\r\n\r\n", framing{length: 5}},
		{"neither", "HTTP/1.1 200 OK\r\n\r\n", framing{length: -1}},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", framing{length: 5}},
		{"204", "HTTP/1.1 204 No Content\r\n\r\n", framing{length: 0, keep: true}},
	} {
		if _, f, err := parse(c.head); err != nil || f != c.want {
			t.Errorf("%s: %+v, %v, want %+v", c.name, f, err, c.want)
		}
	}
	h, _, err := parse("HTTP/1.1 429 slow down\r\nx-a:  1 \t\r\nX-A: 2\r\nX-Empty:\r\nX-Long: " + strings.Repeat("y", 9000) + "\r\n\r\n")
	if err != nil || h.status != 429 || strings.Join(h.header["X-A"], ",") != "1,2" || h.header.Get("X-Empty") != "" || len(h.header.Get("X-Long")) != 9000 {
		t.Errorf("%v, %v", h, err)
	}
}

// What readers differ on is refused.
func TestBadHeads(t *testing.T) {
	for name, s := range map[string]string{
		"HTTP/2":                  "HTTP/2.0 200 OK\r\n\r\n",
		"garbage":                 "<html>\r\n\r\n",
		"no status":               "HTTP/1.1 \r\n\r\n",
		"two digits":              "HTTP/1.1 20 OK\r\n\r\n",
		"four digits":             "HTTP/1.1 2000 OK\r\n\r\n",
		"status 600":              "HTTP/1.1 600 OK\r\n\r\n",
		"status 099":              "HTTP/1.1 099 OK\r\n\r\n",
		"two spaces":              "HTTP/1.1  200 OK\r\n\r\n",
		"bare line feed":          "HTTP/1.1 200 OK\nContent-Length: 5\r\n\r\n",
		"bare line feed in lines": "HTTP/1.1 200 OK\r\nContent-Length: 5\n\r\n",
		"carriage return within":  "HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n",
		"folded":                  "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
		"space before the colon":  "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n",
		"no colon":                "HTTP/1.1 200 OK\r\nContent-Length\r\n\r\n",
		"no name":                 "HTTP/1.1 200 OK\r\n: 5\r\n\r\n",
		"NUL":                     "HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n",
		"both lengths":            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
		"two lengths":             "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
		"list of lengths":         "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n",
		"signed length":           "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
		"negative length":         "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
		"hexadecimal length":      "HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\n",
		"huge length":             "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"empty length":            "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
		"gzip, chunked":           "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"chunked twice":           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		"identity":                "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n",
		"chunks of HTTP/1.0":      "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
		"204 with a body":         "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
		"too many headers":        "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: 1\r\n", 201) + "\r\n",
		"too large":               "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", 40_000) + "\r\n\r\n",
		"endless line":            "HTTP/1.1 200 OK" + strings.Repeat("y", 40_000),
	} {
		if h, f, err := parse(s); !errors.Is(err, errHead) {
			t.Errorf("%s: taken as %v %+v, %v", name, h, f, err)
		}
	}
	for _, s := range []string{"", "HTTP/1.1 20", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nX: 1"} {
		if _, _, err := parse(s); err == nil {
			t.Errorf("%q is taken for a head", s)
		}
	}
}

// What is taken for a head is one for net/http too, with the same length.
func FuzzHead(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.0 404 x\r\nA: b\r\n\r\n", "HTTP/1.1 204 x\r\n\r\n", "HTTP/1.1 304 x\r\nContent-Length: 0\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, fr, err := parse(string(b))
		if err != nil || h.status < 200 {
			return
		}
		res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(b)), nil)
		if err != nil {
			t.Fatalf("net/http refuses %q: %v", b, err)
		}
		length := res.ContentLength
		if h.status == http.StatusNotModified {
			length = 0
		}
		if res.StatusCode != h.status || length != fr.length || fr.chunked != (len(res.TransferEncoding) > 0) || fr.keep && res.Close {
			t.Errorf("%q: %+v %+v, net/http: %d, length %d, close %v", b, h, fr, res.StatusCode, res.ContentLength, res.Close)
		}
	})
}
