package api

import (
	"errors"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// clientOf is the official client, without its retries.
func clientOf(url, key string) openai.Client {
	return openai.NewClient(option.WithBaseURL(url+"/v1/"), option.WithAPIKey(key), option.WithMaxRetries(0))
}

func asks(text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:       "lab",
		Messages:    []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)},
		MaxTokens:   openai.Int(20),
		Temperature: openai.Float(0),
		Seed:        openai.Int(7),
	}
}

func TestOfficialClientGetsAnswer(t *testing.T) {
	b := newFake()
	client := clientOf(serve(t, b, nil).URL, "any")
	got, err := client.Chat.Completions.New(t.Context(), asks("Reply with 'noted' only."))
	if err != nil {
		t.Fatal(err)
	}
	if c := got.Choices[0]; c.Message.Content != "noted" || c.FinishReason != "stop" || c.Message.Role != "assistant" {
		t.Errorf("choice %+v", c)
	}
	if u := got.Usage; u.PromptTokens != 26 || u.CompletionTokens != 5 || u.TotalTokens != 31 {
		t.Errorf("usage %+v", u)
	}
	if got.ID != "chatcmpl-1" || got.Created != 1_790_000_000 || got.Model != "lab" || got.Object != "chat.completion" {
		t.Errorf("head %s %d %s %s", got.ID, got.Created, got.Model, got.Object)
	}
	r := b.last.Load()
	if string(r.Tokens) != "\x01Reply with 'noted' only.\x02" || r.MaxTokens != 20 || r.Temperature != 0 || r.Seed != 7 {
		t.Errorf("request %+v", *r)
	}
}

func TestOfficialClientStreamsWithUsage(t *testing.T) {
	b := newFake()
	client := clientOf(serve(t, b, nil).URL, "any")
	p := asks("hello")
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := client.Chat.Completions.NewStreaming(t.Context(), p)
	var acc openai.ChatCompletionAccumulator
	var last openai.ChatCompletionChunk
	chunks := 0
	for stream.Next() {
		last = stream.Current()
		chunks++
		if !acc.AddChunk(last) {
			t.Fatalf("chunk does not fit: %s", last.RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if acc.Choices[0].Message.Content != "noted" || acc.Choices[0].FinishReason != "stop" {
		t.Errorf("accumulated %+v", acc.Choices[0])
	}
	if len(last.Choices) != 0 || last.Usage.PromptTokens != 7 || last.Usage.CompletionTokens != 5 {
		t.Errorf("last chunk %s", last.RawJSON())
	}
	if chunks != 5+1+1 {
		t.Errorf("%d chunks, want one a token, the end and the usage", chunks)
	}
}

func TestOfficialClientSeesTypedErrors(t *testing.T) {
	b := newFake()
	const tooLong = "Input length (10700 tokens) exceeds the maximum allowed length (10634 tokens). Use a shorter input or enable --allow-auto-truncate."
	b.answer = func(lab.Request) []lab.Event { return []lab.Event{fails(400, tooLong)} }
	server := serve(t, b, func(o *Options) { o.Keys = map[string]string{"sk-a": "a"} })
	known := clientOf(server.URL, "sk-a")
	stranger := clientOf(server.URL, "sk-other")

	other := asks("hello")
	other.Model = "gpt-9"
	two := asks("hello")
	two.N = openai.Int(2)
	for _, c := range []struct {
		name   string
		client openai.Client
		params openai.ChatCompletionNewParams
		status int
		words  string
	}{
		{"unknown key", stranger, asks("hello"), 401, "key is not known"},
		{"unknown model", known, other, 404, "no such model"},
		{"unsupported field", known, two, 400, "n other than 1"},
		{"refused by the engine", known, asks("hello"), 400, tooLong},
	} {
		_, err := c.client.Chat.Completions.New(t.Context(), c.params)
		var typed *openai.Error
		if !errors.As(err, &typed) || typed.StatusCode != c.status {
			t.Errorf("%s: %v, want a typed error with status %d", c.name, err, c.status)
			continue
		}
		if body := string(typed.DumpResponse(true)); !strings.Contains(body, c.words) {
			t.Errorf("%s: answer %s lacks %q", c.name, body, c.words)
		}
	}
	if tenant := b.last.Load().Tenant; tenant != "a" {
		t.Errorf("tenant %q", tenant)
	}

	stream := known.Chat.Completions.NewStreaming(t.Context(), asks("hello"))
	for stream.Next() {
		t.Errorf("chunk of a refused request: %s", stream.Current().RawJSON())
	}
	if err := stream.Err(); err == nil || !strings.Contains(err.Error(), tooLong) {
		t.Errorf("stream ends with %v, want the refusal", err)
	}
}
