package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// rendering is a server that counts in two steps: it writes messages out as
// text, and says of a text which tokens it has. Like llama.cpp it answers a
// request to tokenize that names no text with an empty list, and 200.
type rendering struct {
	rendered, cut string // answers in place of the usual ones, if not empty
	status        int    // of the template endpoint; 0 for 200
	paths         []string
}

func (s *rendering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.paths = append(s.paths, r.URL.Path)
	var q struct {
		Content  string `json:"content"`
		Special  bool   `json:"add_special"`
		Parse    bool   `json:"parse_special"`
		Messages []struct{ Role, Content string }
	}
	json.NewDecoder(r.Body).Decode(&q)
	switch {
	case r.URL.Path == "/apply-template" && s.status != 0:
		w.WriteHeader(s.status)
	case r.URL.Path == "/apply-template" && s.rendered != "":
		io.WriteString(w, s.rendered)
	case r.URL.Path == "/apply-template":
		text := ""
		for _, m := range q.Messages {
			text += "[" + m.Role + "] " + m.Content + "\n"
		}
		json.NewEncoder(w).Encode(map[string]string{"prompt": text})
	case r.URL.Path == "/tokenize" && q.Content == "":
		io.WriteString(w, `{"tokens":[]}`)
	case r.URL.Path == "/tokenize" && s.cut != "":
		io.WriteString(w, s.cut)
	case r.URL.Path == "/tokenize" && q.Special && q.Parse:
		json.NewEncoder(w).Encode(map[string]any{"tokens": make([]int, len(q.Content)+1)})
	default:
		http.NotFound(w, r)
	}
}

// An empty list of tokens is no count of zero: the client goes on to the
// server's own way of counting and then keeps to it.
func TestCountRendered(t *testing.T) {
	s := &rendering{}
	c := serve(t, s.ServeHTTP, Options{})
	want := len("[system] be \"brief\"\n[user] hi\n") + 1
	for range 2 {
		if n, ok, err := c.CountTokens(context.Background(), "", "m", two); n != want || !ok || err != nil {
			t.Errorf("%d, %v, %v, want %d", n, ok, err, want)
		}
	}
	if got := fmt.Sprint(s.paths); got != "[/tokenize /v1/tokenize /apply-template /tokenize /apply-template /tokenize]" {
		t.Errorf("asked %s", got)
	}
}

func TestRenderedButNotCounted(t *testing.T) {
	for _, s := range []*rendering{
		{rendered: `{"prompt":""}`}, {rendered: `{"prompt":7}`}, {rendered: "<html>"},
		{cut: `{"tokens":[]}`}, {cut: `{"tokens":7}`}, {cut: `{"count":7}`}, {cut: `[1]`}, {cut: `"no"`}, {status: 404},
	} {
		n, ok, err := serve(t, s.ServeHTTP, Options{}).CountTokens(context.Background(), "", "m", two)
		if n != 0 || ok || err != nil {
			t.Errorf("%+v: %d, %v, %v", s, n, ok, err)
		}
	}
}

func TestRenderedErrors(t *testing.T) {
	long := &rendering{rendered: `{"prompt":"` + strings.Repeat("a", maxRendered) + `"}`}
	for want, s := range map[string]*rendering{"too long to keep": long, "503": {status: 503}} {
		_, ok, err := serve(t, s.ServeHTTP, Options{}).CountTokens(context.Background(), "", "m", two)
		if _, is := errors.AsType[*CallError](err); ok || !is || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", want, ok, err)
		}
	}
}

func FuzzReadLength(f *testing.F) {
	for _, s := range []string{`{"tokens":[1,2]}`, `{"a":{},"tokens":[[1],{"id":2}]}`, `{"tokens":[`, `{"tokens":[]}`, "[]", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := readLength(strings.NewReader(s), "tokens")
		if (n > 0) == (err != nil) {
			t.Errorf("%d, %v", n, err)
		}
	})
}
