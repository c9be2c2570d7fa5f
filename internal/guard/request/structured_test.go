package request

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// What a template writes anew is counted, wherever it stands, and nothing else is.
func TestStructuredParts(t *testing.T) {
	const tool = `[{"type":"function","function":{"name":"f","parameters":{"a":[1,2]}}}]`
	for name, c := range map[string]struct {
		dialect, body string
		bytes         int64
		depth         int
	}{
		"none":            {"openai", `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a long text of no structure"}]}]}`, 0, 0},
		"tools":           {"openai", `{"model":"m","tools":` + tool + `,"messages":[]}`, int64(len(tool)), 5},
		"last":            {"anthropic", `{"model":"m","tools":` + tool + `}`, int64(len(tool)), 5},
		"tool calls":      {"openai", `{"messages":[{"role":"assistant","tool_calls":[{"a":"xyz"}]}]}`, 11, 4},
		"not what is out": {"openai", `{"kv_transfer_params":{"a":{"b":1}},"messages":[]}`, 0, 0},
		"documents":       {"openai", `{"documents":[{"text":"abc"}],"messages":[]}`, 16, 2},
	} {
		for _, one := range []bool{false, true} {
			var src io.Reader = strings.NewReader(c.body)
			if one {
				src = iotest.OneByteReader(src)
			}
			r := NewReader(src, Policy{Dialect: c.dialect, Allow: []string{"documents"}})
			if _, err := io.Copy(io.Discard, r); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if f := r.Facts(); f.Depth != c.depth || f.Structured < c.bytes-2 || f.Structured > c.bytes {
				t.Errorf("%s: %d bytes, %d deep; want %d, %d", name, f.Structured, f.Depth, c.bytes, c.depth)
			}
		}
	}
}

func TestBytesThatAreNotASCII(t *testing.T) {
	for body, want := range map[string]int64{
		`{"model":"m"}`:                                    0,
		`{"user":"naïve","prompt":"日本語"}`:                  2 + 9,
		`{"prompt":"\u65e5\u00e9\u0041\ud83d\ude00"}`:      3 + 2 + 4,
		`{"n\u00e4me":1,"nöm\u0065":{"ö":2}}`:              2 + 2 + 2,
		`{"prompt":"` + strings.Repeat("é", 40_000) + `"}`: 80_000,
	} {
		for _, one := range []bool{false, true} {
			var src io.Reader = strings.NewReader(body)
			if one {
				src = iotest.OneByteReader(src)
			}
			r := NewReader(src, Policy{Dialect: "completions"})
			if _, err := io.Copy(io.Discard, r); err != nil || r.Facts().Wide != want {
				t.Errorf("%.40s: %d, want %d, %v", body, r.Facts().Wide, want, err)
			}
		}
	}
}
