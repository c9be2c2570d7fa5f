package api

import (
	"encoding/json"
	"net/http"
	"regexp"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// maxName is the longest name that a client may give a request, bytes.
const maxName = 1024

// called is what a client calls its request, the header before the fields of
// the body, and the trace that it says the request belongs to.
func called(r *http.Request, b *body) (name, trace string, err *lab.Error) {
	for _, name = range []string{r.Header.Get("X-Request-Id"), string(b.RID), string(b.RequestID)} {
		if name != "" {
			break
		}
	}
	if len(name) > maxName {
		return "", "", badRequest("the name of a request has at most %d bytes", maxName)
	}
	if m := traceParent.FindStringSubmatch(r.Header.Get("Traceparent")); m != nil {
		trace = m[1]
	}
	return name, trace, nil
}

// traceParent is the header of W3C Trace Context. Versions to come may append
// fields. What is malformed counts as absent.
var traceParent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$`)

// label is a field that may hold a string; SGLang also takes lists, which name
// the parts of a request for several prompts and mean nothing here.
type label string

// UnmarshalJSON implements [json.Unmarshaler].
func (l *label) UnmarshalJSON(p []byte) error {
	if p[0] == '"' {
		return json.Unmarshal(p, (*string)(l))
	}
	return nil
}
