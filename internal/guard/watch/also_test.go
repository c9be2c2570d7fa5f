package watch

import (
	"maps"
	"strings"
	"testing"
)

// Who also reads an answer gets each of its texts as the pieces stand one after
// the other, by channel, whether it is streamed or not, and may pass over some.
func TestTextsAreHandedOn(t *testing.T) {
	const thought, said, called = `{"choices":[{"index":0,"delta":{"reasoning_content":"%"}}]}`, `{"choices":[{"index":0,"delta":{"content":"%"}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"%"}}]}}]}`
	stream := ""
	for _, e := range [][2]string{{thought, "Let me "}, {thought, "think."}, {said, `I say \"`}, {said, `hello\u0021\n`}, {said, "twice"}, {said, "twice"}, {called, `{\"x\":`}, {called, "1}"}} {
		stream += "data: " + strings.Replace(e[0], "%", e[1], 1) + "\n\n"
	}
	for name, c := range map[string]struct {
		text string
		want map[Channel]string
	}{
		"stream": {stream + "data: [DONE]\n\n", map[Channel]string{Reasoning: "Let me think.", Content: `I say \"hello\u0021\ntwicetwice`, ToolCalls: `{\"x\":1}`}},
		"document": {`{"choices":[{"index":0,"message":{"role":"assistant","content":"all at once"},"logprobs":{"content":[{"token":"all","top_logprobs":[]}]}}]}`,
			map[Channel]string{Content: "all at once"}},
	} {
		for _, strict := range []bool{true, false} {
			got := map[Channel]string{}
			w := New(Options{Dialect: "openai", Stream: name == "stream", Strict: strict, Text: func(c Channel) func([]byte) {
				if c == Logprobs {
					return nil
				}
				return func(p []byte) { got[c] += string(p) }
			}})
			w.Write([]byte(c.text))
			w.Close()
			if !maps.Equal(got, c.want) {
				t.Errorf("%s, strict %v: %q, want %q", name, strict, got, c.want)
			}
		}
	}
}
