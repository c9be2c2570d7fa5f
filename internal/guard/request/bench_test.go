package request

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// prompts are what a long prompt is made of.
var prompts = map[string]string{
	"english": "The quick brown fox jumps over the lazy dog, \\\"again\\\" and again.\\n",
	"chinese": "快速的棕色狐狸跳过了懒狗，一次又一次，直到太阳下山。",
	"escaped": "\\u5feb\\u901f\\n",
	"numbers": "",
}

// BenchmarkPrompt rewrites a prompt of 4 MB.
func BenchmarkPrompt(b *testing.B) {
	for name, text := range prompts {
		body, dialect := []byte(`{"model":"m","stream":true,"rid":"x","messages":[{"role":"user","content":"`+repeat(text, 4<<20)+`"}]}`), "openai"
		if text == "" {
			body, dialect = []byte(`{"model":"m","prompt":[`+strings.TrimSuffix(repeat("128001,17,", 4<<20), ",")+`]}`), "completions"
		}
		b.Run(name, func(b *testing.B) { bench(b, body, dialect, 1<<14) })
	}
}

func repeat(s string, n int) string {
	if s == "" {
		return ""
	}
	return strings.Repeat(s, n/len(s))
}

// BenchmarkSmall rewrites a body of 1 KB.
func BenchmarkSmall(b *testing.B) {
	body := []byte(`{"model":"meta-llama/Llama-3.3-70B-Instruct","temperature":0.7,"top_p":0.95,"max_tokens":512,"stream":true,"stream_options":{"include_usage":true},` +
		`"messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"` + repeat(prompts["english"], 700) + `"}],"seed":7,"user":"u-1"}`)
	bench(b, body, "openai", 64<<10)
}

func bench(b *testing.B, body []byte, dialect string, at int) {
	b.Helper()
	p := Policy{Dialect: dialect, Salt: "0123456789abcdef", SaltFields: []string{"cache_salt"}, MaxOpaque: -1}
	src := bytes.NewReader(body)
	r := NewReader(src, p)
	buf := make([]byte, at)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		src.Reset(body)
		r.Reset(src, p)
		for {
			_, err := r.Read(buf)
			if err == io.EOF {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		_ = r.Facts()
	}
}
