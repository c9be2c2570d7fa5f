package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// However a stream is cut, its parser yields the events that were written.
func TestStreamsSurviveAnyCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want []message
		var stream []byte
		for range rapid.IntRange(1, 6).Draw(t, "events") {
			m := message{id: rapid.StringMatching(`[0-9]{1,5}`).Draw(t, "id"), data: rapid.SliceOfN(rapid.Byte(), 0, 80).Draw(t, "data")}
			m.event = rapid.SampledFrom([]string{"", eventDone, eventError}).Draw(t, "event")
			want = append(want, m)
			stream = append(stream, bytes.Join(m.lines(), nil)...)
		}
		var p parser
		var got []message
		for len(stream) > 0 {
			n := rapid.IntRange(1, len(stream)).Draw(t, "cut")
			got = append(got, p.feed(stream[:n])...)
			stream = stream[n:]
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

func TestRequestsSurviveTheWire(t *testing.T) {
	r := lab.Request{
		ID: "i", Name: "n", Tenant: "t", Tokens: bytes.Repeat([]byte("a\nb\x00"), 50_000), MaxTokens: 3, Temperature: 1.5,
		Seed: 1 << 63, Drawn: true, Stop: []string{"s"},
	}
	var wire bytes.Buffer
	for _, name := range []string{"1", "2"} {
		if err := writeRequest(&wire, name, r); err != nil {
			t.Fatal(err)
		}
	}
	in := bufio.NewReader(&wire)
	for _, want := range []string{"1", "2"} {
		if name, got, err := readRequest(in); err != nil || name != want || !reflect.DeepEqual(got, r) {
			t.Errorf("%v: got %s, %+.200v", err, name, got)
		}
	}
	if _, _, err := readRequest(in); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func TestBadBytesOnAConnection(t *testing.T) {
	for in, want := range map[string]string{
		"{}x\n":                                "bad bytes on a connection: a request",
		`{"Prompt":-1}` + "\n":                 "bad bytes on a connection: a prompt of -1 bytes",
		`{"Prompt":9}` + "\nabc":               "unexpected EOF",
		`{"Prompt":9`:                          "unexpected EOF",
		`{"Prompt":2000000000}` + "\n":         "bad bytes on a connection: a prompt of 2000000000 bytes",
		`{"Request":{"Tokens":"YQ=="}}` + "\n": "bad bytes on a connection: a prompt of 0 bytes",
		strings.Repeat("x", maxHead+100_000):   "bad bytes on a connection: a request's head of more than",
	} {
		if _, _, err := readRequest(bufio.NewReader(strings.NewReader(in))); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %s", in, err, want)
		}
	}
	if _, err := readChunk(bufio.NewReader(strings.NewReader("\xff\xffabc"))); !errors.Is(err, errWire) {
		t.Error(err)
	}
}

// A chunk that has not come whole is not taken, so that a read may be tried again.
func TestChunksAreTakenWhole(t *testing.T) {
	var wire bytes.Buffer
	if err := writeChunk(&wire, []byte("all of it")); err != nil {
		t.Fatal(err)
	}
	whole := wire.Bytes()
	in := bufio.NewReader(io.MultiReader(bytes.NewReader(whole[:6]), failing{}, bytes.NewReader(whole[6:])))
	if _, err := readChunk(in); !errors.Is(err, errFailing) {
		t.Errorf("half a chunk: %v", err)
	}
	in.Reset(bytes.NewReader(whole))
	if text, err := readChunk(in); err != nil || string(text) != "all of it" {
		t.Errorf("got %q, %v", text, err)
	}
}

var errFailing = errors.New("not yet")

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errFailing }

// Whatever comes, it is read or refused.
func FuzzConnection(f *testing.F) {
	var wire bytes.Buffer
	if err := writeRequest(&wire, "1", lab.Request{Tokens: []byte("abc")}); err != nil {
		f.Fatal(err)
	}
	f.Add(wire.Bytes())
	f.Add([]byte("\x09\x00id: 1\nda"))
	f.Add([]byte("data: \ndata\nevent: done\n\n: x\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if name, r, err := readRequest(bufio.NewReader(bytes.NewReader(b))); err == nil && len(name)+len(r.Tokens) > len(b) {
			t.Errorf("%d bytes yield a request of %d", len(b), len(r.Tokens))
		}
		for in := bufio.NewReader(bytes.NewReader(b)); ; {
			text, err := readChunk(in)
			if err != nil {
				break
			}
			if len(text) > chunkSize {
				t.Errorf("a chunk of %d bytes", len(text))
			}
		}
		var p parser
		size := 0
		for _, m := range p.feed(b) {
			size += len(m.id) + len(m.event) + len(m.data)
		}
		if size > len(b) {
			t.Errorf("%d bytes yield %d of events", len(b), size)
		}
	})
}
