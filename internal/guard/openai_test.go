package guard

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// OpenAI's own client works through the guard as it does without one: documents,
// streams, refusals and stopped streams.
func TestOpenAIsClient(t *testing.T) {
	url := engine(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(b), `"stream":true`) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"well"},"finish_reason":"stop"}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, word := range []string{"all", " is", " well"} {
			fmt.Fprintf(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", word)
			w.(http.Flusher).Flush()
		}
		if !strings.Contains(string(b), "break off") {
			io.WriteString(w, "data: [DONE]\n\n")
			return
		}
		panic(http.ErrAbortHandler)
	})
	f := guardBefore(t, url, pooled(2000))
	client := openai.NewClient(option.WithBaseURL(f.url+"/v1"), option.WithAPIKey("sk-x"), option.WithHTTPClient(f.client), option.WithMaxRetries(0))
	ask := func(text string) openai.ChatCompletionNewParams {
		return openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}}
	}
	if c, err := client.Chat.Completions.New(t.Context(), ask("hello")); err != nil || c.Choices[0].Message.Content != "well" {
		t.Errorf("a document: %+v, %v", c, err)
	}
	stream := func(text string) (said string, err error) {
		s := client.Chat.Completions.NewStreaming(t.Context(), ask(text))
		defer s.Close()
		for s.Next() {
			said += s.Current().Choices[0].Delta.Content
		}
		return said, s.Err()
	}
	if said, err := stream("hello"); said != "all is well" || err != nil {
		t.Errorf("a stream: %q, %v", said, err)
	}
	if said, err := stream("break off"); err == nil || !strings.Contains(err.Error(), "upstream_failed") {
		t.Errorf("a stream that broke off: %q, %v", said, err)
	}
	_, err := client.Chat.Completions.New(t.Context(), ask(strings.Repeat("x", 4000)))
	if e, ok := errors.AsType[*openai.Error](err); !ok || e.StatusCode != 400 || e.Code != "not_counted" {
		t.Errorf("a refusal: %v", err)
	}
}
