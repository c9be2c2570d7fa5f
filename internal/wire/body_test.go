package wire

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// drip is a text whose readers yield a byte at a time.
type drip string

func (s drip) Open() io.Reader { return iotest.OneByteReader(strings.NewReader(string(s))) }
func (s drip) Size() int64     { return int64(len(s)) }

// broken is a text that cannot be read to its end.
type broken struct{ good text }

func (b broken) Open() io.Reader {
	return io.MultiReader(b.good.Open(), iotest.ErrReader(errors.New("disk on fire")))
}
func (b broken) Size() int64 { return b.good.Size() + 1 }

// anyBytes draws text with what is awkward in JSON: quotes, controls, cut
// characters, and runs that are longer than a chunk.
func anyBytes() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.String(),
		rapid.StringMatching(`[a-z ]{0,40}`),
		rapid.SampledFrom([]string{"\"", "\\", "\n", "\r\n", "\x00", "\x7f", "\u2028", "é", "日本", "😀", "\xff", "\xe6\x97", "\xf0\x9f\x98", "\xed\xa0\x80"}),
		rapid.Map(rapid.IntRange(1, escapeChunk+20), func(n int) string { return strings.Repeat("x", n) }),
	)
	return rapid.Map(rapid.SliceOfN(piece, 0, 8), func(ps []string) string { return strings.Join(ps, "") })
}

func TestEscapeEqualsEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkEscape(t, anyBytes().Draw(t, "text")) })
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "plain", "q\"b\\n\n", "\xff\xe6\x97", "😀\x01"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkEscape(t, s) })
}

// checkEscape compares the streamed body with what encoding/json makes of it,
// however the text is cut, and with the size that was foretold.
func checkEscape(t interface {
	Helper()
	Fatalf(string, ...any)
}, s string) {
	t.Helper()
	for _, tx := range []Text{text(s), drip(s)} {
		if _, slow := tx.(drip); slow && len(s) > 1000 {
			continue
		}
		segs := chatBody(Request{Model: "m\"1", Messages: []Message{{Role: "user", Text: tx}, {Role: "assistant", Text: nil}}, MaxTokens: 3}, quirks{})
		size, err := bodySize(segs)
		if err != nil {
			t.Fatalf("size: %v", err)
		}
		body, err := io.ReadAll(&bodyReader{segs: segs, moved: func() {}})
		if err != nil || int64(len(body)) != size {
			t.Fatalf("read %d bytes of %d, error %v", len(body), size, err)
		}
		var got struct {
			Model    string
			Messages []struct{ Role, Content string }
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatalf("body is not JSON: %v", err)
		}
		var want string
		twin, _ := json.Marshal(s)
		json.Unmarshal(twin, &want)
		if got.Model != "m\"1" || got.Messages[0].Content != want || got.Messages[1].Content != "" {
			t.Fatalf("content %.100q, want %.100q", got.Messages[0].Content, want)
		}
	}
}

func TestBodyFields(t *testing.T) {
	m := []Message{{Role: "user", Text: text("x")}}
	for _, c := range []struct {
		r    Request
		q    quirks
		want string
	}{
		{Request{Model: "a", Messages: m}, quirks{}, `{"model":"a","messages":[{"role":"user","content":"x"}],"temperature":0}`},
		{Request{Model: "a", Messages: m, MaxTokens: 5, Temperature: 0.7, Stream: true}, quirks{},
			`{"model":"a","messages":[{"role":"user","content":"x"}],"max_tokens":5,"temperature":0.7,"stream":true,"stream_options":{"include_usage":true}}`},
		{Request{Model: "a", Messages: m, MaxTokens: 5, Stream: true}, quirks{completionTokens: true, noStreamOptions: true, noTemperature: true},
			`{"model":"a","messages":[{"role":"user","content":"x"}],"max_completion_tokens":5,"stream":true}`},
		{Request{Model: "a", Messages: m, RequestID: "x 1", TraceID: "t"}, quirks{},
			`{"model":"a","messages":[{"role":"user","content":"x"}],"temperature":0,"request_id":"x 1","rid":"x 1"}`},
		{Request{Model: "a", Messages: m, RequestID: "x 1"}, quirks{noRequestID: true},
			`{"model":"a","messages":[{"role":"user","content":"x"}],"temperature":0}`},
		{Request{Model: "a", Messages: []Message{{Role: "user", Text: text("x"), Images: [][]byte{{1, 2, 3}}}}}, quirks{},
			`{"model":"a","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AQID"}},{"type":"text","text":"x"}]}],"temperature":0}`},
	} {
		got, err := io.ReadAll(&bodyReader{segs: chatBody(c.r, c.q), moved: func() {}})
		if err != nil || string(got) != c.want {
			t.Errorf("body\n%s\nwant\n%s\nerror %v", got, c.want, err)
		}
	}
}

func TestBodyOfBrokenText(t *testing.T) {
	segs := messagesJSON([]Message{{Role: "user", Text: broken{"ab"}}})
	if _, err := bodySize(segs); err == nil || err.Error() != "read the prompt: disk on fire" {
		t.Errorf("size error %v", err)
	}
	if _, err := io.ReadAll(&bodyReader{segs: segs, moved: func() {}}); err == nil || err.Error() != "read the prompt: disk on fire" {
		t.Errorf("read error %v", err)
	}
}
