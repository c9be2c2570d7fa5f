package api

import (
	"net/http"
	"strings"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// chat serves POST /v1/chat/completions.
func (h *handler) chat(w http.ResponseWriter, r *http.Request, tenant string) {
	h.serve(w, r, tenant, chatShape, func(b *body) ([]byte, []lab.Image, *lab.Error) {
		if b.Prompt != nil {
			return nil, nil, badRequest("prompt belongs to /v1/completions; a chat has messages")
		}
		return chatTokens(b.Messages)
	})
}

// complete serves POST /v1/completions: the prompt as it stands, no template.
func (h *handler) complete(w http.ResponseWriter, r *http.Request, tenant string) {
	h.serve(w, r, tenant, textShape, func(b *body) ([]byte, []lab.Image, *lab.Error) {
		if b.Prompt == nil {
			return nil, nil, badRequest("prompt must be a string")
		}
		return promptTokens(*b.Prompt), nil, nil
	})
}

// serve answers one request of either API.
func (h *handler) serve(w http.ResponseWriter, r *http.Request, tenant string, s shape, tokens func(*body) ([]byte, []lab.Image, *lab.Error)) {
	request, b, err := h.request(w, r, tokens)
	if err != nil {
		writeError(w, *err)
		return
	}
	request.Tenant, request.Salt = tenant, string(b.CacheSalt)
	request.ID = s.prefix + h.NewID()
	if request.Name, request.Trace, err = called(r, b); err != nil {
		writeError(w, *err)
		return
	}
	head := head{ID: request.ID, Created: h.Now().Unix(), Model: h.Model}
	if request.Adapter != "" {
		head.Model += ":" + request.Adapter
	}
	if b.Stream {
		h.stream(w, r, request, writer{shape: s, head: head, w: w}, b.StreamOptions.IncludeUsage)
		return
	}
	var text strings.Builder
	g, err := generate(r.Context(), h.Backend, request, func(piece string) error {
		text.WriteString(piece)
		return nil
	})
	if err != nil {
		h.refuse(w, *err)
		return
	}
	writeJSON(w, http.StatusOK, s.whole(head, text.String(), g))
}

// request reads a request to the point where only the engine can refuse it.
// The body returned no longer holds the prompt.
func (h *handler) request(w http.ResponseWriter, r *http.Request, tokens func(*body) ([]byte, []lab.Image, *lab.Error)) (lab.Request, *body, *lab.Error) {
	var b body
	if err := h.decode(w, r, &b); err != nil {
		return lab.Request{}, nil, err
	}
	adapter, err := h.adapter(b.Model)
	if err == nil {
		err = b.check()
	}
	if err != nil {
		return lab.Request{}, nil, err
	}
	prompt, images, err := tokens(&b)
	if err != nil {
		return lab.Request{}, nil, err
	}
	b.Messages, b.Prompt = nil, nil
	request := lab.Request{Tokens: prompt, Adapter: adapter, Images: images}
	b.sampling(&request, h.Backend.State().Context, &h.Options)
	return request, &b, nil
}

// decode reads a bounded JSON body into v.
func (h *handler) decode(w http.ResponseWriter, r *http.Request, v any) *lab.Error {
	p, err := read(w, r, h.MaxBody)
	if err != nil {
		return err
	}
	return decode(p, v)
}
