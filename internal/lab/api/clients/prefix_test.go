package clients

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// says is a picture with words in it, as a data URL. All of them have one shape.
func says(t *testing.T, words string) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 4, 4))); err != nil {
		t.Fatal(err)
	}
	file := b.Bytes()
	chunk := append([]byte("tEXtComment\x00"), words...)
	with := bytes.Clone(file[:33])
	with = binary.BigEndian.AppendUint32(with, uint32(len(chunk)-4))
	with = binary.BigEndian.AppendUint32(append(with, chunk...), crc32.ChecksumIEEE(chunk))
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(append(with, file[33:]...))
}

func shows(url, text string) openai.ChatCompletionNewParams {
	p := asks("")
	p.Messages = []openai.ChatCompletionMessageParamUnion{openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
		openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: url}), openai.TextContentPart(text),
	})}
	return p
}

const showWhat = "What do you see? The picture shows:"

// ask gives the answer's text, how much of the prompt was cached, and its length.
func ask(t *testing.T, c openai.Client, p openai.ChatCompletionNewParams) (text string, cached, prompt int) {
	t.Helper()
	got, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if got.Model != string(p.Model) {
		t.Errorf("%s answers for %s", got.Model, p.Model)
	}
	return strings.TrimSpace(got.Choices[0].Message.Content), int(got.Usage.PromptTokensDetails.CachedTokens), int(got.Usage.PromptTokens)
}

func caching() lab.Config {
	cfg := lab.Small()
	cfg.PrefixCache, cfg.Tier = 4096, 8192
	return cfg
}

// Who reads usage sees what was cached, for their own prompts only, also where a
// stop string ends the answer.
func TestOfficialClientSeesCachedTokens(t *testing.T) {
	url := serve(t, caching(), map[string]string{"sk-a": "a", "sk-b": "b"})
	a, b := clientOf(url, "sk-a"), clientOf(url, "sk-b")
	p := asks(strings.Repeat("words that nobody else has sent. ", 20) + recall)
	for i, c := range []struct {
		client openai.Client
		cached bool
	}{{a, false}, {a, true}, {b, false}, {b, true}} {
		text, cached, prompt := ask(t, c.client, p)
		if text != "blue-4711" || c.cached != (cached > 0) || c.cached && cached != (prompt-1)/16*16 {
			t.Errorf("%d: %q, %d of %d cached", i, text, cached, prompt)
		}
	}
	p.Stop.OfString = openai.String("-")
	if text, cached, _ := ask(t, a, p); text != "blue" || cached == 0 {
		t.Errorf("%q, %d cached", text, cached)
	}
}

func TestOfficialClientShowsPictures(t *testing.T) {
	for _, c := range []struct {
		fault, defence, want string
	}{{"", "", "two-5678"}, {"thin_key:omit_media", "", "one-1234"}, {"thin_key:omit_media", "salt", "two-5678"}} {
		cfg := caching()
		if c.fault != "" {
			cfg.Faults = []string{c.fault}
		}
		if c.defence != "" {
			cfg.Defences = []string{c.defence}
		}
		url := serve(t, cfg, map[string]string{"sk-a": "a", "sk-b": "b"})
		if text, _, prompt := ask(t, clientOf(url, "sk-a"), shows(says(t, "one-1234"), showWhat)); text != "one-1234" || prompt != 256+len(showWhat)+2 {
			t.Errorf("%s: a sees %q, %d tokens", c.fault, text, prompt)
		}
		if text, _, _ := ask(t, clientOf(url, "sk-b"), shows(says(t, "two-5678"), showWhat)); text != c.want {
			t.Errorf("%s %s: b sees %q", c.fault, c.defence, text)
		}
	}
}

func TestOfficialClientChoosesAdapters(t *testing.T) {
	for _, fault := range []string{"", "thin_key:omit_adapter"} {
		cfg := caching()
		if fault != "" {
			cfg.Faults = []string{fault}
		}
		url := serve(t, cfg, map[string]string{"sk-a": "a", "sk-b": "b"})
		p := asks(recall)
		p.Model = lab.ModelName + ":ada"
		if text, _, _ := ask(t, clientOf(url, "sk-a"), p); text != "blue-4711" {
			t.Errorf("%s: ada says %q", fault, text)
		}
		p.Model = lab.ModelName + ":ben"
		if text, _, _ := ask(t, clientOf(url, "sk-b"), p); (text == "blue-4711") != (fault == "") {
			t.Errorf("%s: ben says %q", fault, text)
		}
	}
}
