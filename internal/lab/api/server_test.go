package api

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func listen(t *testing.T, b *fake) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := NewHandler(Options{Backend: b, Model: "lab", Now: time.Now, NewID: func() string { return "x" }})
	return Serve(l, h, log.New(io.Discard, "", 0))
}

func TestServerClosesCleanly(t *testing.T) {
	s := listen(t, newFake())
	if status, _ := get(t, s.URL+"/health"); status != 200 {
		t.Errorf("status %d", status)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	<-s.Done()
}

// A request that does not end by itself is cut off, and the engine told.
func TestServerCutsOffWhatDoesNotEnd(t *testing.T) {
	b := newFake()
	b.slow, b.begun, b.gone = true, make(chan struct{}, 1), make(chan struct{})
	s := listen(t, b)
	answered := make(chan error, 1)
	go func() {
		res, err := http.Post(s.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{`+hello+`}`))
		if err == nil {
			res.Body.Close()
		}
		answered <- err
	}()
	<-b.begun
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Close(over); err != nil {
		t.Error(err)
	}
	<-b.gone
	if err := <-answered; err == nil {
		t.Error("an endless answer ended well")
	}
}

func TestServerSaysWhyItStopped(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := Serve(l, http.NotFoundHandler(), log.New(io.Discard, "", 0))
	l.Close()
	<-s.Done()
	if s.Err() == nil {
		t.Error("no reason given")
	}
}
