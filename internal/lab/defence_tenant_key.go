package lab

// tenantKey is the cure of a cache that answers everybody. Without a fault it
// is on, wherever there is a cache of answers.
var tenantKey = Switch{
	Name:    "tenant_key",
	Does:    "a kept answer is found only by the tenant that it was given to",
	Reports: []string{"https://github.com/vllm-project/semantic-router/pull/2135"},
	apply:   func(_ string, s *Settings) { s.Gateway.Defences |= TenantKey },
}
