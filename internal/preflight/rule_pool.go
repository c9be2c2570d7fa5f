package preflight

import (
	"fmt"
	"strings"

	"github.com/kvcanary/kvcanary/internal/engine"
)

var incident = []string{
	"https://github.com/sgl-project/sglang/issues/30233",
	"https://github.com/sgl-project/sglang/pull/35421",
}

var tenancy = []string{"5.3.1", "5.3.2"}

// poolHoldsContext is the comparison that was missing when an engine was given
// a window of 1,048,576 tokens and a pool of 681,280.
var poolHoldsContext = Rule{
	ID: "pool_holds_context", Severity: Error, Links: incident, AISVS: tenancy,
	Why:  "a prompt that is let in by the window and does not fit the pool is left to error paths that have answered from other customers' pages",
	each: checkPool,
}

func checkPool(w *Worker, _ *Deployment) outcome {
	f := &w.Facts
	fix := contextFix(f)
	if n := f.Pool; n.Value > 0 && f.Context.Value > n.Value {
		return fail(fix, "%s is smaller than %s", said("the pool", n), said("the context window", f.Context))
	}
	both := said("the pool", f.Pool) + " against " + said("the context window", f.Context)
	if f.Pool.Value == 0 || f.Context.Value == 0 {
		return unknown(poolFix(f), "%s", both)
	}
	if reserve, applies := decodeReserve(f); applies {
		switch {
		case reserve.Source == "":
			return unknown("say --num-reserved-decode-tokens in the manifest, or ask the worker itself", "%s; %s", both, said("the reserve of decode", reserve))
		case f.Pool.Value < f.Context.Value+reserve.Value:
			return fail(fix, "%s is smaller than %s and %s together", said("the pool", f.Pool), said("the context window", f.Context), said("the reserve of decode", reserve))
		}
	}
	if f.Pool.AtMost {
		return unknown("ask the running engine, or give its --startup-log: it takes less than the flag asks for where memory is short", "%s", both)
	}
	return pass("%s", both)
}

// decodeReserve is what SGLang's decode keeps free beyond a prompt's pages.
// Where it is not known whether a worker is one, it may be.
func decodeReserve(f *engine.Facts) (engine.Number, bool) {
	may := (f.Engine == "sglang" || f.Engine == "") && (f.Role.Value == "decode" || f.Role.Value == "")
	return f.Reserve, may
}

// contextFix is how to make the window no larger than the pool.
func contextFix(f *engine.Facts) string {
	least := f.Pool.Value
	if r, applies := decodeReserve(f); applies {
		least -= r.Value
	}
	flag := map[string]string{
		"sglang": "--context-length", "vllm": "--max-model-len", "llamacpp": "--ctx-size", "tgi": "--max-total-tokens",
		"trtllm": "--max_seq_len", "lmdeploy": "--session-len", "dynamo": "the worker's --max-model-len or --context-length",
		"ollama": "OLLAMA_CONTEXT_LENGTH",
	}[f.Engine]
	if flag == "" {
		flag = "the engine's context length"
	}
	more := ", or give the pool more memory"
	if f.Engine == "sglang" {
		more = ", or give the pool more memory (--mem-fraction-static)"
	}
	return fmt.Sprintf("set %s to %d or less%s", flag, max(least, 1), more)
}

// poolFix is how to get to know what is missing.
func poolFix(f *engine.Facts) string {
	var how []string
	if f.Pool.Value == 0 {
		how = append(how, map[string]string{
			"sglang": "let it reach /server_info", "vllm": "let it reach /metrics", "tgi": "let it reach /metrics",
			"trtllm": "let it reach /metrics", "lmdeploy": "let it reach /distserve/engine_info",
		}[f.Engine], "give --startup-log", "say --pool", "or let it ask with --probe")
	} else {
		how = append(how, "say --context, or give --manifest")
	}
	if how[0] == "" {
		how = how[1:]
	}
	return strings.Join(how, ", ")
}

var limitsAgree = Rule{
	ID: "admission_limits_agree", Severity: Error, Links: incident, AISVS: tenancy,
	Why: "a prompt that decode lets in and prefill refuses has pages reserved that nobody writes",
	all: checkLimits,
}

func checkLimits(d *Deployment) outcome {
	if o, applies := disaggregated(d); !applies {
		return o
	}
	prefill, decode := least(d, "prefill", limitOf), most(d, "decode", limitOf)
	both := said("prefill refuses from", prefill) + "; " + said("decode refuses from", decode)
	switch {
	case prefill.Value == 0 || decode.Value == 0:
		return unknown("ask every worker: --prefill URL ... --decode URL ...", "%s", both)
	case decode.Value > prefill.Value:
		return fail(fmt.Sprintf("give both the smaller limit: --context-length %d on decode, or a larger pool on prefill", prefill.Value+6), "%s", both)
	case prefill.AtMost:
		return unknown("ask the running engines", "%s", both)
	}
	return pass("%s", both)
}

func limitOf(f *engine.Facts) engine.Number { return f.MaxInput }
func poolOf(f *engine.Facts) engine.Number  { return f.Pool }

// disaggregated reports whether prefill and decode are apart in a way that
// their limits can differ: SGLang's. It is unknown where a role is.
func disaggregated(d *Deployment) (outcome, bool) {
	roles := map[string]int{}
	may := 0
	for i := range d.Workers {
		w := &d.Workers[i]
		if w.Facts.Engine != "sglang" && w.Facts.Engine != "" && w.Facts.Engine != "dynamo" {
			continue
		}
		if w.spokenFor() {
			continue // its workers speak
		}
		may++
		roles[w.role()]++
	}
	switch {
	case may == 0:
		return notApplicable("prefill and decode do not have limits of their own"), false
	case roles["prefill"] > 0 && roles["decode"] > 0 && roles[""] == 0:
		return outcome{}, true
	case roles["both"] == may:
		return notApplicable("every worker does prefill and decode"), false
	}
	return unknown("ask every worker: --prefill URL ... --decode URL ...", "prefill and decode may be apart, and not both are known"), false
}

// least is the smallest of a number over all workers of a role; unknown if it
// is for one of them.
func least(d *Deployment, role string, of func(*engine.Facts) engine.Number) engine.Number {
	return extreme(d, role, of, func(a, b int) bool { return a < b })
}

// most is the largest of them: one decode worker that lets in more than
// prefill does is enough.
func most(d *Deployment, role string, of func(*engine.Facts) engine.Number) engine.Number {
	return extreme(d, role, of, func(a, b int) bool { return a > b })
}

func extreme(d *Deployment, role string, of func(*engine.Facts) engine.Number, beyond func(a, b int) bool) engine.Number {
	var n engine.Number
	for i := range d.Workers {
		w := &d.Workers[i]
		if w.role() != role {
			continue
		}
		x := of(&w.Facts)
		if x.Value == 0 {
			return engine.Number{}
		}
		if n.Value == 0 || beyond(x.Value, n.Value) {
			n = x
		}
	}
	return n
}

var decodePoolWithin = Rule{
	ID: "decode_pool_within_prefill", Severity: Error, Links: incident, AISVS: tenancy,
	Why: "a decode pool that holds what prefill's cannot is what made the incident's answers look whole",
	all: func(d *Deployment) outcome {
		if o, applies := disaggregated(d); !applies {
			return o
		}
		prefill, decode := least(d, "prefill", poolOf), most(d, "decode", poolOf)
		window := most(d, "prefill", func(f *engine.Facts) engine.Number { return f.Context })
		both := said("prefill's pool", prefill) + "; " + said("decode's pool", decode)
		switch {
		case prefill.Value == 0 || decode.Value == 0:
			return unknown("ask every worker: --prefill URL ... --decode URL ...", "%s", both)
		case decode.Value <= prefill.Value && !prefill.AtMost:
			return pass("%s", both)
		case window.Value == 0:
			return unknown("say --context", "%s; %s", both, said("the context window", window))
		case prefill.Value < window.Value:
			return fail(fmt.Sprintf("set --context-length to %d or less on both", prefill.Value), "%s; %s", both, said("the context window", window))
		case prefill.AtMost:
			return unknown("ask the running engines", "%s", both)
		}
		return pass("%s; both hold %s", both, said("the context window", window))
	},
}

var poolNotOverridden = Rule{
	ID: "pool_not_overridden", Severity: Warning, Engines: []string{"vllm"},
	Why: "a pool whose size is set by hand goes past the engine's own check that it holds one prompt",
	each: func(w *Worker, _ *Deployment) outcome {
		return wantFlag(w.Facts.PoolOverride, false, "--num-gpu-blocks-override", "leave --num-gpu-blocks-override out")
	},
}

var pagesAgree = Rule{
	ID: "page_sizes_agree", Severity: Warning,
	Why: "pages of two sizes are put together wrongly, or not at all",
	all: func(d *Deployment) outcome {
		var first *Worker
		for i := range d.Workers {
			w := &d.Workers[i]
			switch {
			case w.Facts.PageSize.Value == 0:
			case first == nil:
				first = w
			case w.Facts.PageSize.Value != first.Facts.PageSize.Value:
				return fail("give all workers the same --page-size (vLLM: --block-size)", "%s has pages of %s; %s has pages of %s",
					first.Name, said("", first.Facts.PageSize), w.Name, said("", w.Facts.PageSize))
			}
		}
		if len(d.Workers) < 2 {
			return notApplicable("there is one worker")
		}
		if first == nil {
			return unknown("ask every worker", "no page size is known")
		}
		return pass("all have pages of %d tokens", first.Facts.PageSize.Value)
	},
}
