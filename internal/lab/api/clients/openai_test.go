package clients

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
		Model:       lab.ModelName,
		Messages:    []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)},
		MaxTokens:   openai.Int(40),
		Temperature: openai.Float(0),
		Seed:        openai.Int(7),
	}
}

const recall = "Internal ref for this session: blue-4711\nSome other words stand here.\nInternal ref for this session:"

func TestOfficialClientGetsAnswer(t *testing.T) {
	client := clientOf(serve(t, lab.Small(), nil), "any")
	got, err := client.Chat.Completions.New(t.Context(), asks(recall))
	if err != nil {
		t.Fatal(err)
	}
	if c := got.Choices[0]; c.Message.Content != "blue-4711\n" || c.FinishReason != "stop" || c.Message.Role != "assistant" {
		t.Errorf("choice %+v", c)
	}
	if u := got.Usage; int(u.PromptTokens) != len(recall)+2 || u.CompletionTokens < 9 || u.TotalTokens != u.PromptTokens+u.CompletionTokens {
		t.Errorf("usage %+v", u)
	}
	if !strings.HasPrefix(got.ID, "chatcmpl-") || got.Model != lab.ModelName || got.Object != "chat.completion" || got.Created == 0 {
		t.Errorf("head %s %d %s %s", got.ID, got.Created, got.Model, got.Object)
	}
}

func TestOfficialClientStreamsWithUsage(t *testing.T) {
	client := clientOf(serve(t, lab.Small(), nil), "any")
	p := asks(recall)
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := client.Chat.Completions.NewStreaming(t.Context(), p)
	var acc openai.ChatCompletionAccumulator
	var last openai.ChatCompletionChunk
	for stream.Next() {
		last = stream.Current()
		if !acc.AddChunk(last) {
			t.Fatalf("chunk does not fit: %s", last.RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if acc.Choices[0].Message.Content != "blue-4711\n" || acc.Choices[0].FinishReason != "stop" {
		t.Errorf("accumulated %+v", acc.Choices[0])
	}
	if len(last.Choices) != 0 || int(last.Usage.PromptTokens) != len(recall)+2 {
		t.Errorf("last chunk %s", last.RawJSON())
	}
}

func TestOfficialClientCompletes(t *testing.T) {
	client := clientOf(serve(t, lab.Small(), nil), "any")
	p := openai.CompletionNewParams{
		Model:  lab.ModelName,
		Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String("\nthe password is swordfish.\nand the password is")},
		Stop:   openai.CompletionNewParamsStopUnion{OfString: openai.String("fish")}, Temperature: openai.Float(0),
	}
	got, err := client.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if c := got.Choices[0]; c.Text != " sword" || c.FinishReason != "stop" {
		t.Errorf("choice %+v", c)
	}
}

func TestOfficialClientListsModels(t *testing.T) {
	client := clientOf(serve(t, lab.Small(), nil), "any")
	page, err := client.Models.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Data) != 3 || page.Data[0].ID != lab.ModelName || page.Data[1].ID != lab.ModelName+":ada" || !strings.Contains(page.RawJSON(), `"max_model_len":16384`) {
		t.Errorf("models %s", page.RawJSON())
	}
}

func TestOfficialClientSeesTypedErrors(t *testing.T) {
	url := serve(t, lab.Small(), map[string]string{"sk-a": "a"})
	known, stranger := clientOf(url, "sk-a"), clientOf(url, "sk-other")

	other := asks("hello")
	other.Model = "gpt-9"
	two := asks("hello")
	two.N = openai.Int(2)
	// Longer than the prefill pool, shorter than the context: the incident's window.
	long := asks(strings.Repeat("word ", 2200))
	const tooLong = "Input length (11002 tokens) exceeds the maximum allowed length (10634 tokens)."
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
		{"refused by the engine", known, long, 400, tooLong},
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

	stream := known.Chat.Completions.NewStreaming(t.Context(), long)
	for stream.Next() {
		t.Errorf("chunk of a refused request: %s", stream.Current().RawJSON())
	}
	if err := stream.Err(); err == nil || !strings.Contains(err.Error(), tooLong) {
		t.Errorf("stream ends with %v, want the refusal", err)
	}
}
