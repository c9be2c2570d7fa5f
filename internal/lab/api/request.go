package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// message is one turn of a chat.
type message struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// body is a request of the chat or the completion API.
type body struct {
	Model    string    `json:"model"`
	Messages []message `json:"messages"`
	Prompt   *phrase   `json:"prompt"`

	MaxTokens           *int     `json:"max_tokens"`
	MaxCompletionTokens *int     `json:"max_completion_tokens"`
	Temperature         *float64 `json:"temperature"`
	Seed                *int64   `json:"seed"`
	Stop                stops    `json:"stop"`
	Stream              bool     `json:"stream"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`

	RID       label `json:"rid"`
	RequestID label `json:"request_id"`
	CacheSalt label `json:"cache_salt"`

	lacking
}

// noModel refuses a request for another model than those served.
var noModel = &lab.Error{Status: http.StatusNotFound, Type: "NotFoundError",
	Message: "no such model; GET /v1/models lists what is served"}

// adapter is the adapter that a model's name asks for, as "model:adapter".
func (h *handler) adapter(name string) (string, *lab.Error) {
	if name == "" || name == h.Model {
		return "", nil
	}
	adapter, ok := strings.CutPrefix(name, h.Model+":")
	if !ok || !slices.Contains(h.Backend.State().Adapters, adapter) {
		return "", noModel
	}
	return adapter, nil
}

// read takes the whole body of a request, at most max bytes.
func read(w http.ResponseWriter, r *http.Request, max int64) ([]byte, *lab.Error) {
	size := 0
	if n := r.ContentLength; n > 0 && n <= max {
		size = int(n) // a body of its declared size is held once, not grown by copying
	}
	b := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	_, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, max))
	if tooBig := (*http.MaxBytesError)(nil); errors.As(err, &tooBig) {
		return nil, &lab.Error{Status: http.StatusRequestEntityTooLarge, Type: "RequestTooLarge",
			Message: "the body is longer than " + strconv.FormatInt(max, 10) + " bytes"}
	}
	if err != nil {
		return nil, badRequest("the body broke off after %d bytes", b.Len())
	}
	return b.Bytes(), nil
}

// decode reads one JSON object into v.
func decode(p []byte, v any) *lab.Error {
	err := json.Unmarshal(p, v)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		if p = bytes.TrimLeft(p, " \t\r\n"); p[0] != '{' {
			return badRequest("the body must be a JSON object")
		}
		return nil
	case errors.As(err, &syntax):
		return badRequest("the body is not valid JSON: %v at byte %d", syntax, syntax.Offset)
	case errors.As(err, &kind) && kind.Field == "":
		return badRequest("the body must be a JSON object")
	case errors.As(err, &kind):
		return badRequest("field %s must be of type %s", kind.Field, jsonType(kind.Type.Kind().String()))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return badRequest("the body is not valid JSON: it ends too early")
	}
	return badRequest("%v", err)
}

// jsonType names a Go kind as a writer of JSON knows it.
func jsonType(kind string) string {
	switch kind {
	case "int", "int64":
		return "integer"
	case "float64":
		return "number"
	case "bool":
		return "boolean"
	case "slice":
		return "array"
	case "struct":
		return "object"
	}
	return kind
}

// check returns the first thing in the request that this engine cannot do.
func (b *body) check() *lab.Error {
	if field := b.first(); field != "" {
		return badRequest("this engine does not support %s", field)
	}
	for _, n := range []*int{b.MaxTokens, b.MaxCompletionTokens} {
		if n != nil && (*n < 1 || *n > math.MaxInt32) {
			return badRequest("max_tokens must be at least 1 and no more than %d", math.MaxInt32)
		}
	}
	if t := b.Temperature; t != nil && !(*t >= 0 && *t <= 2) {
		return badRequest("temperature must be from 0 to 2")
	}
	return nil
}

// sampling fills in the request all but its tokens, which it must have already.
func (b *body) sampling(r *lab.Request, context int, o *Options) {
	// SGLang leaves the whole rest of the window; here an answer without a
	// stop would run for hours, so there is a cap below it.
	r.MaxTokens = max(1, min(o.MaxTokens, context-len(r.Tokens)))
	if b.MaxTokens != nil {
		r.MaxTokens = *b.MaxTokens
	}
	if b.MaxCompletionTokens != nil {
		r.MaxTokens = *b.MaxCompletionTokens
	}
	r.Temperature = 1
	if b.Temperature != nil {
		r.Temperature = *b.Temperature
	}
	if b.Seed != nil {
		r.Seed = uint64(*b.Seed)
	} else {
		r.Seed, r.Drawn = o.NewSeed(), true
	}
	r.Stop = b.Stop
}

// stops is a string or a list of strings.
type stops []string

// The bounds of a stop list: 16 strings of 256 bytes.
const (
	maxStops    = 16
	maxStopSize = 256
)

var errStop = errors.New("stop must be a string or a list of at most 16 strings, each of 1 to 256 bytes")

// UnmarshalJSON implements [json.Unmarshaler].
func (s *stops) UnmarshalJSON(p []byte) error {
	var list []string
	switch p[0] {
	case '"':
		list = []string{unquote(p)}
	case '[':
		if json.Unmarshal(p, &list) != nil {
			return errStop
		}
	case 'n':
	default:
		return errStop
	}
	if len(list) > maxStops || slices.ContainsFunc(list, func(w string) bool { return w == "" || len(w) > maxStopSize }) {
		return errStop
	}
	*s = list
	return nil
}
