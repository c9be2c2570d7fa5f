package api

import (
	"io"
	"net/http"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// writer writes one answer as server-sent events.
type writer struct {
	shape   shape
	head    head
	w       http.ResponseWriter
	started bool // the status is out
	spoken  bool // a piece is out
}

// stream answers a request with stream: true.
func (h *handler) stream(w http.ResponseWriter, r *http.Request, request lab.Request, out writer, includeUsage bool) {
	if h.RefusalShape != RefuseWithStatus {
		if out.start() != nil {
			return
		}
	}
	g, err := generate(r.Context(), h.Backend, request, func(text string) error {
		return out.piece(piece{text: text})
	})
	switch {
	case err != nil && !out.started:
		h.refuse(w, *err)
		return
	case err != nil:
		out.event(h.refusalEvent(*err))
	default:
		out.piece(piece{end: &g})
		if includeUsage {
			out.event(counted{out.head.as(out.shape.chunk), []struct{}{}, g.usage})
		}
	}
	out.done()
}

// start sends the status and the headers.
func (s *writer) start() error {
	s.started = true
	s.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	s.w.Header().Set("Cache-Control", "no-cache")
	s.w.WriteHeader(http.StatusOK)
	return http.NewResponseController(s.w).Flush()
}

func (s *writer) piece(p piece) error {
	p.first = !s.spoken
	s.spoken = true
	return s.event(s.shape.piece(s.head.as(s.shape.chunk), p))
}

// event sends one event at once.
func (s *writer) event(v any) error {
	if !s.started {
		if err := s.start(); err != nil {
			return err
		}
	}
	io.WriteString(s.w, "data: ")
	encode(s.w, v) // ends the line
	io.WriteString(s.w, "\n")
	return http.NewResponseController(s.w).Flush()
}

func (s *writer) done() {
	io.WriteString(s.w, "data: [DONE]\n\n")
}
