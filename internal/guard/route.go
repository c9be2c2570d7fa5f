package guard

import (
	"net/http"
	"net/url"
	"strings"
)

// route is one thing that clients may ask for. Whatever is not in the table
// does not exist: what an engine offers beside it reaches across its clients'
// requests, or tells of them.
type route struct {
	method  string   // GET also serves HEAD
	path    string   // as the engine knows it too; one that ends in / takes a name behind it
	dialect string   // of its errors, its fields and its answers
	counts  bool     // answers with a number of tokens: nothing is computed, so that no limit of the pool is met
	query   []string // parameters that are passed on
}

// routes are all of them.
var routes = []route{
	{method: http.MethodPost, path: "/v1/chat/completions", dialect: "openai"},
	{method: http.MethodPost, path: "/v1/completions", dialect: "completions"},
	{method: http.MethodPost, path: "/v1/embeddings", dialect: "openai"},
	{method: http.MethodPost, path: "/v1/responses", dialect: "responses"},
	{method: http.MethodPost, path: "/v1/responses/input_tokens", dialect: "responses", counts: true},
	{method: http.MethodPost, path: "/v1/messages", dialect: "anthropic", query: []string{"beta"}},
	{method: http.MethodPost, path: "/v1/messages/count_tokens", dialect: "anthropic", counts: true, query: []string{"beta"}},
	{method: http.MethodPost, path: "/api/chat", dialect: "ollama"},
	{method: http.MethodPost, path: "/api/generate", dialect: "ollama"},
	{method: http.MethodGet, path: "/v1/models", dialect: "openai", query: []string{"limit", "after_id", "before_id", "beta"}},
	{method: http.MethodGet, path: "/v1/models/", dialect: "openai", query: []string{"beta"}},
	{method: http.MethodGet, path: "/api/tags", dialect: "ollama"},
	{method: http.MethodGet, path: "/api/version", dialect: "ollama"},
}

// find looks up what is asked for. The target is what the upstream is asked
// for: it is made of the table's own words, and of a model's name where the
// route takes one, never of the client's path. Without a route, allow names
// the methods that the path has, "" if there is no such path.
func find(method string, u *url.URL) (r *route, target, allow string) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for i := range routes {
		r := &routes[i]
		target, ok := r.match(u)
		switch {
		case !ok:
		case r.method == method:
			return r, target + r.passed(u.RawQuery), ""
		case r.method == http.MethodGet:
			allow = "GET, HEAD"
		default:
			allow = r.method
		}
	}
	return nil, "", allow
}

// match compares byte by byte, with no cleaning: a path that would have to be
// cleaned is none of the table's.
func (r *route) match(u *url.URL) (target string, ok bool) {
	if !strings.HasSuffix(r.path, "/") {
		return r.path, u.Path == r.path && u.RawPath == ""
	}
	name, ok := strings.CutPrefix(u.Path, r.path)
	if !ok || !modelName(name) {
		return "", false
	}
	// A slash in a name is written as itself or as %2F; some engines know only one.
	if u.RawPath != "" {
		if u.RawPath != r.path+url.PathEscape(name) {
			return "", false
		}
		return u.RawPath, true
	}
	return r.path + name, true
}

// modelName says that a name can only be a model's: segments of plain
// characters, none of which leads elsewhere.
func modelName(name string) bool {
	if len(name) > 256 {
		return false
	}
	for segment := range strings.SplitSeq(name, "/") {
		if strings.Trim(segment, ".") == "" || !plain(segment) {
			return false
		}
	}
	return true
}

// plain says that a text has only characters that no parser of paths or
// queries takes for anything else.
func plain(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("._:@-", c) >= 0:
		default:
			return false
		}
	}
	return true
}

// passed are the parameters that the route passes on, with their question mark.
func (r *route) passed(raw string) string {
	if raw == "" || len(r.query) == 0 {
		return ""
	}
	given, err := url.ParseQuery(raw)
	if err != nil {
		return ""
	}
	out := url.Values{}
	for _, name := range r.query {
		if v := given.Get(name); v != "" && len(v) <= 128 && plain(v) {
			out.Set(name, v)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "?" + out.Encode()
}

// dialectOf guesses whose errors a client reads that asks for what is not there.
func dialectOf(path string) string {
	switch {
	case strings.HasPrefix(path, "/api/"):
		return "ollama"
	case strings.HasPrefix(path, "/v1/messages"):
		return "anthropic"
	}
	return "openai"
}
