// Package api is the HTTP front of the lab: the OpenAI API, and what SGLang
// says about itself, in SGLang's words.
//
// It turns HTTP requests into tokens for a [lab.Backend] and its events into
// answers. It judges nothing: a prompt that the engine must refuse is refused
// by the engine.
package api

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// RefusalShape chooses how an engine's refusal reaches the client. Refusals
// that the API itself makes (bad JSON, unknown key) always have a status.
type RefusalShape string

// The refusal shapes. All of them have been seen on SGLang.
const (
	// RefuseInStream is SGLang's own: a plain request gets the status and the
	// flat body; a streamed one has got its 200 already, so the error is one
	// event, followed by [DONE].
	RefuseInStream RefusalShape = "sse"
	// RefuseWithStatus gives streamed requests the status too, as gateways do
	// that wait for the first token.
	RefuseWithStatus RefusalShape = "status"
	// RefuseBare is RefuseInStream with the body of SGLang's native API,
	// {"error":{"message":...}} and nothing else.
	RefuseBare RefusalShape = "bare"
)

// Valid reports whether s is one of the refusal shapes.
func (s RefusalShape) Valid() bool {
	return s == RefuseInStream || s == RefuseWithStatus || s == RefuseBare
}

// Defaults of Options.
const (
	DefaultMaxBody   = 32 << 20 // bytes
	DefaultMaxTokens = 512      // tokens
)

// Options are what a handler needs. Backend, Model, Now and NewID must be set.
type Options struct {
	Backend lab.Backend
	Model   string // the one model that is served
	// Keys are tenants by bearer key. Without any everybody is let in: who brings a
	// key as the tenant of that key, others as "anonymous".
	Keys  map[string]string
	Now   func() time.Time
	NewID func() string // unique within the engine; "chatcmpl-" or "cmpl-" is put before it

	RefusalShape RefusalShape         // "" is RefuseInStream
	MaxBody      int64                // longest request body in bytes; 0 is DefaultMaxBody
	MaxTokens    int                  // longest answer in tokens where the request names none; 0 is DefaultMaxTokens
	NewSeed      func() uint64        // for requests without a seed; nil is seed 0 for all
	Metrics      *prometheus.Registry // nil makes one; a registry serves one handler
}

type handler struct {
	Options
}

// NewHandler returns the API. /health and /metrics are open, everything else
// wants a key when keys are configured.
func NewHandler(o Options) http.Handler {
	if o.Backend == nil || o.Model == "" || o.Now == nil || o.NewID == nil {
		panic("kvcanary: internal error: api: Backend, Model, Now and NewID must be set")
	}
	if o.RefusalShape == "" {
		o.RefusalShape = RefuseInStream
	}
	if o.MaxBody == 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.MaxTokens == 0 {
		o.MaxTokens = DefaultMaxTokens
	}
	if o.NewSeed == nil {
		o.NewSeed = func() uint64 { return 0 }
	}
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	o.Metrics.MustRegister(collector{o.Backend, o.Model})

	h := &handler{o}
	mux := http.NewServeMux()
	for pattern, serve := range map[string]func(http.ResponseWriter, *http.Request, string){
		"POST /v1/chat/completions": h.chat,
		"POST /v1/completions":      h.complete,
		"POST /v1/tokenize":         h.tokenize,
		"POST /tokenize":            h.tokenize,
		"GET /v1/models":            h.models,
		"GET /server_info":          h.serverInfo,
		"GET /get_server_info":      h.serverInfo,
		"GET /model_info":           h.modelInfo,
		"GET /get_model_info":       h.modelInfo,
		"/":                         h.notFound,
	} {
		mux.HandleFunc(pattern, h.forTenant(serve))
	}
	mux.HandleFunc("GET /health", h.health)
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.Metrics, promhttp.HandlerOpts{}))
	return mux
}

// forTenant lets a request through under the tenant of its key.
func (h *handler) forTenant(serve func(http.ResponseWriter, *http.Request, string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		tenant, err := h.tenant(r.Header.Get("Authorization"))
		if err != nil {
			writeError(w, *err)
			return
		}
		serve(w, r, tenant)
	}
}

// tenant is who a request is for.
func (h *handler) tenant(authorization string) (string, *lab.Error) {
	const scheme = "bearer "
	key := ""
	if len(authorization) > len(scheme) && strings.EqualFold(authorization[:len(scheme)], scheme) {
		key = authorization[len(scheme):]
	}
	tenant, known := h.Keys[key]
	switch {
	case known:
		return tenant, nil
	case len(h.Keys) == 0 && key == "":
		return "anonymous", nil
	case len(h.Keys) == 0:
		sum := sha256.Sum256([]byte(key))
		return "key-" + hex.EncodeToString(sum[:8]), nil
	case key == "":
		return "", &lab.Error{Status: http.StatusUnauthorized, Type: "AuthenticationError",
			Message: "no key: send the header Authorization: Bearer KEY"}
	}
	return "", &lab.Error{Status: http.StatusUnauthorized, Type: "AuthenticationError",
		Message: "this key is not known here"}
}

func (h *handler) notFound(w http.ResponseWriter, r *http.Request, _ string) {
	writeError(w, lab.Error{Status: http.StatusNotFound, Type: "NotFoundError",
		Message: fmt.Sprintf("nothing here answers %s %.100q", r.Method, r.URL.Path)})
}
