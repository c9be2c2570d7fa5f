package admit

import (
	"testing"

	"github.com/kvcanary/kvcanary/internal/engine"
	"pgregory.net/rapid"
)

func number(n int, source string) engine.Number {
	return engine.Number{Value: n, Source: source, Basis: engine.Stated}
}

func TestLimits(t *testing.T) {
	lab := engine.Facts{
		Engine: "sglang", Context: number(16_384, "GET /v1/models max_model_len"), Pool: number(10_640, "GET /server_info prefill[].max_total_num_tokens"),
		DecodePool: number(20_480, "GET /server_info decode[].max_total_num_tokens"), MaxInput: number(10_634, "GET /server_info prefill[].max_req_input_len"),
		Router: engine.Flag{Known: true, On: true}, Role: engine.Text{Value: "both"},
	}
	vllm := engine.Facts{Engine: "vllm", Context: number(8192, "max_model_len"), Pool: number(100_000, "kv_cache_size_tokens"),
		Models: []engine.Model{{ID: "base", Context: 8192}, {ID: "long", Context: 32_768}}}
	hosted := engine.Facts{Engine: "generic", Context: number(128_000, "GET /v1/models max_model_len")}
	small := lab
	small.DecodePool, small.Reserve = number(4000, "decode"), number(512, "reserved")
	decode := engine.Facts{Engine: "sglang", Role: engine.Text{Value: "decode"}, Pool: number(4000, "d"), Reserve: number(512, "r")}
	hoped := engine.Facts{Engine: "sglang", Context: number(100, "c"), Pool: engine.Number{Value: 90, Source: "p", AtMost: true}}
	upTo := lab
	upTo.MaxInput = number(9000, "shorter")
	lab.Behind = []engine.Facts{{Engine: "sglang"}, {Engine: "sglang"}}
	small.Behind, upTo.Behind = lab.Behind, lab.Behind
	dynamo := engine.Facts{Engine: "dynamo", Pool: number(5000, "blocks"), Router: engine.Flag{Known: true, On: true}}
	lmdeploy := engine.Facts{Engine: "lmdeploy", Pool: number(6400, "blocks"), PageSize: number(64, "size")}
	ollama := engine.Facts{Engine: "ollama", Context: number(4096, "ps"), Pool: number(4096, "ps"), Models: []engine.Model{{ID: "a", Context: 4096}, {ID: "b"}}}
	tiny := engine.Facts{Engine: "sglang", Pool: number(3, "p")}
	for name, c := range map[string]struct {
		workers       []engine.Facts
		given         Given
		margin        int
		model         string
		tokens, total int
		source        string
	}{
		"the lab":                    {[]engine.Facts{lab}, Given{}, 0, "m", 10_633, 16_384, "pool 10,640 less reserve 7, from GET /server_info prefill[].max_total_num_tokens"},
		"a margin":                   {[]engine.Facts{lab}, Given{}, 33, "m", 10_600, 16_384, "pool 10,640 less reserve 7, from GET /server_info prefill[].max_total_num_tokens, less a margin of 33"},
		"a decode pool with reserve": {[]engine.Facts{small}, Given{}, 0, "m", 3487, 3488, "decode pool 4,000 less reserve 513, from decode"},
		"a decode worker asked":      {[]engine.Facts{lab, decode}, Given{}, 0, "m", 3487, 3488, "decode pool 4,000 less reserve 513, from d"},
		"what it refuses from":       {[]engine.Facts{upTo}, Given{}, 0, "m", 8999, 16_384, "shortest refused prompt 9,000 less reserve 1, from shorter"},
		"the smallest worker":        {[]engine.Facts{lab, vllm}, Given{}, 0, "m", 8191, 8192, "context 8,192 less reserve 1, from max_model_len"},
		"a model's own window":       {[]engine.Facts{vllm}, Given{}, 0, "long", 32_767, 32_768, "context 32,768 less reserve 1, from what the engine states for this model"},
		"a model that is not listed": {[]engine.Facts{vllm}, Given{}, 0, "?", 8191, 8192, "context 8,192 less reserve 1, from max_model_len"},
		"a window is no pool":        {[]engine.Facts{hosted}, Given{}, 0, "m", 0, 0, "the engine says neither how large its KV pool is nor from which length on it refuses (all that is known: context 128,000 less reserve 1, from GET /v1/models max_model_len): state the pool under limits, or let the guard read where the engine states it"},
		"one worker without a pool":  {[]engine.Facts{lab, hosted}, Given{}, 0, "m", 0, 0, "1 of 2 says how large its KV pool is or from which length on it refuses (all that is known: pool 10,640 less reserve 7, from GET /server_info prefill[].max_total_num_tokens): state the pool under limits, or let the guard read where the engine states it"},
		"at most is no bound":        {[]engine.Facts{hoped}, Given{}, 0, "m", 0, 0, "the engine says neither how large its KV pool is nor from which length on it refuses (all that is known: context 100 less reserve 7, from c): state the pool under limits, or let the guard read where the engine states it"},
		"a router without workers":   {[]engine.Facts{dynamo}, Given{}, 0, "m", 0, 0, "the engine says neither how large its KV pool is nor from which length on it refuses (all that is known: pool 5,000 less reserve 1, from blocks): state the pool under limits, or let the guard read where the engine states it"},
		"and its workers":            {[]engine.Facts{dynamo, vllm}, Given{}, 0, "m", 0, 0, "1 of 2 says how large its KV pool is or from which length on it refuses (all that is known: pool 5,000 less reserve 1, from blocks): state the pool under limits, or let the guard read where the engine states it"},
		"blocks that are kept":       {[]engine.Facts{lmdeploy}, Given{}, 0, "m", 6271, 6400, "pool 6,400 less reserve 129, from blocks"},
		"a model that is loaded":     {[]engine.Facts{ollama}, Given{}, 0, "a", 4095, 4096, "pool 4,096 less reserve 1, from ps"},
		"one that is not":            {[]engine.Facts{ollama}, Given{}, 0, "b", 0, 0, "the engine says neither how large its KV pool is nor from which length on it refuses: state the pool under limits, or let the guard read where the engine states it"},
		"nobody answers":             {nil, Given{}, 0, "m", 0, 0, "no worker could be asked: state the pool under limits, or let the guard read where the engine states it"},
		"an engine that is silent":   {[]engine.Facts{{Engine: "generic"}}, Given{}, 0, "m", 0, 0, "the engine says neither how large its KV pool is nor from which length on it refuses: state the pool under limits, or let the guard read where the engine states it"},
		"as configured":              {nil, Given{Tokens: 5000}, 0, "m", 5000, 0, "limit 5,000 of the configuration"},
		"configured beside measured": {[]engine.Facts{lab}, Given{Pool: 5000}, 0, "m", 4999, 16_384, "pool 5,000 less reserve 1, from the configuration"},
		"measured beside configured": {[]engine.Facts{lab}, Given{Tokens: 1 << 30}, 0, "m", 10_633, 16_384, "pool 10,640 less reserve 7, from GET /server_info prefill[].max_total_num_tokens"},
		"a configured window":        {[]engine.Facts{hosted}, Given{Context: 100}, 0, "m", 0, 0, "the engine says neither how large its KV pool is nor from which length on it refuses (all that is known: context 100 less reserve 1, from the configuration): state the pool under limits, or let the guard read where the engine states it"},
		"no room at all":             {[]engine.Facts{tiny}, Given{}, 5, "m", 1, 3, "pool 3 less reserve 7, from p, less a margin of 5"},
	} {
		l := Of(c.workers, c.given, c.margin, c.model, now)
		if l.Tokens != c.tokens || l.Total != c.total || l.Source != c.source {
			t.Errorf("%s: %d, %d, %q", name, l.Tokens, l.Total, l.Source)
		}
		if ages := c.given.Tokens == 0 && c.given.Pool == 0; l.At.IsZero() == ages {
			t.Errorf("%s: at %s", name, l.At)
		}
	}
}

// A fact more, a worker more or a limit stated never makes a known limit larger.
func TestLimitsNeverGrow(t *testing.T) {
	tokens := rapid.IntRange(0, 100)
	draw := func(t *rapid.T) engine.Facts {
		n := func(name string) engine.Number { return number(tokens.Draw(t, name), "x") }
		return engine.Facts{
			Engine: rapid.SampledFrom(engine.Names()).Draw(t, "engine"), Context: n("context"), Pool: n("pool"), DecodePool: n("decode"),
			MaxInput: n("max input"), Reserve: n("reserve"), Role: engine.Text{Value: rapid.SampledFrom([]string{"", "prefill", "decode", "both"}).Draw(t, "role")},
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t), draw(t)
		before := Of([]engine.Facts{a}, Given{}, 0, "m", now)
		after := Of([]engine.Facts{a, b}, Given{Pool: tokens.Draw(t, "given")}, rapid.IntRange(0, 9).Draw(t, "margin"), "m", now)
		if before.Tokens > 0 && after.Tokens > before.Tokens {
			t.Fatalf("%+v grew to %+v", before, after)
		}
		for _, n := range []int{a.Pool.Value, a.Context.Value} {
			if n > 1 && before.Tokens >= n {
				t.Fatalf("%+v of %+v", before, a)
			}
		}
	})
}
