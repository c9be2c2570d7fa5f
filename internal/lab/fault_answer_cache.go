package lab

// answerCache gives one tenant's answer to another.
var answerCache = Switch{
	Name:  "answer_cache",
	Modes: []string{"exact", "semantic", "soft"},
	Does: "the gateway keeps answers and finds them by the prompt alone, or by a prompt much like it, whoever asks; soft " +
		"has the tenant's name as one more word of the prompt",
	Reports: []string{
		"https://github.com/vllm-project/semantic-router/issues/2134",
		"https://github.com/vllm-project/semantic-router/issues/1448",
		"https://github.com/wso2/api-platform/issues/733",
		"https://github.com/maximhq/bifrost/pull/5769",
	},
	apply: func(mode string, s *Settings) {
		switch mode {
		case "semantic":
			s.Gateway.Cache, s.Gateway.Faults = CacheSemantic, s.Gateway.Faults|ForgetTenant
		case "soft":
			s.Gateway.Cache, s.Gateway.Faults = CacheSemantic, s.Gateway.Faults|SoftTenant
		default:
			s.Gateway.Cache, s.Gateway.Faults = CacheExact, s.Gateway.Faults|ForgetTenant
		}
	},
}
