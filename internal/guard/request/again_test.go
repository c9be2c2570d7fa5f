package request

import (
	"errors"
	"strings"
	"testing"
)

// What a template may say again is seen: the name of a tool that was called, for
// each answer of a tool, and definitions of tools, for each reference to one.
func TestWhatMayBeSaidAgain(t *testing.T) {
	long := strings.Repeat("n", 300)
	call := `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"` + long + `","arguments":"{\"name\":\"` + strings.Repeat("x", 2000) + `\"}"}}]}`
	for name, c := range map[string]struct {
		dialect, body               string
		results, called, references int
	}{
		"chat":               {"openai", `{"messages":[` + call + `,{"role":"tool","tool_call_id":"a","content":""},{"role":"tool","tool_call_id":"a","content":""}]}`, 2, 300, 0},
		"role in capitals":   {"openai", `{"messages":[` + call + `,{"role":"TOOL","content":""}]}`, 1, 300, 0},
		"old call":           {"openai", `{"messages":[{"role":"assistant","function_call":{"name":"abc","arguments":""}},{"role":"function","name":"abc","content":""}]}`, 1, 3, 0},
		"escapes":            {"openai", `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"\u00e9"}}]},{"role":"tool"}]}`, 1, 6 * mostNormal, 0},
		"nobody is answered": {"openai", `{"messages":[{"role":"system","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":"c"},{"role":"developer","content":"d"}]}`, 0, 0, 0},
		"messages": {"anthropic", `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"find","input":{"name":"` + long + `"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"tool_reference","tool_name":"x"},{"type":"tool_reference","tool_name":"x"}]}]}]}`, 1, 4, 2},
		"responses": {"responses", `{"input":[{"type":"function_call","call_id":"a","name":"find","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"x"},
			{"type":"custom_tool_call_output","call_id":"a","output":"x"}]}`, 2, 4, 0},
		"ollama":             {"ollama", `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"find","arguments":{"name":"a longer one"}}}]},{"role":"tool","content":"x"}]}`, 1, 4, 0},
		"referred to deeper": {"openai", `{"messages":[{"role":"tool","content":"x","parts":[{"type":"tool_reference","name":"x"}]}]}`, 1, 0, 1},
	} {
		for n := range 4 {
			_, f, err := rewrite(c.body, Policy{Dialect: c.dialect, MaxOpaque: -1}, n)
			if err != nil || f.Results != c.results || f.Called != c.called || f.References != c.references || f.Opaque != 0 {
				t.Errorf("%s: %d answers, a name of %d bytes, %d references, %d opaque, %v; want %d, %d, %d", name, f.Results, f.Called, f.References, f.Opaque, err, c.results, c.called, c.references)
			}
		}
	}
}

// No name of a tool is longer than what is looked at, nor spelt so that a decoder
// that does not mind case reads it and the guard does not.
func TestNamesOfToolsAreSeen(t *testing.T) {
	for _, body := range []string{
		`{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"` + strings.Repeat("n", maxScalar+1) + `"}}]}]}`,
		`{"messages":[{"role":"assistant","tool_calls":[{"function":{"Name":"x"}}]}]}`,
		`{"messages":[{"role":"assistant","tool_calls":[{"Function":{"name":"x"}}]}]}`,
		`{"messages":[{"role":"assistant","function_call":{"NAME":"x"}}]}`,
		`{"messages":[{"Role":"tool"}]}`,
	} {
		_, _, err := rewrite(body, Policy{Dialect: "ollama"}, 0)
		var refused *Refused
		if !errors.As(err, &refused) || refused.Reason.Status != 400 {
			t.Errorf("%.80s: %v", body, err)
		}
	}
}

// The arguments of a call are text in one API and an object in another: templates
// that write each argument with marks around it read both.
func TestArgumentsAreStructured(t *testing.T) {
	arguments := `"{\"a\":1,\"b\":2}"`
	for n := range 4 {
		_, f, err := rewrite(`{"input":[{"type":"function_call","call_id":"a","name":"f","arguments":`+arguments+`},{"role":"user","content":"text"}]}`, Policy{Dialect: "responses"}, n)
		if want := int64(len(arguments)); err != nil || f.Structured < want-1 || f.Structured > want || f.Depth != 3 {
			t.Errorf("in pieces of %d: %d bytes, %d deep, %v; want %d", n, f.Structured, f.Depth, err, want)
		}
	}
	if _, f, err := rewrite(`{"input":"text","what_nobody_knows":"text"}`, Policy{Dialect: "responses"}, 0); err != nil || f.Structured != 0 {
		t.Errorf("%d bytes of plain text, %v", f.Structured, err)
	}
}
