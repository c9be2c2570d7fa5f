package preflight

var checksumOn = Rule{
	ID: "kv_checksum_on", Severity: Warning, Engines: []string{"sglang"},
	Links: []string{"https://github.com/sgl-project/sglang/pull/39500", "https://github.com/sgl-project/sglang/pull/39729"},
	Why:   "a checksum of transferred pages is the only check of what arrives; it does not see a value of 0, a late write, or whose pages they are",
	each: func(w *Worker, _ *Deployment) outcome {
		if w.role() == "both" {
			return notApplicable("nothing is transferred")
		}
		return wantFlag(w.Facts.Checksum, true, "the checksum of transferred KV",
			"set --disaggregation-enable-kv-checksum on prefill and decode (from the release that has it), after a trial: on some models it refused sound transfers")
	},
}

var loadFailureFails = Rule{
	ID: "load_failure_fails", Severity: Warning, Engines: []string{"vllm"},
	Links: []string{"https://github.com/vllm-project/vllm/issues/52234", "https://github.com/vllm-project/vllm/issues/49250"},
	Why:   "a load of KV that failed and is computed again by another path has given wrong answers",
	each: func(w *Worker, _ *Deployment) outcome {
		switch {
		case w.Facts.Transfer.Value == "" && w.Facts.LoadFailure.Value == "":
			return unknown("give --manifest", "whether KV is loaded from elsewhere is not known")
		case w.Facts.LoadFailure.Value == "":
			return unknown(`say "kv_load_failure_policy": "fail" in --kv-transfer-config: older releases recompute`, "kv_load_failure_policy: not known")
		case w.Facts.LoadFailure.Value != "fail":
			return fail(`set "kv_load_failure_policy": "fail" in --kv-transfer-config`, "kv_load_failure_policy is %s (%s)", w.Facts.LoadFailure.Value, w.Facts.LoadFailure.Source)
		}
		return pass("kv_load_failure_policy is fail (%s)", w.Facts.LoadFailure.Source)
	},
}

var offloadTiers = Rule{
	ID: "offload_tiers_reported", Severity: Note,
	Links: []string{"https://github.com/LMCache/LMCache/issues/4385", "https://github.com/NVIDIA/TensorRT-LLM/issues/8813", "https://github.com/vllm-project/vllm/issues/47282"},
	Why:   "tiers behind the pool have open reports of pages that came back as another request's",
	each: func(w *Worker, _ *Deployment) outcome {
		t := w.Facts.Offload
		switch t.Value {
		case "":
			return unknown("give --manifest", "tiers behind the pool: not known")
		case "none":
			return pass("no tier behind the pool (%s)", t.Source)
		}
		return fail("test it with kvcanary run roundtrip before it is given traffic", "behind the pool: %s (%s)", t.Value, t.Source)
	},
}
