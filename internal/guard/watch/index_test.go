package watch

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/canary"
)

// numbered are events that have their own number, as TGI's and others' do.
var numbered = map[string]string{
	"above":  `{"index":%d,"token":{"id":5,"text":%s,"logprob":-0.5,"special":false},"generated_text":null}`,
	"beside": `{"choices":[{"index":0,"delta":{"content":%[2]s,"sequence_index":%[1]d}}]}`,
	"last":   `{"choices":[{"index":0,"delta":{"content":%[2]s}}],"token_index":%[1]d}`,
}

// TestGrowingIndex: an index that grows with every event, or with every few,
// does not cut a canary into texts of one piece.
func TestGrowingIndex(t *testing.T) {
	c := testCoder(1)
	rapid.Check(t, func(t *rapid.T) {
		format := numbered[rapid.SampledFrom([]string{"above", "beside", "last"}).Draw(t, "way")]
		words := mint(c, theirs, rapid.IntRange(0, 30).Draw(t, "from"), 12)
		every, before := rapid.IntRange(1, 4).Draw(t, "every"), rapid.IntRange(5, 90).Draw(t, "before") // past the first index, of which nothing tells yet that it grows
		var b strings.Builder
		n := 0
		write := func(text string) {
			fmt.Fprintf(&b, "data: "+format+"\n\n", n/every, quote(text))
			n++
		}
		for range before {
			write("it is ")
		}
		safe := b.Len()
		for _, piece := range drawCuts(t, words+" is.") {
			write(piece)
		}
		w := strict(c)
		out, stopped := send(w, b.String(), rapid.IntRange(1, 900).Draw(t, "write"))
		leaked(t, w, out, stopped, "")
		if len(out) > safe {
			t.Fatalf("a piece of it was let out: %s", out[safe:])
		}
	})
}

// TestGrowingIndexHoldsLittle: nor is an answer held up by it.
func TestGrowingIndexHoldsLittle(t *testing.T) {
	for name, format := range numbered {
		w, late := strict(testCoder(1)), 0
		for i := range 400 {
			event := fmt.Sprintf("data: "+format+"\n\n", i, quote([]string{" I", " am", " music", "."}[i%4]))
			if w.Write([]byte(event)); i > 2*maxTurns {
				now, _ := w.Held()
				late = max(late, now/len(event))
			}
		}
		if late > 10 {
			t.Errorf("%s: %d events were held", name, late)
		}
	}
}

// TestLargeEvents: what repeats a whole answer, and what a tool is called with,
// is no reason to stop, and leaves no memory taken.
func TestLargeEvents(t *testing.T) {
	alternatives := "[" + strings.Repeat(`{"token":"ab","logprob":-1.5,"bytes":[97,98]},`, 19) + `{}]`
	probs := "[" + strings.Repeat(`{"token":"ab","logprob":-0.5,"bytes":[97,98],"top_logprobs":`+alternatives+`},`, 2000) + `{}]`
	for name, event := range map[string]string{
		"all log probabilities": `{"type":"response.completed","response":{"output":[{"content":[{"text":"ab","logprobs":` + probs + `}]}]}}`,
		"a list of arguments":   `{"message":{"tool_calls":[{"function":{"arguments":{"rows":[` + strings.Repeat(`"x",`, 50_000) + `""]}}}]}}`,
		"objects of them":       `{"message":{"tool_calls":[{"function":{"arguments":{"rows":[` + strings.Repeat(`{"x":1},`, 50_000) + `{}]}}}]}}`,
		"a picture":             `{"choices":[{"delta":{"content":"data:image/png;base64,` + strings.Repeat("iVBORw0KGgo", 100_000) + `"}}]}`,
	} {
		w := strict(testCoder(1))
		if out, stopped := send(w, "data: "+event+"\n\n", 8192); stopped || len(out) != len(event)+8 {
			t.Errorf("%s: stopped %v, %d of %d bytes, %s", name, stopped, len(out), len(event)+8, kinds(w))
		}
		m := memories.Get().(*memory)
		if n := cap(m.frames) + cap(m.leaves); n > 2*keptParts || w.walk.memory != nil {
			t.Errorf("%s: room for %d parts is kept", name, n)
		}
		for _, l := range m.leaves[:cap(m.leaves)] {
			if l.text != nil {
				t.Errorf("%s: %d bytes of its text are kept for the next answer", name, len(l.text))
			}
		}
	}
}

// TestTokensWithoutDocuments: events may hold bare text, with the blanks between
// words in them or not.
func TestTokensWithoutDocuments(t *testing.T) {
	c := testCoder(1)
	words := mint(c, theirs, 3, 9)
	for _, event := range []string{"data: %s\n\n", "data:  %s\n\n", "data: %s \n\n"} {
		var b strings.Builder
		for _, word := range strings.Fields(words) {
			fmt.Fprintf(&b, event, word)
		}
		w := strict(c)
		out, stopped := send(w, b.String(), 7)
		leaked(t, w, out, stopped, words)
	}
}

// TestHeaderNames: a name can say as much as a value.
func TestHeaderNames(t *testing.T) {
	c := testCoder(1)
	name := http.CanonicalHeaderKey(strings.ReplaceAll(strings.TrimSpace(mint(c, theirs, 3, 9)), " ", "-"))
	w := strict(c)
	if stop := w.Headers(http.Header{name: {"1"}, "X-Other": {"2"}}); !stop || kinds(w) != "leak header" {
		t.Errorf("%v %s", stop, kinds(w))
	}
}

// TestTextBehindAnother: a text that holds a canary itself is found whatever
// stands before it, also where events are alike.
func TestTextBehindAnother(t *testing.T) {
	c := testCoder(1)
	words := strings.Fields(mint(c, theirs, 3, canary.MinWords))
	w := strict(c)
	stream := chatHead
	for range 4 {
		stream += carriers[0].event(quote("is it I"))
	}
	out, stopped := send(w, stream+carriers[0].event(quote(strings.Join(words, " "))), 50)
	leaked(t, w, out, stopped, "")
	if strings.Contains(out, words[1]) {
		t.Errorf("let out: %s", out)
	}
}

// TestUTF16: a document in UTF-16 that says nothing of it is read all the same.
func TestUTF16(t *testing.T) {
	c := testCoder(1)
	wide := strings.Join(strings.Split(`{"content":"`+mint(c, theirs, 3, 9)+`"}`, ""), "\x00")
	w := New(Options{Strict: true, Coders: []*canary.Coder{c}})
	if out, stopped := send(w, wide, 50); !stopped || out != "" || kinds(w) != "leak raw" {
		t.Errorf("%v %s %q", stopped, kinds(w), out)
	}
}

// TestCutTokens: a token is found in texts of a document that are joined, also
// where the letters before its dash are cut off.
func TestCutTokens(t *testing.T) {
	c := testCoder(1)
	_, token, _ := strings.Cut(c.Token(theirs), "ANAR")
	w := New(Options{Strict: true, Coders: []*canary.Coder{c}})
	if out, stopped := send(w, `{"content":[`+quote(token[:9])+`,{"a":7},`+quote(token[9:])+`]}`, 50); !stopped || out != "" || kinds(w) != "leak raw" && kinds(w) != "leak content" {
		t.Errorf("%v %s %q", stopped, kinds(w), out)
	}
}
