package preflight

import "github.com/kvcanary/kvcanary/internal/prose"

var noSilentTruncation = Rule{
	ID: "no_silent_truncation", Severity: Error,
	Links: []string{"https://github.com/ollama/ollama/blob/main/docs/context-length.mdx"},
	Why:   "an answer to a prompt that was cut without a word is an answer to another prompt",
	each: func(w *Worker, d *Deployment) outcome {
		fix := map[string]string{
			"sglang": "leave --allow-auto-truncate out",
			"ollama": "send \"truncate\": false and \"shift\": false with every request, or stand a gateway in front that refuses what is too long",
		}[w.Facts.Engine]
		if fix == "" {
			fix = "let it ask with --probe"
		}
		f := w.Facts.Truncates
		if d.Probe.speaksFor(w, d) && d.Probe.RejectedMin > 0 && d.Probe.Missing == "" && d.Probe.Findings == 0 {
			return pass("a prompt of %s tokens was refused (probed)", prose.Thousands(d.Probe.RejectedMin))
		}
		return wantFlag(f, false, "silent truncation", fix)
	},
}

var noContextShift = Rule{
	ID: "no_context_shift", Severity: Warning, Engines: []string{"llamacpp", "ollama"},
	Why: "an answer that goes on after its beginning was dropped rests on another conversation than the one that was sent",
	each: func(w *Worker, _ *Deployment) outcome {
		fix := map[string]string{
			"llamacpp": "leave --context-shift out", "ollama": "send \"shift\": false with every request", "": "name the engine with --engine",
		}[w.Facts.Engine]
		return wantFlag(w.Facts.ContextShift, false, "context shift", fix)
	},
}

var probed = Rule{
	ID: "behaves", Severity: Error, AISVS: tenancy,
	Why: "what an engine does with a prompt over its limit counts more than what it says",
	all: func(d *Deployment) outcome {
		p := d.Probe
		switch {
		case p == nil:
			return notApplicable("nothing was sent: --probe was not given")
		case p.Findings > 0:
			return fail("keep it from traffic; kvcanary run shows all of it", "%s: %s", prose.Plural(p.Findings, "finding"), p.Finding)
		case p.Missing != "":
			return unknown("run it again with more budget, or with --context and --pool", "not all was asked: %s", p.Missing)
		}
		return pass("prompts up to %s tokens were served and from %s refused (probed)", prose.Thousands(p.AcceptedMax), prose.Thousands(p.RejectedMin))
	},
}
