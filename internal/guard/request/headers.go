package request

import (
	"mime"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/kvcanary/kvcanary/internal/guard/shape"
)

// HeaderPolicy is what of a client's headers goes on.
type HeaderPolicy struct {
	// Credentials lets the client's keys go on. Without it they are taken out,
	// since the guard holds the upstream's.
	Credentials bool
	RequestID   string   // sent as X-Request-Id; empty sends none
	Pass        []string // names that go on beside the usual ones; the table's never do
}

// Codes of a refusal for its headers.
const (
	CodeEncoding = "encoding_refused" // a body that is compressed, or not UTF-8
	CodeHeader   = "header_invalid"   // a header that two servers could read differently
)

// usual are the headers that go on as they are: what a client says of itself,
// and which version of an API it speaks.
var usual = map[string]bool{
	"Accept": true, "Accept-Language": true, "User-Agent": true,
	"Anthropic-Version": true, "Anthropic-Beta": true, "Openai-Beta": true,
}

// credentials name who pays. Each may stand once.
var credentials = map[string]bool{
	"Authorization": true, "X-Api-Key": true, "Api-Key": true, "Openai-Organization": true, "Openai-Project": true,
}

// HeaderRow is a row of the table of headers that a client may not set. A name
// that ends in - stands for all that begin with it.
type HeaderRow struct{ Name, Why, Source string }

// Headers are those that the operator cannot let pass either. What is in
// neither list does not go on, but is nothing to remark on.
var Headers = []HeaderRow{
	{"X-Request-Id", "two requests of one id share state", "vLLM, llm-d, Envoy"},
	{"Request-Id", "two requests of one id share state", "Anthropic API reference"},
	{"X-Correlation-Id", "two requests of one id share state", "common"},
	{"X-Client-Request-Id", "two requests of one id share state", "OpenAI API reference"},
	{"Idempotency-Key", "asks for the answer to an earlier request, which may be another's", "Stainless client libraries"},
	{"Traceparent", "requests of one trace share state where an engine takes its id", "W3C Trace Context; BerriAI/litellm#40124"},
	{"Tracestate", "goes with traceparent", "W3C Trace Context"},
	{"Baggage", "goes with traceparent", "W3C Baggage"},
	{"B3", "requests of one trace share state where an engine takes its id", "Zipkin B3"},
	{"X-B3-", "requests of one trace share state where an engine takes its id", "Zipkin B3"},
	{"X-Prefiller-", "chooses the prefill worker whose KV is read", "llm-d-router pkg/common/routing/common.go"},
	{"X-Encoder-", "chooses the encoder worker", "llm-d-router pkg/common/routing/common.go"},
	{"X-Data-Parallel-", "chooses the worker", "llm-d-router; vLLM"},
	{"X-Dp-Rank", "chooses the worker", "Dynamo lib/llm/src/protocols/openai/nvext.rs"},
	{"X-Prefill-", "chooses the worker whose KV is read", "Dynamo lib/llm/src/protocols/openai/nvext.rs"},
	{"X-Worker-", "chooses the worker", "Dynamo lib/llm/src/protocols/openai/nvext.rs"},
	{"X-Smg-", "chooses the worker", "SGLang model gateway"},
	{"X-Gateway-", "chooses the worker and its queue", "Gateway API Inference Extension, endpoint picker protocol"},
	{"X-Session-", "routes to the worker of a session that may be another's", "llm-d session affinity"},
	{"X-Conversation-", "ends, or goes on with, a stream that may be another's", "llama.cpp tools/server/server-stream.cpp"},
	{"X-Kv-Cache-", "chooses the worker whose KV is read", "llm-d-router"},
	{"X-Llm-D-", "chooses the model, the worker and its queue", "llm-d-router"},
	{"X-Routing-", "routes to a worker", "common"},
	{"X-Slo-", "goes before others", "llm-d predicted latency"},
	{"X-Cache-", "chooses whose cached answers are used", "common"},
	{"X-Litellm-", "configures a gateway behind", "LiteLLM"},
	{"X-Portkey-", "configures a gateway behind, its cache too", "Portkey"},
	{"Helicone-", "configures a gateway behind, its cache too", "Helicone"},
	{"Cf-Aig-", "configures a gateway behind, its cache too", "Cloudflare AI Gateway"},
	{"X-Ai-Eg-", "configures a gateway behind", "Envoy AI Gateway"},
	{"X-Envoy-", "configures a gateway behind", "Envoy"},
	{"X-Original-", "has a server serve another path than was checked", "common"},
	{"X-Rewrite-Url", "has a server serve another path than was checked", "common"},
	{"X-Http-Method", "has a server serve another method than was checked", "common"},
	{"X-Method-Override", "has a server serve another method than was checked", "common"},
	{"X-Http-Method-Override", "has a server serve another method than was checked", "common"},
	{"Forwarded", "says for whom a proxy asks, which a client cannot know", "RFC 7239"},
	{"X-Forwarded-", "says for whom a proxy asks, which a client cannot know", "common"},
	{"X-Real-Ip", "says for whom a proxy asks, which a client cannot know", "common"},
	{"Cookie", "carries sessions, and with them affinity to a worker", "RFC 6265"},
	{"Range", "asks for a part of an answer, which cannot be watched", "RFC 9110 14.2"},
	{"Content-Encoding", "has the engine read another body than the guard", "RFC 9110 8.4"},
}

// hops are the headers of one connection. They are no wish of the client's that
// could be remarked on.
var hops = []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Http2-Settings", "Expect", "Content-Length", "Host"}

// Forward returns the headers that go upstream, and the names of those of the
// table that were taken out, sorted. The body that goes with them is JSON in
// UTF-8, whatever the client called it.
func (p HeaderPolicy) Forward(in http.Header) (out http.Header, changed []string, err error) {
	if r := checkHeaders(in); r != nil {
		return nil, nil, r
	}
	out = make(http.Header, len(in)+3)
	for name, values := range in {
		name = textproto.CanonicalMIMEHeaderKey(name)
		switch {
		case name == "Content-Type", name == "Accept-Encoding": // replaced
		case usual[name], credentials[name] && p.Credentials:
			out[name] = slices.Clone(values)
		case credentials[name] || slices.Contains(hops, name):
		case barred(name):
			changed = append(changed, name)
		case slices.ContainsFunc(p.Pass, func(s string) bool { return strings.EqualFold(s, name) }):
			out[name] = slices.Clone(values)
		}
	}
	out["Content-Type"] = []string{"application/json"}
	out["Accept-Encoding"] = []string{"identity"} // an answer must be read to be watched
	if p.RequestID != "" {
		out["X-Request-Id"] = []string{p.RequestID}
	}
	slices.Sort(changed)
	return out, slices.Compact(changed), nil
}

// barred reports whether the table has a name. Servers that follow CGI take _
// for - in names, so the table means both.
func barred(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	return barredNames[name] || slices.ContainsFunc(barredPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// The names of the table in small letters, whole ones and beginnings.
var barredNames, barredPrefixes = func() (names map[string]bool, prefixes []string) {
	names = map[string]bool{}
	for _, r := range Headers {
		if n := strings.ToLower(r.Name); strings.HasSuffix(n, "-") {
			prefixes = append(prefixes, n)
		} else {
			names[n] = true
		}
	}
	return names, prefixes
}()

// checkHeaders refuses what a server behind could read differently.
func checkHeaders(in http.Header) *Refused {
	for name, values := range in {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if len(values) > 1 && (credentials[canonical] || canonical == "Content-Type") {
			return refusedHeader(http.StatusBadRequest, CodeHeader, canonical, "the header "+canonical+" stands more than once")
		}
	}
	for _, v := range in["Content-Encoding"] {
		if v != "" && !strings.EqualFold(strings.TrimSpace(v), "identity") {
			return refusedHeader(http.StatusUnsupportedMediaType, CodeEncoding, "Content-Encoding", "a body may not be compressed: send it as it is")
		}
	}
	return checkType(in.Get("Content-Type"))
}

// checkType refuses a body that is said to be no JSON, or in other letters than
// UTF-8. Without a type, and with the one that curl puts there, it is taken for
// JSON.
func checkType(v string) *Refused {
	if v == "" || v == "application/json" {
		return nil
	}
	kind, params, err := mime.ParseMediaType(v)
	if err != nil {
		return refusedHeader(http.StatusBadRequest, CodeHeader, "Content-Type", "the header Content-Type cannot be read")
	}
	if c := params["charset"]; c != "" && !strings.EqualFold(c, "utf-8") && !strings.EqualFold(c, "utf8") {
		return refusedHeader(http.StatusUnsupportedMediaType, CodeEncoding, "Content-Type", "a body must be in UTF-8")
	}
	if kind != "application/json" && kind != "text/json" && kind != "text/plain" && kind != "application/x-www-form-urlencoded" && !strings.HasSuffix(kind, "+json") {
		return refusedHeader(http.StatusUnsupportedMediaType, CodeEncoding, "Content-Type", "a body must be application/json")
	}
	return nil
}

func refusedHeader(status int, code, name, message string) *Refused {
	return &Refused{shape.Error{Status: status, Code: code, Param: name, Message: message}}
}
