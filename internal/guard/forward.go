package guard

import (
	"net/http"
	"slices"
	"strings"

	"github.com/kvcanary/kvcanary/internal/guard/shape"
)

// passedOn are the request headers that reach an upstream as the client sent
// them. All others end here: those of a hop, those that an engine or a router
// takes for a command (X-Request-Id, X-Data-Parallel-Rank, X-Prefiller-Host-Port,
// ...), and those that nobody knows yet.
var passedOn = []string{
	"Anthropic-Beta", "Anthropic-Version", "Openai-Beta", "Openai-Organization", "Openai-Project", "User-Agent",
}

// headers are the lines that go to the upstream.
func (u *upstream) headers(r *http.Request, rt *route, id string) []pair {
	out := make([]pair, 0, 12)
	out = append(out,
		// An encoded answer could not be watched as it streams.
		pair{"Accept-Encoding", "identity"},
		pair{"X-Request-Id", id})
	if rt.method == http.MethodPost {
		out = append(out, pair{"Content-Type", "application/json"})
	}
	for _, name := range passedOn {
		for _, v := range r.Header[name] {
			out = append(out, pair{name, v})
		}
	}
	return append(out, u.credentials(r.Header, rt.dialect)...)
}

// credentials are the headers that show a key to the upstream.
func (u *upstream) credentials(h http.Header, dialect string) (out []pair) {
	switch {
	case u.Key != "" && dialect == "anthropic":
		return []pair{{"X-Api-Key", u.Key}}
	case u.Key != "":
		return []pair{{"Authorization", "Bearer " + u.Key}}
	case u.ForwardKey:
		for _, name := range keyHeaders {
			for _, v := range h[name] {
				out = append(out, pair{name, v})
			}
		}
	}
	return out
}

// droppedHeaders are those of a client's that an engine might have acted upon:
// the client is told that they were not passed on.
func droppedHeaders(h http.Header) (names []string) {
	for name := range h {
		if commands[name] {
			names = append(names, strings.ToLower(name))
		}
	}
	slices.Sort(names)
	return names
}

// commands are headers that engines and their routers act upon. The list says
// what to report; whether a header passes is decided by passedOn.
var commands = map[string]bool{
	"X-Request-Id": true, "X-Correlation-Id": true, "X-Session-Id": true, "X-Client-Request-Id": true, // engines key state by them
	"X-Data-Parallel-Rank": true, "X-Prefiller-Host-Port": true, "X-Encoder-Hosts-Ports": true, // llm-d, vLLM: which worker computes
	"X-Override-Params": true, "X-Smg-Target-Worker": true, "X-Smg-Routing-Key": true, // SGLang's router
}

// checkHeaders refuses what changes how a body is to be read.
func checkHeaders(r *http.Request) error {
	for _, v := range r.Header["Content-Encoding"] {
		if !strings.EqualFold(v, "identity") {
			return shape.Error{Status: http.StatusUnsupportedMediaType, Code: "encoded_body", Param: "Content-Encoding",
				Message: "bodies must not be compressed: send it without Content-Encoding"}
		}
	}
	return nil
}

// ownHeaders are those of an answer that the upstream has no say in: those of a
// hop, those of the guard, those by which an upstream would have clients come
// back with something or come elsewhere.
var ownHeaders = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Proxy-Authenticate": true, "Te": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true, "Content-Length": true, "Content-Encoding": true, "Date": true,
	"X-Request-Id": true, "Request-Id": true, "Set-Cookie": true, "Set-Cookie2": true, "Alt-Svc": true, "Location": true, "Refresh": true,
	"Server": true, "Via": true, "X-Powered-By": true, "X-Accel-Redirect": true, "X-Sendfile": true, "Www-Authenticate": true,
}

// copyAnswer copies what passes of an answer's headers, or of its trailers.
func copyAnswer(to, from http.Header, prefix string) {
	connection := from["Connection"]
	for name, values := range from {
		if ownHeaders[name] || strings.HasPrefix(name, "Kvcanary-") || len(connection) > 0 && listed(connection, name) {
			continue
		}
		to[prefix+name] = values
	}
}
