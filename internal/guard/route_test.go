package guard

import (
	"net/http"
	"net/url"
	"testing"

	"pgregory.net/rapid"
)

func TestRoutes(t *testing.T) {
	for _, c := range []struct{ method, path, target, allow string }{
		{"POST", "/v1/chat/completions", "/v1/chat/completions", ""},
		{"POST", "/v1/messages?beta=true&x=1", "/v1/messages?beta=true", ""},
		{"POST", "/v1/messages?beta=a%26b%3D1", "/v1/messages", ""},
		{"POST", "/v1/messages?%zz", "/v1/messages", ""},
		{"GET", "/v1/models", "/v1/models", ""},
		{"HEAD", "/v1/models", "/v1/models", ""},
		{"GET", "/v1/models/zai-org/GLM-5.3", "/v1/models/zai-org/GLM-5.3", ""},
		{"GET", "/v1/models/zai-org%2FGLM-5.3", "/v1/models/zai-org%2FGLM-5.3", ""},
		{"GET", "/v1/models/zai-org%2fGLM-5.3", "", ""},
		{"GET", "/v1/models/llama3:8b", "/v1/models/llama3:8b", ""},
		{"GET", "/v1/models/", "", ""},
		{"GET", "/v1/models/..", "", ""},
		{"GET", "/v1/models/../../server_info", "", ""},
		{"GET", "/v1/models/%2e%2e%2fserver_info", "", ""},
		{"GET", "/v1/models/a/../b", "", ""},
		{"GET", "/v1/models/a//b", "", ""},
		{"GET", "/v1/models/a%3Fx", "", ""},
		{"GET", "/v1/models/a;b", "", ""},
		{"GET", "/v1/models/a%00", "", ""},
		{"GET", "/v1/models/a%5C..%5Cb", "", ""},
		{"GET", "/v1/chat/completions", "", "POST"},
		{"DELETE", "/v1/models", "", "GET, HEAD"},
		{"OPTIONS", "/v1/messages", "", "POST"},
		{"CONNECT", "/v1/messages", "", "POST"},
		{"POST", "/v1/chat/completions/", "", ""},
		{"POST", "/v1//chat/completions", "", ""},
		{"POST", "//v1/chat/completions", "", ""},
		{"POST", "/V1/chat/completions", "", ""},
		{"POST", "/v1/chat/../chat/completions", "", ""},
		{"POST", "/v1/chat%2Fcompletions", "", ""},
		{"POST", "/v1/%63hat/completions", "", ""},
		{"POST", "/v1/chat/completions;x=1", "", ""},
		{"POST", "/v1/chat/completions%00", "", ""},
		{"GET", "/server_info", "", ""},
		{"GET", "/metrics", "", ""},
		{"GET", "/slots", "", ""},
		{"POST", "/flush_cache", "", ""},
		{"POST", "/tokenize", "", ""},
		{"POST", "/api/pull", "", ""},
		{"GET", "/debug/pprof/", "", ""},
		{"GET", "/", "", ""},
		{"GET", "", "", ""},
	} {
		u, err := url.Parse(c.path)
		if err != nil {
			// The client's URL parser is not the server's business: take the raw query apart by hand.
			t.Fatal(err)
		}
		r, target, allow := find(c.method, u)
		if target != c.target || allow != c.allow || (r != nil) != (c.target != "") {
			t.Errorf("%s %s: target %q, allow %q, want %q and %q", c.method, c.path, target, allow, c.target, c.allow)
		}
	}
}

// Whatever the client's path is, the engine is asked for a path of the table.
func TestTargetIsAlwaysOfTheTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := "/" + rapid.StringOfN(rapid.RuneFrom([]rune("v1/chatmodelsp.%2efF5Cc;?#:@\\ \x00é")), 0, 40, -1).Draw(t, "path")
		if rapid.Bool().Draw(t, "model") {
			raw = "/v1/models" + raw
		}
		u, err := url.ParseRequestURI(raw)
		if err != nil {
			return
		}
		r, target, _ := find(http.MethodGet, u)
		if r == nil {
			return
		}
		back, err := url.Parse(target)
		if err != nil || back.Path != r.path && (back.Path[:len(r.path)] != r.path || !modelName(back.Path[len(r.path):])) {
			t.Fatalf("%q becomes %q, which is not under %q (%v)", raw, target, r.path, err)
		}
	})
}

func TestTenants(t *testing.T) {
	h := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	keys := Tenants{Keys: digests("sk-a", "alpha", "sk-b", "beta")}
	header := Tenants{Header: "X-Customer"}
	anyone := Tenants{Any: true}
	for _, c := range []struct {
		name string
		t    Tenants
		h    http.Header
		want string // "" for refused
	}{
		{"bearer", keys, h("Authorization", "Bearer sk-a"), "alpha"},
		{"scheme in other case", keys, h("Authorization", "bearer sk-b"), "beta"},
		{"anthropic", keys, h("X-Api-Key", "sk-b"), "beta"},
		{"azure", keys, h("Api-Key", "sk-b"), "beta"},
		{"the same key twice", keys, h("X-Api-Key", "sk-b", "Authorization", "Bearer sk-b"), "beta"},
		{"two keys", keys, h("X-Api-Key", "sk-b", "Authorization", "Bearer sk-a"), ""},
		{"two lines", keys, h("X-Api-Key", "sk-b", "X-Api-Key", "sk-a"), ""},
		{"unknown", keys, h("X-Api-Key", "sk-c"), ""},
		{"none", keys, h(), ""},
		{"empty", keys, h("Authorization", "Bearer "), ""},
		{"another scheme", keys, h("Authorization", "Basic c2stYQ=="), ""},
		{"a name is no key", keys, h("X-Customer", "alpha"), ""},
		{"header", header, h("X-Customer", "alpha"), "alpha"},
		{"header twice", header, h("X-Customer", "alpha", "X-Customer", "beta"), ""},
		{"no header", header, h("Authorization", "Bearer sk-a"), ""},
		{"header with a space", header, h("X-Customer", "al pha"), ""},
		{"no key", anyone, h(), "anonymous"},
		{"any two keys", anyone, h("X-Api-Key", "sk-b", "Authorization", "Bearer sk-a"), ""},
	} {
		got, err := c.t.of(c.h)
		if got.Name != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v", c.name, got.Name, err)
		}
	}
	a, _ := anyone.of(h("X-Api-Key", "sk-a"))
	b, _ := anyone.of(h("X-Api-Key", "sk-b"))
	same, _ := anyone.of(h("Authorization", "Bearer sk-a"))
	if a.Name == b.Name || a != same || a.Name == anonymous {
		t.Errorf("keys are tenants %q, %q and %q", a.Name, b.Name, same.Name)
	}
}
