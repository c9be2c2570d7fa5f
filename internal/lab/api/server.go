package api

import (
	"context"
	"log"
	"net"
	"net/http"
	"time"
)

// Server serves a handler on a listener.
type Server struct {
	URL  string // without a path
	http http.Server
	done chan struct{}
	err  error
}

// Serve starts serving; the listener is the server's from now on. What goes
// wrong within one connection is written to errors.
func Serve(l net.Listener, h http.Handler, errors *log.Logger) *Server {
	s := &Server{
		URL:  "http://" + l.Addr().String(),
		done: make(chan struct{}),
		http: http.Server{
			Handler:           h,
			ErrorLog:          errors,
			ReadHeaderTimeout: 10 * time.Second,
			IdleTimeout:       2 * time.Minute,
			MaxHeaderBytes:    64 << 10,
		},
	}
	go func() {
		defer close(s.done)
		s.err = s.http.Serve(l)
	}()
	return s
}

// Done is closed when nothing is accepted any more.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err says why nothing is accepted any more; nil after Close. It waits for Done.
func (s *Server) Err() error {
	<-s.done
	if s.err == http.ErrServerClosed {
		return nil
	}
	return s.err
}

// Close takes no more requests and lets those under way end until ctx does,
// then cuts them off.
func (s *Server) Close(ctx context.Context) error {
	if s.http.Shutdown(ctx) != nil {
		s.http.Close()
	}
	return s.Err()
}
