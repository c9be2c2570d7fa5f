package preflight

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The worked examples of docs/sizing.md.
func TestSizingExamples(t *testing.T) {
	const g = float64(gib)
	for name, c := range map[string]struct {
		config string
		m      Memory
		bytes  float64
		pool   int
		safe   int
	}{
		"grouped heads": { // Llama 3.1 8B: 2 * 32 * 8 * 128 * 2 = 131,072 bytes a token
			`{"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"hidden_size":4096,"max_position_embeddings":131072}`,
			Memory{GPU: 24 * g, Fraction: 0.9, Weights: 15 * g, Other: 1 * g, GPUs: 1, KVBytes: 2, PageSize: 16}, 131072, 45872, 45872,
		},
		"latent": { // DeepSeek-like: 61 * (512 + 64) * 1 = 35,136 bytes a token with fp8
			`{"num_hidden_layers":61,"num_attention_heads":128,"num_key_value_heads":128,"kv_lora_rank":512,"qk_rope_head_dim":64,"hidden_size":7168,"max_position_embeddings":163840}`,
			Memory{GPU: 80 * g, Fraction: 0.88, Weights: 400 * g, Other: 4 * g, GPUs: 8, KVBytes: 1, PageSize: 64}, 35136, 501120, 163840,
		},
		"sliding": { // half of the layers keep 4,096 tokens
			`{"text_config":{"num_hidden_layers":4,"num_attention_heads":8,"num_key_value_heads":2,"head_dim":64,"hidden_size":512,"sliding_window":4096,
			  "layer_types":["sliding_attention","full_attention","sliding_attention","full_attention"],"max_position_embeddings":1000000}}`,
			Memory{GPU: 1 * g, Fraction: 0.5, Weights: 0.25 * g, GPUs: 1, KVBytes: 2, PageSize: 1}, 1024, 258048, 258048,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := ReadShape(strings.NewReader(c.config))
			if err != nil {
				t.Fatal(err)
			}
			z, err := Size(s, c.m)
			if err != nil {
				t.Fatal(err)
			}
			if z.BytesPerToken != c.bytes || z.Pool != c.pool || z.Context != c.safe {
				t.Errorf("%+v; want %v bytes a token, pool %d, context %d", z, c.bytes, c.pool, c.safe)
			}
		})
	}
}

// A window that is said to fit fits, and one page more does not.
func TestSizingThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Shape{Layers: rapid.IntRange(1, 100).Draw(t, "layers"), KVHeads: rapid.IntRange(1, 64).Draw(t, "heads"), HeadDim: rapid.SampledFrom([]int{64, 128}).Draw(t, "dim")}
		if rapid.Bool().Draw(t, "latent") {
			s.Latent, s.KVHeads, s.HeadDim = 576, 0, 0
		}
		s.Sliding = rapid.IntRange(0, s.Layers-1).Draw(t, "sliding")
		if s.Sliding > 0 {
			s.Window = rapid.IntRange(1, 8192).Draw(t, "window")
		}
		m := Memory{
			GPU: float64(rapid.IntRange(8, 192).Draw(t, "gpu")) * gib, Fraction: rapid.Float64Range(0.1, 1).Draw(t, "fraction"), GPUs: rapid.IntRange(1, 16).Draw(t, "gpus"),
			Weights: float64(rapid.IntRange(0, 100).Draw(t, "weights")) * gib, KVBytes: rapid.SampledFrom([]float64{1, 2}).Draw(t, "bytes"), PageSize: rapid.SampledFrom([]int{1, 16, 64}).Draw(t, "page"),
		}
		z, err := Size(s, m)
		if err != nil {
			return
		}
		if z.Needs(z.Pool) > z.PoolBytes*(1+1e-12) {
			t.Fatalf("%d tokens need %.0f bytes of %.0f", z.Pool, z.Needs(z.Pool), z.PoolBytes)
		}
		if z.Needs(z.Pool+m.PageSize) <= z.PoolBytes*(1-1e-12) {
			t.Fatalf("a page more than %d tokens fits too", z.Pool)
		}
	})
}

func TestConfigsThatSayNothing(t *testing.T) {
	for text, want := range map[string]string{
		"{}": "num_hidden_layers is not there", "[": "no config.json of a model", `{"num_hidden_layers":2}`: "do not make a model",
		`{"num_hidden_layers":1,"num_attention_heads":1,"hidden_size":64,"layer_types":["sliding","sliding"]}`: "do not make a model",
	} {
		if _, err := ReadShape(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := ReadShape(strings.NewReader(`{"num_hidden_layers":2,"num_attention_heads":4294967296,"head_dim":4294967296}`)); err == nil {
		t.Error("heads without bound")
	}
	s := Shape{Layers: 1, KVHeads: 1, HeadDim: 64}
	for _, x := range []float64{math.NaN(), math.Inf(1), -1} {
		for _, m := range []Memory{{GPU: x}, {GPU: gib, Weights: x}, {GPU: gib, Other: x}} {
			m.Fraction, m.GPUs, m.KVBytes, m.PageSize = 1, 1, 2, 1
			if z, err := Size(s, m); err == nil {
				t.Errorf("%+v: %+v", m, z)
			}
		}
	}
	if _, err := Size(s, Memory{GPU: gib, Fraction: 0.5, Weights: gib, GPUs: 1, KVBytes: 2, PageSize: 1}); err == nil || !strings.Contains(err.Error(), "nothing is left") {
		t.Errorf("error %v", err)
	}
}

func FuzzReadShape(f *testing.F) {
	f.Add(`{"num_hidden_layers":32,"num_attention_heads":32,"hidden_size":4096}`)
	f.Add(`{"text_config":{"num_hidden_layers":9223372036854775807,"num_attention_heads":1,"head_dim":1}}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ReadShape(strings.NewReader(text))
		if err == nil {
			Size(s, Memory{GPU: gib, Fraction: 1, GPUs: 1, KVBytes: 1, PageSize: 1})
		}
	})
}
