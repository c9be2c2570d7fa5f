package matrix

import (
	"bytes"
	"context"
	"net/http"
	"sync"
)

// idempotent answers a request id that a tenant sends again with what it has
// answered the first time, whatever the request asks for, as a service does that
// lets clients try again. What one tenant calls a request is nothing to another.
type idempotent struct {
	http.Handler
	mu    *sync.Mutex
	first map[[2]string]*answered
}

// answered is an answer that is kept, once done is closed.
type answered struct {
	done   chan struct{}
	status int
	header http.Header
	body   bytes.Buffer
}

func newIdempotent(h http.Handler) http.Handler {
	return idempotent{h, new(sync.Mutex), map[[2]string]*answered{}}
}

func (h idempotent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("X-Request-Id")
	if id == "" || r.Method != http.MethodPost {
		h.Handler.ServeHTTP(w, r)
		return
	}
	name := [2]string{r.Header.Get("Authorization"), id}
	h.mu.Lock()
	a, again := h.first[name]
	if !again {
		a = &answered{done: make(chan struct{}), status: http.StatusOK, header: http.Header{}}
		h.first[name] = a
	}
	h.mu.Unlock()
	if again {
		a.repeat(w, r)
		return
	}
	defer close(a.done)
	// The answer is made to its end though the client leaves: it may come back.
	h.Handler.ServeHTTP(&both{w, a}, r.WithContext(context.WithoutCancel(r.Context())))
}

func (a *answered) repeat(w http.ResponseWriter, r *http.Request) {
	select {
	case <-a.done:
	case <-r.Context().Done():
		return
	}
	for k, v := range a.header {
		w.Header()[k] = v
	}
	w.WriteHeader(a.status)
	w.Write(a.body.Bytes())
}

// both writes to a client, as long as it listens, and keeps what is written.
type both struct {
	http.ResponseWriter
	kept *answered
}

func (b *both) WriteHeader(status int) {
	b.kept.status, b.kept.header = status, b.Header().Clone()
	b.ResponseWriter.WriteHeader(status)
}

func (b *both) Write(p []byte) (int, error) {
	if b.kept.body.Len() == 0 && b.kept.status == http.StatusOK {
		b.kept.header = b.Header().Clone()
	}
	b.ResponseWriter.Write(p)
	return b.kept.body.Write(p)
}

// Flush keeps streams streaming.
func (b *both) Flush() { http.NewResponseController(b.ResponseWriter).Flush() }
