package guard

import (
	"net/http"
	"strings"

	"github.com/kvcanary/kvcanary/internal/guard/request"
)

// headers are those that go to the upstream; changed are the client's that an
// engine might have acted upon, and that do not.
func (u *upstream) headers(r *http.Request, rt *route, id string) (h http.Header, changed []string, err error) {
	h, changed, err = request.HeaderPolicy{Credentials: u.Key == "" && u.ForwardKey, RequestID: id}.Forward(r.Header)
	if err != nil {
		return nil, nil, err
	}
	if rt.method == http.MethodGet {
		delete(h, "Content-Type")
	}
	u.showKey(h, rt.dialect)
	return h, changed, nil
}

// showKey adds the upstream's key, if it has one, as a dialect has it.
func (u *upstream) showKey(h http.Header, dialect string) {
	switch {
	case u.Key == "":
	case dialect == "anthropic":
		h["X-Api-Key"] = []string{u.Key}
	default:
		h["Authorization"] = []string{"Bearer " + u.Key}
	}
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
