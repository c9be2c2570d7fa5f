package guard

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/guard/admit"
	"pgregory.net/rapid"
)

// voice is a way in which an engine streams a text: what comes before, what
// stands around each piece of it, and what ends the stream.
type voice struct{ path, before, open, close, after, end string }

// voices are the dialects and the channels of each.
var voices = map[string]voice{
	"openai content":     openAI("/v1/chat/completions", `"delta":{"content":`, `}`),
	"openai reasoning":   openAI("/v1/chat/completions", `"delta":{"reasoning_content":`, `}`),
	"openai tools":       openAI("/v1/chat/completions", `"delta":{"tool_calls":[{"index":0,"function":{"arguments":`, `}}]}`),
	"openai refusal":     openAI("/v1/chat/completions", `"delta":{"content":null,"refusal":`, `}`),
	"completions":        openAI("/v1/completions", `"text":`, ``),
	"responses":          responses("response.output_text.delta"),
	"responses thinking": responses("response.reasoning_text.delta"),
	"responses tools":    responses("response.function_call_arguments.delta"),
	"anthropic text":     anthropic(`{"type":"text","text":""}`, "text_delta", "text"),
	"anthropic thinking": anthropic(`{"type":"thinking","thinking":""}`, "thinking_delta", "thinking"),
	"anthropic tools":    anthropic(`{"type":"tool_use","id":"t","name":"f","input":{}}`, "input_json_delta", "partial_json"),
	"ollama chat":        ollama("/api/chat", `"message":{"role":"assistant","content":`, `}`),
	"ollama thinking":    ollama("/api/chat", `"message":{"role":"assistant","content":"","thinking":`, `}`),
	"ollama generate":    ollama("/api/generate", `"response":`, ``),
}

func openAI(path, open, close string) voice {
	return voice{path, "", `data: {"choices":[{"index":0,` + open, close + "}]}\n\n", "data: [DONE]\n\n", "[DONE]"}
}

func responses(event string) voice {
	return voice{"/v1/responses", "", "event: " + event + "\n" + `data: {"type":"` + event + `","output_index":0,"content_index":0,"delta":`, "}\n\n",
		"event: response.completed\n" + `data: {"type":"response.completed"}` + "\n\n", "response.completed"}
}

func anthropic(block, delta, member string) voice {
	return voice{"/v1/messages",
		"event: message_start\n" + `data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":1000,"output_tokens":1}}}` + "\n\n" +
			"event: content_block_start\n" + `data: {"type":"content_block_start","index":0,"content_block":` + block + "}\n\n",
		"event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"` + delta + `","` + member + `":`, "}}\n\n",
		"event: content_block_stop\n" + `data: {"type":"content_block_stop","index":0}` + "\n\n" +
			"event: message_delta\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":20}}` + "\n\n" +
			"event: message_stop\n" + `data: {"type":"message_stop"}` + "\n\n",
		"message_stop"}
}

func ollama(path, open, close string) voice {
	return voice{path, "", `{"model":"m",` + open, close + `,"done":false}` + "\n", `{"model":"m","done":true}` + "\n", `"done":true`}
}

// asked is a request that is answered in this voice.
func (v voice) asked() string {
	switch v.path {
	case "/v1/completions", "/api/generate":
		return `{"model":"m","stream":true,"prompt":"hello"}`
	case "/v1/responses":
		return `{"model":"m","stream":true,"input":"hello"}`
	}
	return `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hello"}]}`
}

// says streams a text that is cut at some places.
func (v voice) says(text string, cuts []int) (parts []string) {
	parts = append(parts, v.before)
	from := 0
	for _, to := range append(cuts, len(text)) {
		if to > from {
			piece, _ := json.Marshal(text[from:to])
			parts = append(parts, v.open+string(piece)+v.close)
			from = to
		}
	}
	return append(parts, v.after)
}

// heard is the text of a stream, as a client puts it together.
func (v voice) heard(stream string) string {
	var all strings.Builder
	for {
		_, rest, found := strings.Cut(stream, v.open)
		if !found {
			return all.String()
		}
		var piece string
		if json.NewDecoder(strings.NewReader(rest)).Decode(&piece) == nil {
			all.WriteString(piece)
		}
		stream = rest
	}
}

// speaker is an engine that says what it is given, and counts words as tokens
// in Anthropic's dialect.
type speaker struct {
	served atomic.Int32
	parts  atomic.Pointer[[]string] // of a stream
	whole  atomic.Pointer[string]   // an answer that is no stream
}

func (s *speaker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		System   string
		Stream   *bool
		Messages []struct{ Content string }
	}
	json.NewDecoder(r.Body).Decode(&q)
	if r.URL.Path == "/v1/messages/count_tokens" {
		n := len(strings.Fields(q.System))
		for _, m := range q.Messages {
			n += len(strings.Fields(m.Content))
		}
		fmt.Fprintf(w, `{"input_tokens":%d}`, max(1, n))
		return
	}
	s.served.Add(1)
	if q.Stream == nil || !*q.Stream {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, *s.whole.Load())
		return
	}
	kind := "text/event-stream"
	if strings.HasPrefix(r.URL.Path, "/api/") {
		kind = "application/x-ndjson"
	}
	w.Header().Set("Content-Type", kind)
	for _, p := range *s.parts.Load() {
		io.WriteString(w, p)
		w.(http.Flusher).Flush()
	}
}

func anthropicBody(words int, stream bool) string {
	return fmt.Sprintf(`{"model":"m","max_tokens":50,"stream":%v,"messages":[{"role":"user","content":%q}]}`, stream, strings.TrimSpace(strings.Repeat("word ", words)))
}

// However a leak is cut over the events of a stream, in whichever dialect and
// channel it comes, no client gets a piece of it that names its owner, and none
// takes what it got for a whole answer.
func TestLeaksAreStopped(t *testing.T) {
	coder := canary.New(canary.Key{3})
	s := &speaker{}
	f := guardBefore(t, engine(t, s.ServeHTTP), func(o *Options) { o.Watch = Watch{Coders: []*canary.Coder{coder}} })
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		id := canary.MakeID(1, 2, rapid.IntRange(0, canary.MaxSeq).Draw(t, "exchange"))
		words := rapid.OneOf(rapid.Just(canary.MinWords), rapid.IntRange(canary.MinWords, 40)).Draw(t, "words")
		leak, err := io.ReadAll(coder.Words(id, rapid.IntRange(0, 300).Draw(t, "from"), words))
		if err != nil {
			t.Fatal(err)
		}
		text := rapid.SampledFrom([]string{"", "The answer is this: ", `{"city": "`, "日本 "}).Draw(t, "before") + string(leak) +
			rapid.SampledFrom([]string{"", ". And so on.", `"}`, " and", "\n\nNow"}).Draw(t, "after")
		var cuts []int
		often := rapid.IntRange(0, 6).Draw(t, "often")
		for i := 1; i < len(text); i++ { // between characters
			if text[i]&0xC0 != 0x80 && rapid.IntRange(0, often).Draw(t, "cut") == 0 {
				cuts = append(cuts, i)
			}
		}
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(voices))).Draw(t, "voice")
		v := voices[name]
		parts := v.says(text, cuts)
		s.parts.Store(&parts)
		res, err := f.client.Post(f.url+v.path, "application/json", strings.NewReader(v.asked()))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		n++
		if hits := coder.Scan([]byte(v.heard(string(got)))); len(hits) > 0 {
			t.Fatalf("%s: the client heard %d words of %q, cut at %v:\n%s", name, hits[0].Words, text, cuts, got)
		}
		switch {
		case res.StatusCode >= 500: // it leaked before the answer began
		case res.StatusCode != 200 || err == nil || !strings.Contains(string(got), `"error"`) || strings.Contains(string(got), v.end):
			t.Fatalf("%s: %d, %v: the stream ends as if it were whole:\n%s", name, res.StatusCode, err, got)
		}
	})
	if r := f.last(t, n); len(r.Findings) == 0 || r.Findings[0].Kind != "leak" {
		t.Errorf("recorded %+v", r)
	}
}

// An answer that carries no leak comes through in every dialect, byte for byte.
func TestOrdinaryAnswersComeThrough(t *testing.T) {
	s := &speaker{}
	f := guardBefore(t, engine(t, s.ServeHTTP), func(o *Options) { o.Watch = Watch{Coders: []*canary.Coder{canary.New(canary.Key{3})}} })
	const text = "Ordinary words of the list: adequate deem equity flair chapel, and then some."
	for name, v := range voices {
		parts := v.says(text, []int{3, 9, 30, 31, 50, 64})
		s.parts.Store(&parts)
		if status, _, got := f.post(t, v.path, v.asked()); status != 200 || got != strings.Join(parts, "") || v.heard(got) != text {
			t.Errorf("%s: %d %s", name, status, got)
		}
	}
}

// A prompt that is too long is refused in Anthropic's words before the engine
// sees it, and what fits comes through as it is.
func TestAnthropicPromptsAreCounted(t *testing.T) {
	s := &speaker{}
	f := guardBefore(t, engine(t, s.ServeHTTP), func(o *Options) {
		o.Upstreams[0].Given = admit.Given{Tokens: 1000}
		o.Admission = Admission{Policy: admit.Policy{TemplateTokens: 100}}
	})
	parts := voices["anthropic text"].says("Hello there.", []int{3, 7})
	whole := `{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"Hello there."}],"usage":{"input_tokens":1000,"output_tokens":3}}`
	s.parts.Store(&parts)
	s.whole.Store(&whole)
	for _, stream := range []bool{false, true} {
		status, h, b := f.post(t, "/v1/messages", anthropicBody(1000, stream))
		want := whole
		if stream {
			want = strings.Join(parts, "")
		}
		if status != 200 || b != want || h.Get("Kvcanary-Admission") != "counted" {
			t.Errorf("streamed %v, a thousand tokens: %d %v %s", stream, status, h, b)
		}
		served := s.served.Load()
		status, h, b = f.post(t, "/v1/messages", anthropicBody(1001, stream))
		var e struct {
			Type  string
			Error struct{ Type, Message string }
		}
		if err := json.Unmarshal([]byte(b), &e); err != nil || status != 400 || e.Type != "error" || e.Error.Type != "invalid_request_error" ||
			!strings.HasPrefix(e.Error.Message, "prompt is too long: 1,001 tokens > 1,000 maximum") || h.Get("Content-Type") != "application/json" {
			t.Errorf("streamed %v, one more: %d %v %s", stream, status, h, b)
		}
		if s.served.Load() != served {
			t.Errorf("streamed %v: the engine was sent what it cannot hold", stream)
		}
	}
	// What the engine says it has read of a prompt is more than it had counted:
	// the next one of its length may be too long.
	more := strings.Replace(whole, `"input_tokens":1000`, `"input_tokens":1100`, 1)
	s.whole.Store(&more)
	if status, _, b := f.post(t, "/v1/messages", anthropicBody(999, false)); status != 200 || b != more {
		t.Errorf("%d %s", status, b)
	}
	if status, _, b := f.post(t, "/v1/messages", anthropicBody(950, false)); status != 400 || !strings.Contains(b, "read more tokens than it had counted") {
		t.Errorf("950 tokens, which may be 1,046: %d %s", status, b)
	}
	if status, _, b := f.post(t, "/v1/messages", anthropicBody(900, false)); status != 200 {
		t.Errorf("900 tokens: %d %s", status, b)
	}
}
