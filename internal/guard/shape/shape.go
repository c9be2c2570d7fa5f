// Package shape writes the guard's errors in the words of the client's own
// dialect: the body of a refusal, and the event that ends a stream which must
// not go on.
package shape

import (
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/kvcanary/kvcanary/internal/prose"
)

// maxMessage bounds the message of an error, bytes: it may name a field that
// the client made up.
const maxMessage = 600

// Error is why the guard does not serve a request, or does not go on with an
// answer.
type Error struct {
	Status  int    // HTTP status; 0 stands for 500
	Code    string // stable word for programs, as in the table below: "prompt_too_long"
	Message string // one line for people, with the numbers; never a secret, never a prompt
	Param   string // field of the request that it is about; empty for none

	// RequestID is the guard's own name of the request. Only Anthropic's bodies
	// have a place for it; the others leave it to the header.
	RequestID string
}

// Error implements error.
func (e Error) Error() string { return e.Message }

// TooLong says that a prompt of sent tokens is over a limit, also in tokens, in
// the one form that clients of every dialect recognise.
func TooLong(sent, limit int) Error {
	return Error{Status: http.StatusBadRequest, Code: "prompt_too_long",
		Message: "prompt is too long: " + prose.Thousands(sent) + " tokens > " + prose.Thousands(limit) + " maximum"}
}

// Body returns a refusal's content type and body. A dialect that is not known
// is answered as OpenAI's, which most clients read.
func Body(dialect string, e Error) (contentType string, body []byte) {
	return "application/json", document(dialect, e)
}

// Event returns what ends a stream that stands between two events: the
// dialect's error event, without the mark of a clean end. For Ollama it is a
// line of NDJSON.
func Event(dialect string, e Error) []byte {
	switch dialect {
	case "ollama":
		return append(document(dialect, e), '\n')
	case "anthropic":
		return event("error", document(dialect, e))
	case "responses":
		return event("error", responsesEvent(e))
	}
	return event("", document(dialect, e))
}

func event(name string, data []byte) []byte {
	var b []byte
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	b = append(append(b, "data: "...), data...)
	return append(b, "\n\n"...)
}

// openAI is the error object of OpenAI's APIs. Absent fields are null in it.
type openAI struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func document(dialect string, e Error) []byte {
	e = e.tidy()
	switch dialect {
	case "ollama": // api/types.go of ollama/ollama: StatusError has one text
		return marshal(struct {
			Error string `json:"error"`
		}{e.named()})
	case "anthropic": // docs.anthropic.com, "Errors"
		type inner struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		}
		return marshal(struct {
			Type      string `json:"type"`
			Error     inner  `json:"error"`
			RequestID string `json:"request_id,omitempty"`
		}{"error", inner{anthropicType(e.Status), e.named()}, e.RequestID})
	}
	return marshal(struct {
		Error openAI `json:"error"`
	}{e.openAI()})
}

// responsesEvent is the error event of the Responses API, which is flat. The
// client libraries end a stream with an error only where the data has a member
// "error", so it has that as well.
func responsesEvent(e Error) []byte {
	o := e.tidy().openAI()
	return marshal(struct {
		Type     string  `json:"type"`
		Code     *string `json:"code"`
		Message  string  `json:"message"`
		Param    *string `json:"param"`
		Sequence int     `json:"sequence_number"`
		Error    openAI  `json:"error"`
	}{"error", o.Code, o.Message, o.Param, 0, o})
}

func (e Error) openAI() openAI {
	o := openAI{Message: e.Message, Type: openAIType(e.Status)}
	if e.Param != "" {
		o.Param = &e.Param
	}
	if code := e.Code; code != "" {
		if theirs, ok := openAICodes[code]; ok {
			code = theirs
		}
		o.Code = &code
	}
	return o
}

// openAICodes are the codes for which OpenAI has a word of its own, that
// clients look for. Every other code goes out as it is.
var openAICodes = map[string]string{
	"prompt_too_long": "context_length_exceeded",
	"unknown_key":     "invalid_api_key",
	"busy":            "rate_limit_exceeded",
}

func openAIType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

// anthropicType is the type that Anthropic's documentation ("Errors") gives a status.
func anthropicType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusServiceUnavailable, 529:
		return "overloaded_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

// tidy makes the texts fit to be shown: one line, no control characters, no
// longer than they need be.
func (e Error) tidy() Error {
	if e.Status == 0 {
		e.Status = http.StatusInternalServerError
	}
	e.Message, e.Param = clean(e.Message), clean(e.Param)
	return e
}

func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > maxMessage {
		end := maxMessage
		for !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end] + "..."
	}
	return prose.Printable(s)
}

// named is the message with the field before it, for dialects that have no
// other place for one.
func (e Error) named() string {
	if e.Param == "" || strings.Contains(e.Message, e.Param) {
		return e.Message
	}
	return e.Param + ": " + e.Message
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("kvcanary: internal error: an error cannot be written as JSON: " + err.Error())
	}
	return b
}
