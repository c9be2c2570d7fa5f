package node

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

func meet(a, b Greeting, secretA, secretB string) (ga, gb Greeting, errA, errB error) {
	x, y := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer y.Close()
		if b.version == 0 {
			gb, errB = Handshake(y, b, []byte(secretB))
		} else {
			gb, errB = shake(y, b, []byte(secretB))
		}
	}()
	ga, errA = Handshake(x, a, []byte(secretA))
	x.Close()
	<-done
	return ga, gb, errA, errB
}

func TestHandshake(t *testing.T) {
	a := Greeting{Role: handoff.ToRouter, Shape: testShape}
	b := Greeting{Role: handoff.ToDecode, Shape: testShape, Addr: "127.0.0.1:1234", Epoch: 1 << 60, Memory: "/a/file"}
	ga, gb, errA, errB := meet(a, b, "s", "s")
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if ga.Role != b.Role || ga.Addr != b.Addr || ga.Epoch != b.Epoch || ga.Memory != b.Memory || ga.Shape != b.Shape || gb.Role != a.Role || gb.Addr != "" {
		t.Errorf("got %+v and %+v", ga, gb)
	}
}

func TestHandshakeRefusesWhatDoesNotFit(t *testing.T) {
	peer := func(change func(*Greeting)) Greeting {
		g := Greeting{Role: handoff.ToDecode, Shape: testShape}
		change(&g)
		return g
	}
	for want, b := range map[string]Greeting{
		"page size is 2 here and 64 at decode":        peer(func(g *Greeting) { g.Shape.PageSize = 64 }),
		"bytes a page is 32 here and 48 at decode":    peer(func(g *Greeting) { g.Shape.PageBytes = 48 }),
		"context is 100 here and 200 at decode":       peer(func(g *Greeting) { g.Shape.Context = 200 }),
		"pages is 50 here and 7 at decode":            peer(func(g *Greeting) { g.Shape.Pages = 7 }),
		"version is 3 here and 9 at the other end":    peer(func(g *Greeting) { g.version = 9 }),
		"one-sided writing is 0 here and 1 at decode": peer(func(g *Greeting) { g.Shape.OneSided = true }),
		"both ends are router":                        peer(func(g *Greeting) { g.Role = handoff.ToRouter }),
		"says it is client":                           peer(func(g *Greeting) { g.Role = handoff.ToClient }),
	} {
		_, _, err, _ := meet(Greeting{Role: handoff.ToRouter, Shape: testShape}, b, "s", "s")
		if !errors.Is(err, ErrHandshake) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestHandshakeRefusesStrangers(t *testing.T) {
	a := Greeting{Role: handoff.ToRouter, Shape: testShape}
	b := Greeting{Role: handoff.ToDecode, Shape: testShape}
	_, _, errA, errB := meet(a, b, "right horse", "wrong horse")
	for _, err := range []error{errA, errB} {
		if !errors.Is(err, ErrHandshake) || strings.Contains(err.Error(), "horse") {
			t.Errorf("got %v", err)
		}
	}
	for _, says := range []string{"", "GET / HTTP/1.1\r\n\r\n", magic + "\x01", magic + "\x03\x00\xff\x00short", magic + "\x03\x00\x00\x00"} {
		x, y := net.Pipe()
		go func() {
			go io.Copy(io.Discard, y)
			io.WriteString(y, says)
			y.Close()
		}()
		if _, err := Handshake(x, a, nil); !errors.Is(err, ErrHandshake) {
			t.Errorf("%q: got %v", says, err)
		}
		x.Close()
	}
}

// A proof cannot be played back to the one who made it.
func TestHandshakeRefusesAnEcho(t *testing.T) {
	x, y := net.Pipe()
	go func() {
		io.Copy(y, y)
		y.Close()
	}()
	_, err := Handshake(x, Greeting{Role: handoff.ToRouter, Shape: testShape}, []byte("secret"))
	x.Close()
	if !errors.Is(err, ErrHandshake) {
		t.Errorf("got %v", err)
	}
}

func FuzzDecodeGreeting(f *testing.F) {
	good, _ := Greeting{Role: handoff.ToDecode, Shape: testShape, Addr: "127.0.0.1:1", Memory: "m"}.encode()
	f.Add(good)
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		raw, err := readGreeting(strings.NewReader(string(b)))
		if err != nil {
			return
		}
		g, err := decodeGreeting(raw)
		if err != nil {
			return
		}
		again, err := g.encode()
		if err != nil || string(again) != string(raw) {
			t.Fatalf("%x comes back as %x, %v", raw, again, err)
		}
	})
}
