package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// flatError is the body of SGLang's OpenAI API.
type flatError struct {
	Object  string  `json:"object"`
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"` // always null
	Code    int     `json:"code"`
}

// bareError is the body of SGLang's native API.
type bareError struct {
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

// errorEvent is an error within a stream.
type errorEvent struct {
	Error flatError `json:"error"`
}

func flat(e lab.Error) flatError {
	return flatError{Object: "error", Message: e.Message, Type: e.Type, Code: e.Status}
}

func bare(e lab.Error) (b bareError) {
	b.Error.Message = e.Message
	return b
}

func badRequest(format string, args ...any) *lab.Error {
	return &lab.Error{Status: http.StatusBadRequest, Type: "BadRequestError", Message: fmt.Sprintf(format, args...)}
}

// writeError answers with the status and body of an error that the API made.
func writeError(w http.ResponseWriter, e lab.Error) { writeJSON(w, e.Status, flat(e)) }

// refuse answers a plain request with an error that the engine made.
func (h *handler) refuse(w http.ResponseWriter, e lab.Error) {
	if h.RefusalShape == RefuseBare {
		writeJSON(w, e.Status, bare(e))
		return
	}
	writeError(w, e)
}

// refusalEvent is what a stream carries for an error that the engine made.
func (h *handler) refusalEvent(e lab.Error) any {
	if h.RefusalShape == RefuseBare {
		return bare(e)
	}
	f := flat(e)
	if e.Status == http.StatusBadRequest {
		f.Type = "BAD_REQUEST" // SGLang spells the type differently in streams
	}
	return errorEvent{f}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encode(w, v)
}

// encode writes v and a line feed. Text stays as it is: an escaped < or > only
// makes an answer harder to read. An error means that the client is gone.
func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
