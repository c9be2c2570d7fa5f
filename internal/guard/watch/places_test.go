package watch

import (
	"fmt"
	"strings"
	"testing"
)

// chosen is an event of one of several choices, with alternatives for its token.
func chosen(index int, text string, ranks int) string {
	top := make([]string, ranks)
	for r := range top {
		top[r] = fmt.Sprintf(`{"token":"t%d","logprob":-1,"bytes":[97,98]}`, r)
	}
	return fmt.Sprintf("data: {\"choices\":[{\"index\":%d,\"delta\":{\"content\":%[2]s},\"logprobs\":{\"content\":[{\"token\":%[2]s,\"logprob\":-1,\"bytes\":[97],\"top_logprobs\":[%[3]s]}]}}]}\n\n",
		index, quote(text), strings.Join(top, ","))
}

// A client may ask for 128 choices with twenty alternatives for each token. In
// none of them a canary comes through word by word: it is found, or, where there
// are more texts by turns than can be put together, the answer ends.
func TestManyChoicesHideNothing(t *testing.T) {
	c := testCoder(1)
	for _, choices := range []int{2, 30, 45, 64, 128} {
		for _, ranks := range []int{0, 5, 20} {
			for _, at := range []int{0, choices - 1} {
				words := strings.Fields(mint(c, theirs, 3, 12))
				var b strings.Builder
				for i, word := range words {
					for k := range choices {
						text := []string{" it", " is", " the", " one"}[(i+k)%4]
						if k == at {
							text = " " + word
						}
						b.WriteString(chosen(k, text, ranks))
					}
				}
				w := strict(c)
				out, stopped := send(w, b.String(), 8192)
				kind := Leak
				if choices*(3+2*ranks) > maxStrands {
					kind = Unseen
				}
				if f := w.Findings(); !stopped || len(f) == 0 || f[0].Kind != kind && f[0].Kind != Leak {
					t.Errorf("%d choices, %d alternatives, canary in %d: stopped %v, %+v", choices, ranks, at, stopped, f)
				}
				for _, word := range words[1:] {
					if strings.Contains(out, quote(" "+word)) {
						t.Errorf("%d choices, %d alternatives, canary in %d: %q came out", choices, ranks, at, word)
					}
				}
			}
		}
	}
}

// Many choices without a canary are no reason to stop, nor is an index that
// grows for as long as an answer may be.
func TestManyPlacesPass(t *testing.T) {
	var choices, grows, large strings.Builder
	for i := range 20 {
		for k := range 45 {
			choices.WriteString(chosen(k, []string{" I", " am", " music", "."}[i%4], 20))
		}
	}
	for i := range 20_000 {
		fmt.Fprintf(&grows, "data: {\"choices\":[{\"index\":0,\"delta\":{\"sequence_index\":%d,\"content\":\" I\",\"reasoning\":\" am\",\"other\":\".\"}}]}\n\n", i/3)
	}
	for i := range 3 {
		fmt.Fprintf(&large, "data: {\"message\":{\"tool_calls\":[{\"function\":{\"arguments\":{\"rows%d\":[%s\"\"]}}}]}}\n\n", i, strings.Repeat(`"x",`, 20_000))
	}
	for name, stream := range map[string]string{"choices": choices.String(), "an index that grows": grows.String(), "long lists": large.String()} {
		w := strict(testCoder(1))
		if out, stopped := send(w, stream, 8192); stopped || out != stream {
			t.Errorf("%s: stopped %v, %d of %d bytes, %+v", name, stopped, len(out), len(stream), w.Findings())
		}
		if len(w.order) > maxStrands+8 || len(w.lost) > maxLost {
			t.Errorf("%s: %d strands, %d places without one", name, len(w.order), len(w.lost))
		}
	}
	w := strict(testCoder(1))
	words := mint(testCoder(1), theirs, 3, 9)
	for i, word := range strings.Fields(words) {
		fmt.Fprintf(&grows, "data: {\"choices\":[{\"index\":0,\"delta\":{\"sequence_index\":%d,\"content\":%s,\"reasoning\":\" am\",\"other\":\".\"}}]}\n\n", 10_000+i, quote(" "+word))
	}
	out, stopped := send(w, grows.String(), 8192)
	leaked(t, w, out, stopped, words)
}

// The alternatives for a token are told apart by their rank, whatever an engine
// calls the list of them.
func TestAlternativesByRank(t *testing.T) {
	c := testCoder(1)
	words := mint(c, theirs, 3, 12)
	for _, list := range []string{"top_logprobs", "top_probs"} {
		var events, tokens []string
		for _, word := range strings.Fields(words) {
			token := fmt.Sprintf(`{"id":1,"token":" it","prob":0.5,"bytes":[32],%q:[{"id":1,"token":" it","prob":0.5,"bytes":[32]},{"id":2,"token":%s,"prob":0.1,"bytes":[32]},{"id":3,"token":" a","prob":0.1,"bytes":[32]}]}`, list, quote(" "+word))
			tokens = append(tokens, token)
			events = append(events, `data: {"choices":[{"index":0,"delta":{"content":" it"},"logprobs":{"content":[`+token+"]}}]}\n\n")
		}
		w := strict(c)
		out, stopped := send(w, strings.Join(events, ""), 8192)
		leaked(t, w, out, stopped, words)
		w = New(Options{Dialect: "openai", Strict: true, Coders: w.o.Coders})
		out, stopped = send(w, `{"choices":[{"index":0,"message":{"content":"it"},"logprobs":{"content":[`+strings.Join(tokens, ",")+`]}}]}`, 8192)
		leaked(t, w, out, stopped, words)
	}
}

// What an audit cannot put together it says once, and its memory has an end; and
// a document of many lists is none of that.
func TestManyPlacesWithoutHolding(t *testing.T) {
	var b, names strings.Builder
	for i := range 12 {
		for k := range 70 {
			b.WriteString(chosen(k, " it", 20))
		}
		fmt.Fprintf(&names, "data: {\"choices\":[{\"index\":0,\"delta\":{")
		for k := range 20_000 {
			fmt.Fprintf(&names, `"n%d":"x",`, 20_000*i+k)
		}
		names.WriteString("\"content\":\"x\"}}]}\n\n")
	}
	for name, stream := range map[string]string{"choices": b.String(), "names": names.String()} {
		w := New(Options{Dialect: "openai", Stream: true, Coders: strict(testCoder(1)).o.Coders})
		if out, stopped := send(w, stream, 8192); stopped || out != stream || len(w.findings) != 1 || w.findings[0].Kind != Unseen {
			t.Errorf("%s: stopped %v, %+v", name, stopped, w.Findings())
		}
		w = New(Options{Dialect: "openai", Stream: true, Coders: w.o.Coders})
		w.Write([]byte(stream))
		if len(w.lost) > maxLost || len(w.order) > maxStrands+8 {
			t.Errorf("%s: %d strands, %d places without one", name, len(w.order), len(w.lost))
		}
	}
	w := New(Options{Dialect: "openai", Strict: true, Coders: strict(testCoder(1)).o.Coders})
	doc := `{"choices":[{"index":0,"message":{"arguments":{"rows":[` + strings.Repeat(`"x",`, 200_000) + `""]}}}]}`
	if out, stopped := send(w, doc, 8192); stopped || out != doc {
		t.Errorf("a document: stopped %v, %+v", stopped, w.Findings())
	}
}
