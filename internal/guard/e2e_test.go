package guard

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/guard/admit"
	"pgregory.net/rapid"
)

// speaker is an engine that speaks Anthropic's dialect, counts words as tokens,
// and says in its answer what it is given.
type speaker struct {
	served atomic.Int32
	events atomic.Pointer[[]string] // of a stream
	whole  atomic.Pointer[string]   // an answer that is no stream
}

func (s *speaker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		System   string
		Stream   bool
		Messages []struct{ Content string }
	}
	json.NewDecoder(r.Body).Decode(&q)
	switch r.URL.Path {
	case "/v1/messages/count_tokens":
		n := len(strings.Fields(q.System))
		for _, m := range q.Messages {
			n += len(strings.Fields(m.Content))
		}
		fmt.Fprintf(w, `{"input_tokens":%d}`, max(1, n))
	case "/v1/messages":
		s.served.Add(1)
		if !q.Stream {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, *s.whole.Load())
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range *s.events.Load() {
			io.WriteString(w, e)
			w.(http.Flusher).Flush()
		}
	default:
		http.NotFound(w, r)
	}
}

// said makes Anthropic's events for a text that is cut at some places, in one of
// the channels that an answer has.
func said(channel, text string, cuts []int) (events []string) {
	event := func(name, data string) { events = append(events, "event: "+name+"\ndata: "+data+"\n\n") }
	block, delta, member := `{"type":"text","text":""}`, "text_delta", "text"
	switch channel {
	case "thinking":
		block, delta, member = `{"type":"thinking","thinking":""}`, "thinking_delta", "thinking"
	case "tool":
		block, delta, member = `{"type":"tool_use","id":"t","name":"f","input":{}}`, "input_json_delta", "partial_json"
	}
	event("message_start", `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":2000,"output_tokens":1}}}`)
	event("content_block_start", `{"type":"content_block_start","index":0,"content_block":`+block+`}`)
	from := 0
	for _, to := range append(cuts, len(text)) {
		if to <= from {
			continue
		}
		piece, _ := json.Marshal(text[from:to])
		event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":%q,%q:%s}}`, delta, member, piece))
		from = to
	}
	event("content_block_stop", `{"type":"content_block_stop","index":0}`)
	event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":20}}`)
	event("message_stop", `{"type":"message_stop"}`)
	return events
}

// heard is the text of a stream, as a client puts it together.
func heard(stream string) string {
	var all strings.Builder
	for line := range strings.Lines(stream) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var e struct {
			Delta struct {
				Text, Thinking string
				Partial        string `json:"partial_json"`
			}
		}
		json.Unmarshal([]byte(data), &e)
		all.WriteString(e.Delta.Text + e.Delta.Thinking + e.Delta.Partial)
	}
	return all.String()
}

func anthropicBody(words int, stream bool) string {
	return fmt.Sprintf(`{"model":"m","max_tokens":50,"stream":%v,"messages":[{"role":"user","content":%q}]}`, stream, strings.TrimSpace(strings.Repeat("word ", words)))
}

// However a leak is cut over the events of a stream, and in whichever channel it
// comes, no client of Anthropic's API gets a piece of it that names its owner.
func TestAnthropicLeaksAreStopped(t *testing.T) {
	coder := canary.New(canary.Key{3})
	s := &speaker{}
	f := guardBefore(t, engine(t, s.ServeHTTP), func(o *Options) { o.Watch = Watch{Coders: []*canary.Coder{coder}} })
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		id := canary.MakeID(1, 2, rapid.IntRange(0, canary.MaxSeq).Draw(t, "exchange"))
		leak, err := io.ReadAll(coder.Words(id, rapid.IntRange(0, 300).Draw(t, "from"), rapid.IntRange(canary.MinWords, 40).Draw(t, "words")))
		if err != nil {
			t.Fatal(err)
		}
		before := rapid.SampledFrom([]string{"", "The answer is this: ", "{\"city\": \"", "日本 "}).Draw(t, "before")
		text := before + string(leak) + rapid.SampledFrom([]string{"", ". And so on.", "\"}"}).Draw(t, "after")
		channel := rapid.SampledFrom([]string{"text", "thinking", "tool"}).Draw(t, "channel")
		var cuts []int
		for i := 1; i < len(text); i++ { // between characters
			if text[i]&0xC0 != 0x80 && rapid.IntRange(0, 4).Draw(t, "cut") == 0 {
				cuts = append(cuts, i)
			}
		}
		events := said(channel, text, cuts)
		s.events.Store(&events)
		res, err := f.client.Post(f.url+"/v1/messages", "application/json", strings.NewReader(anthropicBody(5, true)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		n++
		if hits := coder.Scan([]byte(heard(string(got)))); len(hits) > 0 {
			t.Fatalf("the client heard %d words of it in %s: %q of %q, cut at %v:\n%s", hits[0].Words, channel, heard(string(got)), text, cuts, got)
		}
		switch {
		case res.StatusCode >= 500: // it leaked before the answer began
		case err == nil || !strings.Contains(string(got), "event: error\n") || strings.Contains(string(got), "message_stop"):
			t.Fatalf("%d, %v: the stream ends as if it were whole:\n%s", res.StatusCode, err, got)
		}
	})
	if r := f.last(t, n); len(r.Findings) == 0 || r.Findings[0].Kind != "leak" {
		t.Errorf("recorded %+v", r)
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
	events := said("text", "Hello there.", []int{3, 7})
	whole := `{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"Hello there."}],"usage":{"input_tokens":1000,"output_tokens":3}}`
	s.events.Store(&events)
	s.whole.Store(&whole)
	for _, stream := range []bool{false, true} {
		status, h, b := f.post(t, "/v1/messages", anthropicBody(1000, stream))
		want := whole
		if stream {
			want = strings.Join(events, "")
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
}
