package watch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/canary"
)

// drawAnswer makes an answer, how it is watched and how it is cut. Some break
// off in the middle of a canary, some stop, some are documents.
func drawAnswer(t *rapid.T, coders []*canary.Coder) (o Options, answer string, sizes []int) {
	y := rapid.SampledFrom(carriers).Draw(t, "way")
	words := mint(coders[0], theirs, rapid.IntRange(0, 9).Draw(t, "from"), rapid.IntRange(1, 12).Draw(t, "words"))
	text := rapid.SampledFrom([]string{"so it is", words, "is: " + words + " is", words + " " + coders[0].Token(theirs), "a b c d e f"}).Draw(t, "text")
	answer = y.stream(drawCuts(t, text))
	o = Options{Dialect: y.dialect, Stream: true, Strict: rapid.Bool().Draw(t, "strict"), Coders: coders}
	if rapid.Bool().Draw(t, "own") {
		o.Own = func(id canary.ID) bool { return id == theirs }
	}
	if rapid.IntRange(0, 2).Draw(t, "document") == 0 {
		o.Stream = false
		answer = `{"choices":[{"message":{"content":` + quote(text) + `}}],"usage":{"prompt_tokens":` + fmt.Sprint(rapid.IntRange(0, 900).Draw(t, "tokens")) + `}}`
	}
	return o, answer, rapid.SliceOfN(rapid.IntRange(1, 300), 1, 4).Draw(t, "writes")
}

// account is all that a watch says of an answer.
func account(w *Watch, answer string, sizes []int) string {
	out, stopped := send(w, answer, sizes...)
	now, most := w.Held()
	prompt, output := w.Usage()
	return fmt.Sprintf("%q %v %+v held %d %d usage %d %d", out, stopped, w.Findings(), now, most, prompt, output)
}

// TestAWatchIsAsGoodAsNew: one that has watched other answers says of the next
// what a new one says, whatever those were and however they ended.
func TestAWatchIsAsGoodAsNew(t *testing.T) {
	coders := []*canary.Coder{testCoder(1), testCoder(9)}
	rapid.Check(t, func(t *rapid.T) {
		again := new(Watch)
		for range rapid.IntRange(2, 6).Draw(t, "answers") {
			o, answer, sizes := drawAnswer(t, coders)
			again.begin(o)
			if got, want := account(again, answer, sizes), account(New(o), answer, sizes); got != want {
				t.Fatalf("%s\nthe next: %s\na new one: %s", answer, got, want)
			}
			if !again.retire() {
				again = new(Watch)
			}
			if again.findings != nil || again.o.Own != nil || strings.Trim(string(again.frame.buf[:cap(again.frame.buf)]), "\x00") != "" {
				t.Fatalf("it keeps something of the answer: %+v, %.300q", again.findings, again.frame.buf[:cap(again.frame.buf)])
			}
		}
	})
}

// TestPoolKeepsWhatHasEnded: only a watch whose answer has ended well is used
// again, and only for the same keys.
func TestPoolKeepsWhatHasEnded(t *testing.T) {
	c, other := testCoder(1), testCoder(2)
	o := Options{Dialect: "openai", Stream: true, Strict: true, Coders: []*canary.Coder{c}}
	leak := carriers[0].stream([]string{"is " + mint(c, theirs, 0, 9) + " is"})
	innocent := carriers[0].stream([]string{"so it is"})
	for _, x := range []struct {
		name, answer string
		cut          int // bytes that do not come
		again        bool
	}{{"whole", innocent, 0, true}, {"stopped", leak, 0, false}, {"broken off", innocent, 9, false}, {"large", strings.Repeat(": ping\n\n", largeBuffer), 0, false}} {
		w := New(o)
		w.Write([]byte(x.answer[:len(x.answer)-x.cut]))
		if x.cut == 0 {
			w.Close()
		}
		if x.name == "large" {
			w.out = slices.Grow(w.out, 2*largeBuffer) // comments that overtook, and much behind them
		}
		if got := w.retire(); got != x.again {
			t.Errorf("%s: kept %v, want %v", x.name, got, x.again)
		}
	}
	var p Pool
	w := p.Get(o)
	send(w, innocent, 50)
	p.Put(w)
	for range 2 { // whether the pool has kept it or not
		o.Coders = []*canary.Coder{other}
		w := p.Get(o)
		if _, stopped := send(w, carriers[0].stream([]string{mint(other, theirs, 0, 9)}), 50); !stopped {
			t.Error("a watch for one key has come with the scanners of another")
		}
		p.Put(w)
	}
}

// TestManyStrandsAreNotKept: an answer of many texts leaves nothing behind, and
// one that ends again and again does not gather them.
func TestManyStrandsAreNotKept(t *testing.T) {
	w := New(Options{Dialect: "openai", Stream: true, Strict: true, Coders: []*canary.Coder{testCoder(1)}})
	for i := range 500 {
		w.Write(fmt.Appendf(nil, "data: {\"m%d\":\"text\"}\n\ndata: [DONE]\n\n", i))
	}
	w.Close()
	if len(w.used) > maxSpare+1 || w.retire() {
		t.Errorf("%d strands are kept for the next answer", len(w.used))
	}
}
