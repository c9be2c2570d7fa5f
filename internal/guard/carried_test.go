package guard

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/canary"
)

// TestFindersKeepNothing: what one request has is no part of the next one's: not
// the canaries that it carried, nor the words that it ended with.
func TestFindersKeepNothing(t *testing.T) {
	c := canary.New(canary.Key{7})
	id := canary.MakeID(1, 2, 3)
	text, err := io.ReadAll(c.Words(id, 0, canary.MinWords))
	if err != nil {
		t.Fatal(err)
	}
	half := strings.Index(string(text), " ") + 1
	s := &setup{Options: Options{Watch: Watch{Coders: []*canary.Coder{c}}}}
	for i, x := range []struct {
		body    string
		carries bool
	}{{string(text), true}, {string(text[:half]), false}, {string(text[half:]), false}, {"nothing", false}, {string(text), true}} {
		o := s.carries()
		o.write([]byte(x.body))
		o.close()
		if o.has(id) != x.carries {
			t.Errorf("request %d: %v, want %v", i, o.has(id), x.carries)
		}
	}
}

// TestHeadersCarry: a canary is seen in every place that a client can write to,
// be it the shortest that can be found.
func TestHeadersCarry(t *testing.T) {
	c := canary.New(canary.Key{7})
	id := canary.MakeID(1, 2, 3)
	s := &setup{Options: Options{Watch: Watch{Coders: []*canary.Coder{c}}}}
	models := &route{path: "/v1/models/"}
	for _, token := range []string{c.Token(id), c.Token(id)[5:]} { // five letters may be cut off
		r := httptest.NewRequest("GET", "/v1/models/"+token, nil)
		o := s.carries()
		if o.head(r, models); !o.has(id) {
			t.Errorf("%q in the path is not seen", token)
		}
		r = httptest.NewRequest("GET", "/v1/models", nil)
		r.Header.Set("X-Request-Id", token)
		r.Header.Set("Accept", "a/b")
		o = s.carries()
		if o.head(r, &route{path: "/v1/models"}); !o.has(id) {
			t.Errorf("%q in a header is not seen", token)
		}
	}
}
