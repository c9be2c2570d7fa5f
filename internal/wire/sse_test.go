package wire

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// slowSSE is the obvious reading of a whole stream: lines, then blocks.
func slowSSE(s string) (out []string) {
	s = strings.TrimPrefix(s, "\ufeff")
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	name, data := "", []string(nil)
	flush := func() {
		if data != nil {
			out = append(out, name+"|"+strings.Join(data, "\n"))
		}
		name, data = "", nil
	}
	for line := range strings.SplitSeq(s, "\n") {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			flush()
		case line[0] == '{':
			flush() // a bare document is an event of its own, without a name
			out = append(out, "|"+line)
		case field == "event":
			name = value
		case field == "data":
			data = append(data, value)
		case field == "error":
			name, data = "error", append(data, value)
		}
	}
	flush()
	return out
}

func readSSE(r io.Reader, size int) (out []string, err error) {
	s := newSSEReader(bufio.NewReaderSize(r, size))
	for {
		ev, err := s.next()
		if err != nil {
			return out, err
		}
		out = append(out, ev.name+"|"+string(ev.data))
	}
}

func checkSSE(t interface {
	Helper()
	Fatalf(string, ...any)
}, s string) {
	t.Helper()
	want := slowSSE(s)
	for i, r := range []io.Reader{strings.NewReader(s), iotest.OneByteReader(strings.NewReader(s)), iotest.DataErrReader(strings.NewReader(s))} {
		got, err := readSSE(r, 16+i*100)
		if err != io.EOF || !slices.Equal(got, want) {
			t.Fatalf("stream %q\nread %q\nwant %q\nerror %v", s, got, want, err)
		}
	}
}

var sseSeeds = []string{
	"", "data: a\n\n", "data: a", "data:a\r\n\r\ndata:b\r\rdata: c\n\n", "\ufeffdata: a\n\n", "\ufeff{\"a\":1}",
	": comment\n\ndata: a\ndata:  b\n\n", "event: error\ndata: {}\n\n", "error: {\"code\":400}\n\n", "id: 1\nretry: 5\ndata\n\n",
	"data: a\n{\"error\":1}\n\n", "{\"error\":1}\n\ndata: [DONE]\n\n", "event: x\n\ndata: y\n\n", "data: a\r\n", "nonsense\n\n", goodStream,
}

func TestSSEEqualsSlowTwin(t *testing.T) {
	for _, s := range sseSeeds {
		checkSSE(t, s)
	}
	piece := rapid.SampledFrom([]string{"data:", "data: ", "event: ", "error: ", ":", "id: 7", "{", "}", "a", "bc", " ", "\n", "\r", "\r\n", "\n\n", "\ufeff", "\xff", "[DONE]"})
	rapid.Check(t, func(t *rapid.T) {
		checkSSE(t, strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "pieces"), ""))
	})
}

func FuzzSSE(f *testing.F) {
	for _, s := range sseSeeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkSSE(t, s) })
}

func TestSSEBounds(t *testing.T) {
	for name, r := range map[string]io.Reader{
		"line":  io.MultiReader(strings.NewReader("data: "), endless("x")),
		"event": endless("data: " + strings.Repeat("x", 1000) + "\n"),
	} {
		if _, err := readSSE(r, 4096); err != errEventTooBig {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := readSSE(iotest.TimeoutReader(strings.NewReader("data: a\n\n")), 16); err != iotest.ErrTimeout {
		t.Errorf("a broken stream ends in %v", err)
	}
}

// endless repeats a text for ever.
func endless(s string) io.Reader { return &repeater{s: s} }

type repeater struct {
	s  string
	at int
}

func (r *repeater) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		k := copy(p[n:], r.s[r.at:])
		n, r.at = n+k, (r.at+k)%len(r.s)
	}
	return n, nil
}

func BenchmarkSSE(b *testing.B) {
	var s strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&s, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word %d\"}}]}\n\n", i)
	}
	b.SetBytes(int64(s.Len()))
	for b.Loop() {
		readSSE(strings.NewReader(s.String()), 32<<10)
	}
}
