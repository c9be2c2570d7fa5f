package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// read feeds events to the dialect and returns what it made of them.
func readEvents(docs ...string) *transcript {
	t := newTranscript(func() time.Time { return time.Unix(1, 0) })
	for _, d := range docs {
		chatEvent(t, "", []byte(d))
	}
	return t
}

func delta(s string) string { return `{"choices":[{"index":0,"delta":` + s + `}]}` }

func TestChannels(t *testing.T) {
	for _, c := range []struct {
		name string
		docs []string
		want map[Channel]string
	}{
		{"content in parts", []string{delta(`{"content":[{"type":"text","text":"a"},{"type":"thinking","thinking":[{"type":"text","text":"b"}]}]}`)},
			map[Channel]string{Content: "a\nb"}},
		{"thinking as text", []string{delta(`{"content":[{"type":"thinking","thinking":"b"}]}`)}, map[Channel]string{Reasoning: "b"}},
		{"content null", []string{delta(`{"content":null,"reasoning_content":"r"}`)}, map[Channel]string{Reasoning: "r"}},
		{"think tags stay", []string{delta(`{"content":"<think>x</think>y"}`)}, map[Channel]string{Content: "<think>x</think>y"}},
		{"reasoning twice", []string{delta(`{"reasoning_content":"r","reasoning":"r"}`), delta(`{"reasoning_content":"s","reasoning":"s"}`)}, map[Channel]string{Reasoning: "rs"}},
		{"reasoning of all names", []string{delta(`{"reasoning_content":"a","reasoning":"b","reasoning_text":"c","thinking":"d"}`)}, map[Channel]string{Reasoning: "a\nb\nc\nd"}},
		{"reasoning details", []string{delta(`{"reasoning_details":[{"type":"reasoning.text","text":"t"},{"summary":"s"},{"data":"d"},{"text":7}]}`)}, map[Channel]string{Reasoning: "t\ns\nd"}},
		{"refusal text", []string{delta(`{"refusal":"no"}`)}, map[Channel]string{Content: "no"}},
		{"tool calls interleaved", []string{
			delta(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"a"}},{"index":1,"function":{"name":"g","arguments":"{}"}}]}`),
			delta(`{"tool_calls":[{"index":0,"function":{"arguments":"\":1}"}}]}`)},
			map[Channel]string{ToolCalls: "f\n{\"a\":1}\ng\n{}"}},
		{"arguments as object", []string{delta(`{"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]}`)}, map[Channel]string{ToolCalls: "f\n{\"a\":1}"}},
		{"function call", []string{delta(`{"function_call":{"name":"f","arguments":"x"}}`)}, map[Channel]string{ToolCalls: "f\nx"}},
		{"logprobs", []string{`{"choices":[{"logprobs":{"content":[{"token":"a","top_logprobs":[{"token":"a"},{"token":"z"}]},{"token":"b","top_logprobs":[{"token":"b"},{"token":"y"}]}]}}]}`}, map[Channel]string{Logprobs: "ab\nzy"}},
		{"older logprobs", []string{`{"choices":[{"text":"ab","logprobs":{"tokens":["a","b"]}}]}`}, map[Channel]string{Content: "ab", Logprobs: "ab"}},
		{"two choices interleaved", []string{`{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"x"}}]}`, `{"choices":[{"index":1,"delta":{"content":"y"}},{"index":0,"delta":{"content":"b"}}]}`}, map[Channel]string{Content: "ab\nxy"}},
		{"message repeats the deltas", []string{delta(`{"content":"ab"}`), `{"choices":[{"index":0,"message":{"content":"ab"},"finish_reason":"stop"}]}`}, map[Channel]string{Content: "ab"}},
		{"types that do not fit", []string{`{"id":5,"model":{},"choices":[{"index":"0","delta":{"content":"a","reasoning_content":7,"tool_calls":"x"}}]}`}, map[Channel]string{Content: "a"}},
		{"error beside text", []string{delta(`{"content":"a"}`), `{"error":{"message":"line\none"}}`}, map[Channel]string{Content: "a", ErrorBody: "{\"error\":{\"message\":\"line\\none\"}}"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			docs := c.docs
			for i := range docs {
				docs[i] = strings.ReplaceAll(docs[i], "line\none", `line\none`)
			}
			tr := readEvents(docs...)
			got := map[Channel]string{}
			for _, p := range tr.pieces() {
				if p.Channel == ErrorBody {
					p.Text, _, _ = strings.Cut(p.Text, "\n")
				}
				got[p.Channel] = p.Text
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if tr.garbage != "" || tr.chunks == 0 {
				t.Errorf("garbage %q, %d chunks", tr.garbage, tr.chunks)
			}
		})
	}
}

func TestUsageShapes(t *testing.T) {
	for doc, want := range map[string]*Usage{
		`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_cache_hit_tokens":4}}`: {Prompt: 10, Completion: 2, Cached: 4},
		`{"choices":[],"usage":{"prompt_tokens":10,"prompt_tokens_details":null}}`:                      {Prompt: 10, Completion: 0, Cached: 0},
		`{"choices":[],"usage":{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":8}}}`:       {Prompt: 10, Completion: 0, Cached: 8},
		`{"choices":[],"usage":{"prompt_tokens":"10"}}`:                                                 {Prompt: 10, Completion: 0, Cached: 0},
		`{"choices":[],"usage":{"prompt_tokens":1e300}}`:                                                nil,
		`{"choices":[],"usage":{"prompt_tokens":1.5}}`:                                                  nil,
		`{"choices":[],"usage":null}`:                                                                   nil,
		`{"choices":[],"usage":[]}`:                                                                     nil,
		`{"choices":[],"timings":{"cache_n":90,"prompt_n":10,"predicted_n":3}}`:                         {Prompt: 100, Completion: 3, Cached: 90},
	} {
		got := readEvents(doc).usage
		if (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%s: %+v, want %+v", doc, got, want)
		}
	}
}

// What is kept beside the raw bytes is bounded whatever the target sends.
func TestTranscriptIsBounded(t *testing.T) {
	tr := newTranscript(time.Now)
	big := strings.Repeat("x", 1<<20)
	for i := range 3 * maxStrands {
		tr.add(ToolCalls, fmt.Sprint(i), "name")
	}
	for range 20 {
		tr.add(Content, "0", big)
		tr.fail([]byte(big))
		tr.spoil("x", []byte(big))
	}
	total := 0
	for _, p := range tr.pieces() {
		total += len(p.Text)
	}
	if len(tr.strands) > maxStrands || total > 3*maxText {
		t.Errorf("%d strands, %d bytes", len(tr.strands), total)
	}
}

func TestNullNaN(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":NaN}`:                       `{"a":null}`,
		`[-Infinity,Infinity,-NaN,-1]`:    `[null,null,null,-1]`,
		`{"NaN":"Infinity \" NaN","b":1}`: ``,
		`{"a":"x\\","b":NaN}`:             `{"a":"x\\","b":null}`,
	} {
		if got := string(nullNaN([]byte(in))); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		doc, _ := json.Marshal(map[string]string{rapid.String().Draw(t, "k"): rapid.String().Draw(t, "v")})
		if got := nullNaN(doc); got != nil {
			t.Fatalf("%s became %s", doc, got)
		}
	})
}

func FuzzChatEvent(f *testing.F) {
	for _, s := range []string{chunkHello, chunkStop, chunkUsage, "[DONE]", `{"error":"x"}`, delta(`{"content":[{}]}`), "{", "NaN", `{"choices":null}`, `{"choices":[null]}`, `{"choices":{"a":1}}`} {
		f.Add("", []byte(s))
		f.Add("error", []byte(s))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		tr := newTranscript(time.Now)
		before := bytes.Clone(data)
		chatEvent(tr, name, data)
		chatEvent(tr, name, data)
		if !bytes.Equal(before, data) {
			t.Error("the event was changed")
		}
		if u := tr.usage; u != nil && (u.Prompt < 0 || u.Completion < 0 || u.Cached < 0) {
			t.Errorf("usage %+v", u)
		}
		tr.pieces()
	})
}
