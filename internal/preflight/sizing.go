package preflight

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// Shape is what of a model's config.json decides how large its KV is.
type Shape struct {
	Layers  int `json:"layers"`
	KVHeads int `json:"kv_heads"` // of a layer; 0 with a latent
	HeadDim int `json:"head_dim"` // numbers a head; key and value are of this size
	// Latent is how many numbers a token takes in a layer with multi-head latent
	// attention: the compressed part and the rotary part. 0 for ordinary heads.
	Latent int `json:"latent,omitempty"`
	// Sliding layers keep no more than Window tokens; Linear layers none.
	Sliding int `json:"sliding,omitempty"`
	Window  int `json:"window,omitempty"`
	Linear  int `json:"linear,omitempty"`
	Context int `json:"context"` // that the model was made for, tokens
}

// Memory is what a replica has. Sizes are in bytes.
type Memory struct {
	GPU      float64 // of one GPU
	Fraction float64 // of it that the engine may take, 0 to 1
	Weights  float64 // of all GPUs together
	Other    float64 // on each GPU beside weights and KV: activations, graphs
	GPUs     int     // that share the layers' heads: tensor parallelism
	KVBytes  float64 // of one number of KV: 2 for bf16, 1 for fp8
	PageSize int     // tokens
}

// Sizing is what fits.
type Sizing struct {
	BytesPerToken float64 `json:"bytes_per_token"` // on each GPU, of layers that keep every token
	WindowBytes   float64 `json:"window_bytes"`    // on each GPU, for one request, of layers that keep a window
	PoolBytes     float64 `json:"pool_bytes"`      // on each GPU
	Pool          int     `json:"pool"`            // tokens that one request can fill, whole pages
	Context       int     `json:"context"`         // the largest window that is safe: the pool, or what the model was made for
}

// ReadShape reads a config.json as model repositories have it. The text part
// of a model for several media stands under text_config or llm_config.
func ReadShape(r io.Reader) (Shape, error) {
	var c struct {
		shapeFields
		Text shapeFields `json:"text_config"`
		LLM  shapeFields `json:"llm_config"`
	}
	if err := json.NewDecoder(io.LimitReader(r, 16<<20)).Decode(&c); err != nil {
		return Shape{}, fmt.Errorf("no config.json of a model: %w", err)
	}
	for _, f := range []shapeFields{c.shapeFields, c.Text, c.LLM} {
		if f.Layers > 0 {
			return f.shape()
		}
	}
	return Shape{}, errors.New("num_hidden_layers is not there: this is no model of the transformer kind")
}

// maxShape bounds layers, heads and their size: what is beyond is no model, and
// its products would not fit a number.
const maxShape = 1 << 20

type shapeFields struct {
	Layers     int      `json:"num_hidden_layers"`
	Heads      int      `json:"num_attention_heads"`
	KVHeads    int      `json:"num_key_value_heads"`
	Hidden     int      `json:"hidden_size"`
	HeadDim    int      `json:"head_dim"`
	KVRank     int      `json:"kv_lora_rank"`
	RopeDim    int      `json:"qk_rope_head_dim"`
	Window     int      `json:"sliding_window"`
	UseWindow  *bool    `json:"use_sliding_window"`
	LayerTypes []string `json:"layer_types"`
	Positions  int      `json:"max_position_embeddings"`
}

func (f shapeFields) shape() (Shape, error) {
	s := Shape{Layers: f.Layers, KVHeads: f.KVHeads, HeadDim: f.HeadDim, Window: f.Window, Context: f.Positions}
	if s.KVHeads == 0 {
		s.KVHeads = f.Heads // without groups every head has its own
	}
	if s.HeadDim == 0 && f.Heads > 0 {
		s.HeadDim = f.Hidden / f.Heads
	}
	if f.KVRank > 0 {
		s.Latent, s.KVHeads, s.HeadDim = f.KVRank+f.RopeDim, 0, 0
	}
	for _, t := range f.LayerTypes {
		switch {
		case strings.Contains(t, "sliding"), strings.Contains(t, "chunked"):
			s.Sliding++
		case strings.Contains(t, "linear"), strings.Contains(t, "mamba"), strings.Contains(t, "recurrent"):
			s.Linear++
		}
	}
	if len(f.LayerTypes) == 0 && f.Window > 0 && (f.UseWindow == nil || *f.UseWindow) {
		s.Sliding = f.Layers
	}
	if s.Sliding == 0 {
		s.Window = 0
	}
	if s.Latent == 0 && (s.KVHeads <= 0 || s.HeadDim <= 0) || s.Sliding+s.Linear > s.Layers || s.Window < 0 || s.Sliding > 0 && s.Window == 0 ||
		max(s.Layers, s.KVHeads, s.HeadDim, s.Latent) > maxShape || s.Latent < 0 {
		return s, errors.New("the numbers of heads and layers do not make a model")
	}
	return s, nil
}

// Size computes what fits. A token takes, in each layer that keeps it,
//
//	2 * KV heads * head size * bytes       with ordinary heads, divided among GPUs
//	(KV rank + rotary size) * bytes        with a latent, which every GPU has whole
//
// and the pool is what the engine's share of a GPU leaves beside weights.
func Size(s Shape, m Memory) (Sizing, error) {
	if m.GPUs < 1 || m.PageSize < 1 || !(m.Fraction > 0 && m.Fraction <= 1) || !(m.GPU > 0) || !(m.KVBytes > 0) || !(m.Weights >= 0) || !(m.Other >= 0) || math.IsInf(m.GPU+m.Weights+m.Other, 0) {
		return Sizing{}, errors.New("GPU memory, fraction, GPUs, page size and bytes of a number must be positive, a fraction at most 1, weights and other at least 0, and all of them numbers")
	}
	layer := float64(s.Latent) * m.KVBytes
	if s.Latent == 0 {
		// Fewer heads than GPUs are copied rather than cut.
		heads := max(1, (s.KVHeads+m.GPUs-1)/m.GPUs)
		layer = 2 * float64(heads*s.HeadDim) * m.KVBytes
	}
	whole := s.Layers - s.Sliding - s.Linear
	out := Sizing{
		BytesPerToken: layer * float64(whole),
		WindowBytes:   layer * float64(s.Sliding) * float64(s.Window),
		PoolBytes:     m.GPU*m.Fraction - m.Weights/float64(m.GPUs) - m.Other,
	}
	free := out.PoolBytes - out.WindowBytes
	switch {
	case free <= 0:
		return out, fmt.Errorf("nothing is left for KV: %.1f GiB a GPU for weights and other, of %.1f GiB that may be taken",
			(m.Weights/float64(m.GPUs)+m.Other)/gib, m.GPU*m.Fraction/gib)
	case whole == 0:
		out.Pool = s.Context // a window is all that is kept, however long the prompt
	default:
		pages := free / (out.BytesPerToken * float64(m.PageSize))
		out.Pool = int(min(pages, 1<<40)) * m.PageSize
	}
	out.Context = out.Pool
	if s.Context > 0 {
		out.Context = min(out.Pool, s.Context)
	}
	return out, nil
}

// Needs is the memory that a window takes on each GPU, bytes: the other way
// round.
func (z Sizing) Needs(context int) float64 {
	return z.BytesPerToken*float64(context) + z.WindowBytes
}

const gib = 1 << 30
