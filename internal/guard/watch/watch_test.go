package watch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/canary"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testCoder(seed byte) *canary.Coder {
	var k canary.Key
	for i := range k {
		k[i] = seed + byte(i)
	}
	return canary.New(k)
}

func mint(c *canary.Coder, id canary.ID, from, n int) string {
	b, err := io.ReadAll(c.Words(id, from, n))
	if err != nil {
		panic(err)
	}
	return string(b)
}

var theirs = canary.MakeID(7, 3, 11)

// send writes a stream in pieces of the sizes given and returns what was let
// out, and whether it was stopped.
func send(w *Watch, stream string, sizes ...int) (out string, stopped bool) {
	var b strings.Builder
	p := []byte(stream)
	for i := 0; len(p) > 0; i++ {
		n := min(len(p), sizes[i%len(sizes)])
		release, stop := w.Write(bytes.Clone(p[:n]))
		b.Write(release)
		if stop {
			return b.String(), true
		}
		p = p[n:]
	}
	release, stop := w.Close()
	b.Write(release)
	return b.String(), stop
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// carrier is one way by which an answer carries text.
type carrier struct {
	name    string
	dialect string
	channel Channel
	head    string
	event   func(text string) string // text is a JSON string
	tail    string
}

func data(format string) func(string) string {
	before, after, _ := strings.Cut(format, "TEXT")
	return func(text string) string { return "data: " + before + text + after + "\n\n" }
}

func named(name, format string) func(string) string {
	f := data(format)
	return func(text string) string { return "event: " + name + "\n" + f(text) }
}

func line(format string) func(string) string {
	before, after, _ := strings.Cut(format, "TEXT")
	return func(text string) string { return before + text + after + "\n" }
}

const chunk = `{"id":"chatcmpl-9f3a","object":"chat.completion.chunk","created":1700000000,"model":"some/model-70b","choices":[{"index":0,"delta":`

var (
	chatHead = "data: " + chunk + `{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	chatTail = "data: " + chunk + `{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
)

// carriers are all ways by which the dialects carry text that a model makes.
var carriers = []carrier{
	{"content", "openai", Content, chatHead, data(chunk + `{"content":TEXT},"logprobs":null,"finish_reason":null}]}`), chatTail},
	{"reasoning_content", "openai", Reasoning, chatHead, data(chunk + `{"reasoning_content":TEXT,"content":null}}]}`), chatTail},
	{"reasoning", "openai", Reasoning, chatHead, data(chunk + `{"content":"","reasoning":TEXT,"reasoning_details":[{"type":"reasoning.text","text":TEXT}]}}]}`), chatTail},
	{"arguments", "openai", ToolCalls, chatHead, data(chunk + `{"tool_calls":[{"index":0,"function":{"arguments":TEXT}}]}}]}`), chatTail},
	{"refusal", "openai", Content, chatHead, data(chunk + `{"refusal":TEXT}}]}`), chatTail},
	{"unknown", "openai", Raw, "", data(`{"surprise":{"deep":[TEXT]}}`), ""},
	{"logprobs", "openai", Logprobs, chatHead, data(chunk + `{"content":"?"},"logprobs":{"content":[{"token":TEXT,"logprob":-0.1,"bytes":null,"top_logprobs":[{"token":"x","logprob":-1,"bytes":[120]}]}]}}]}`), chatTail},
	{"top_logprobs", "openai", Logprobs, chatHead, data(chunk + `{"content":"?"},"logprobs":{"content":[{"token":"?","logprob":-0.1,"top_logprobs":[{"token":"x","logprob":-1},{"token":TEXT,"logprob":-3}]}]}}]}`), chatTail},
	{"text", "completions", Content, "", data(`{"id":"cmpl-1","object":"text_completion","choices":[{"text":TEXT,"index":0,"logprobs":null,"finish_reason":null}]}`), "data: [DONE]\n\n"},
	{"tokens", "completions", Logprobs, "", data(`{"choices":[{"text":"?","index":0,"logprobs":{"tokens":[TEXT],"top_logprobs":[{"x":-1}]}}]}`), "data: [DONE]\n\n"},
	{"token names", "completions", Logprobs, "", data(`{"choices":[{"text":"?","index":0,"logprobs":{"tokens":["?"],"top_logprobs":[{"x":-1,TEXT:-2}]}}]}`), "data: [DONE]\n\n"},
	{"text_delta", "anthropic", Content, "event: ping\ndata: {\"type\": \"ping\"}\n\n", named("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":TEXT}}`), "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"},
	{"thinking_delta", "anthropic", Reasoning, "", named("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":TEXT}}`), ""},
	{"input_json_delta", "anthropic", ToolCalls, "", named("content_block_delta", `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":TEXT}}`), ""},
	{"output_text", "responses", Content, "", named("response.output_text.delta", `{"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_1","output_index":0,"content_index":0,"delta":TEXT,"obfuscation":"aVx"}`), ""},
	{"reasoning delta", "responses", Reasoning, "", named("response.reasoning_text.delta", `{"type":"response.reasoning_text.delta","item_id":"rs_1","output_index":0,"content_index":0,"delta":TEXT}`), ""},
	{"arguments delta", "responses", ToolCalls, "", named("response.function_call_arguments.delta", `{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":1,"delta":TEXT}`), ""},
	{"chat", "ollama", Content, "", line(`{"model":"m","created_at":"2026-01-02T03:04:05.678Z","message":{"role":"assistant","content":TEXT},"done":false}`), `{"model":"m","message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":3}` + "\n"},
	{"thinking", "ollama", Reasoning, "", line(`{"model":"m","message":{"role":"assistant","content":"","thinking":TEXT},"done":false}`), ""},
	{"generate", "ollama", Content, "", line(`{"model":"m","response":TEXT,"done":false}`), ""},
}

func (y carrier) stream(pieces []string) string {
	var b strings.Builder
	b.WriteString(y.head)
	for _, p := range pieces {
		b.WriteString(y.event(quote(p)))
	}
	b.WriteString(y.tail)
	return b.String()
}

func (y carrier) watch(strict bool, coders ...*canary.Coder) *Watch {
	return New(Options{Dialect: y.dialect, Stream: true, Strict: strict, Coders: coders})
}

// drawCuts cuts a text anywhere.
func drawCuts(t *rapid.T, text string) (pieces []string) {
	sizes := rapid.SliceOfN(rapid.SampledFrom([]int{1, 2, 3, 5, 8, 13, 40, 500}), 1, 6).Draw(t, "cuts")
	for i := 0; len(text) > 0; i++ {
		n := min(len(text), sizes[i%len(sizes)])
		pieces, text = append(pieces, text[:n]), text[n:]
	}
	return pieces
}

// TestNoWordOfACanaryIsLetOut: however a canary is cut over events, and the
// events over writes, nothing of an event that holds a letter of it is released.
func TestNoWordOfACanaryIsLetOut(t *testing.T) {
	c := testCoder(1)
	for _, y := range carriers {
		t.Run(y.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				before := rapid.SampledFrom([]string{"", "I am sure: ", "is it 42? ", "the "}).Draw(t, "before")
				words := mint(c, theirs, rapid.IntRange(0, 50).Draw(t, "from"), rapid.IntRange(8, 12).Draw(t, "words"))
				pieces := drawCuts(t, before+words+" is it.")
				first, at := 0, 0 // the first piece with a letter of the canary
				for at+len(pieces[first]) <= len(before) {
					at += len(pieces[first])
					first++
				}
				stream := y.stream(pieces)
				safe := len(y.head)
				for _, p := range pieces[:first] {
					safe += len(y.event(quote(p)))
				}
				w := y.watch(true, testCoder(9), c)
				out, stopped := send(w, stream, rapid.SliceOfN(rapid.IntRange(1, 400), 1, 4).Draw(t, "writes")...)
				if !stopped || out != stream[:len(out)] || len(out) > safe {
					t.Fatalf("stopped %v; %d bytes came out, %d are safe\n%s", stopped, len(out), safe, out)
				}
				f := w.Findings()
				if len(f) != 1 || f[0].Kind != Leak || f[0].From != theirs || f[0].Words < canary.MinWords || f[0].Channel != y.channel && f[0].Channel != Raw {
					t.Fatalf("findings %+v", f)
				}
				w = y.watch(false, c)
				if out, stopped = send(w, stream, 100); stopped || out != stream {
					t.Fatalf("an audit holds: %v, %d of %d bytes", stopped, len(out), len(stream))
				}
				if f := w.Findings(); len(f) != 1 || f[0].Channel != y.channel || f[0].Words < canary.MinWords {
					t.Fatalf("an audit finds %+v", f)
				}
			})
		})
	}
}

// TestInnocentStreamsPassWhole: text without canaries comes out as it went in.
func TestInnocentStreamsPassWhole(t *testing.T) {
	c := testCoder(1)
	rapid.Check(t, func(t *rapid.T) {
		y := rapid.SampledFrom(carriers).Draw(t, "way")
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(strings.Fields("the window of and "+mint(c, theirs, 0, 40)+" is 42, \u00e9 \u4e16\u754c \"q\" \\ \n\t - {}")), 1, 60).Draw(t, "text"), " ")
		if len(c.Scan([]byte(text))) > 0 {
			return // by chance
		}
		stream := y.stream(drawCuts(t, text))
		w := y.watch(true, c)
		out, stopped := send(w, stream, rapid.SliceOfN(rapid.IntRange(1, 400), 1, 4).Draw(t, "writes")...)
		if stopped || out != stream || len(w.Findings()) > 0 {
			t.Fatalf("stopped %v, findings %+v, in\n%q\nout\n%q", stopped, w.Findings(), stream, out)
		}
	})
}

// TestOwnCanariesPass: what the request itself carried may come back.
func TestOwnCanariesPass(t *testing.T) {
	c := testCoder(1)
	for _, y := range carriers {
		stream := y.stream(strings.SplitAfter(mint(c, theirs, 0, 60)+" "+c.Token(theirs), " "))
		w := New(Options{Dialect: y.dialect, Stream: true, Strict: true, Coders: []*canary.Coder{c}, Own: func(id canary.ID) bool { return id == theirs }})
		if out, stopped := send(w, stream, 100); stopped || out != stream || len(w.Findings()) > 0 {
			t.Errorf("%s: stopped %v, findings %+v", y.name, stopped, w.Findings())
		}
		if _, most := w.Held(); most > 9*len(y.event(quote("elevenchars"))) {
			t.Errorf("%s: held %d bytes", y.name, most)
		}
	}
}

func TestHeaders(t *testing.T) {
	c := testCoder(1)
	w := New(Options{Strict: true, Coders: []*canary.Coder{c}})
	if w.Headers(http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"abc"}}) {
		t.Fatal("stopped by innocent headers")
	}
	words := strings.Fields(mint(c, theirs, 4, 10))
	stop := w.Headers(http.Header{"Grpc-Message": {strings.Join(words[:4], " "), strings.Join(words[4:], "%20")}, "A": {"b"}})
	if f := w.Findings(); !stop || len(f) != 1 || f[0].Channel != Header || f[0].From != theirs {
		t.Errorf("stop %v, findings %+v", stop, f)
	}
	if out, stop := w.Write([]byte("{}")); len(out) > 0 || !stop {
		t.Errorf("goes on after it has stopped: %q, %v", out, stop)
	}
}

func ExampleWatch() {
	w := New(Options{Dialect: "openai", Stream: true, Strict: true, Counted: 681_281, Exact: true})
	w.Write([]byte("data: " + chunk + `{"content":"Sure."}}],"usage":{"prompt_tokens":1}}` + "\n\n"))
	_, stop := w.Write([]byte("data: [DONE]\n\n"))
	fmt.Println(stop, w.Findings()[0].Explain)
	// Output: true the upstream says it has read 1 of 681281 prompt tokens, and answered: up to 6812 it cannot have read the prompt
}

// drawPlace makes a document with a text anywhere in it: before is what stands
// before the text, after what stands after it.
func drawPlace(t *rapid.T) (before, after string) {
	names := []string{"a", "choices", "delta", "content", "text", "usage", "logprobs", "top_logprobs", "tool_calls", "reasoning_x", "7", "x index", "b\\\"c", "world", "token", "input"}
	siblings := []string{`"n":null`, `"index":3`, `"k":[1,2]`, `"bytes":[256]`, `"id":"abc"`, `"o":{}`, `"p":["",true]`, `"z":-1.5e3`, `"q":"1 2"`}
	before, after = "", ""
	for range rapid.IntRange(1, 5).Draw(t, "depth") {
		if rapid.IntRange(0, 3).Draw(t, "list") == 0 {
			before += "[" + rapid.SampledFrom([]string{"", "{},", "1,", `"",`, " "}).Draw(t, "elements before")
			after = rapid.SampledFrom([]string{"", ",{}", ",2"}).Draw(t, "elements after") + "]" + after
			continue
		}
		before += "{"
		if rapid.Bool().Draw(t, "sibling before") {
			before += rapid.SampledFrom(siblings).Draw(t, "before") + ", "
		}
		before += `"` + rapid.SampledFrom(names).Draw(t, "name") + `" : `
		if rapid.Bool().Draw(t, "sibling after") {
			after = "," + rapid.SampledFrom(siblings).Draw(t, "after") + "}" + after
		} else {
			after = "}" + after
		}
	}
	return before, after
}

// TestAnyPlaceIsWatched: text at any place of a document, in event after event.
func TestAnyPlaceIsWatched(t *testing.T) {
	c := testCoder(1)
	rapid.Check(t, func(t *rapid.T) {
		before, after := drawPlace(t)
		y := carrier{dialect: "openai", event: data(before + "TEXT" + after)}
		if rapid.Bool().Draw(t, "lines") {
			y.event = line(`{"x":` + before + "TEXT" + after + "}")
		}
		words := mint(c, theirs, rapid.IntRange(0, 50).Draw(t, "from"), 8)
		w := y.watch(true, c)
		out, stopped := send(w, y.stream(drawCuts(t, words+" is.")), rapid.IntRange(1, 200).Draw(t, "write"))
		if f := w.Findings(); !stopped || out != "" || len(f) != 1 || f[0].From != theirs {
			t.Fatalf("in %sTEXT%s: stopped %v, %+v, out %q", before, after, stopped, f, out)
		}
	})
}
