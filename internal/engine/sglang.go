package engine

import "context"

// sglangWorker is the part of SGLang's /server_info that states facts. The
// answer carries api_key and admin_api_key in clear beside them; a field that
// is not named here is not kept.
type sglangWorker struct {
	MaxTotalNumTokens count `json:"max_total_num_tokens"`
	MaxReqInputLen    count `json:"max_req_input_len"`
	ContextLength     count `json:"context_length"` // null unless set by flag
	PageSize          count `json:"page_size"`
	Version           word  `json:"version"`
	// One entry a data-parallel rank.
	InternalStates []struct {
		MemoryUsage struct {
			TokenCapacity count `json:"token_capacity"`
		} `json:"memory_usage"`
	} `json:"internal_states"`
}

// askSGLang reads /server_info, or /get_server_info as older releases and the
// load balancers for prefill and decode workers have it. The latter merge
// their workers' answers under "prefill" and "decode".
func askSGLang(ctx context.Context, a *asker, f *Facts) bool {
	for _, path := range []string{"/server_info", "/get_server_info"} {
		var answer struct {
			sglangWorker
			Prefill []sglangWorker `json:"prefill"`
			Decode  []sglangWorker `json:"decode"`
		}
		if !a.get(ctx, path, &answer) {
			continue
		}
		from := "GET " + path + " "
		for _, w := range answer.Prefill {
			f.addWorker(w, &f.Pool, from+"prefill[].")
		}
		for _, w := range answer.Decode {
			f.addWorker(w, &f.DecodePool, from+"decode[].")
		}
		if f.Pool.Value == 0 {
			f.addWorker(answer.sglangWorker, &f.Pool, from)
		}
		if f.Pool.Value == 0 {
			*f = Facts{Engine: f.Engine}
			continue // another engine that happens to answer here
		}
		if f.Version.Value == "" {
			f.setVersion(answer.sglangWorker, from)
		}
		// The resolved window stands in the model list; /server_info has it
		// only where a flag set it.
		f.addListed(ctx, a)
		return true
	}
	return false
}

// addWorker takes the smaller of what is known and what one worker says.
func (f *Facts) addWorker(w sglangWorker, pool *Number, from string) {
	pool.least(w.MaxTotalNumTokens, from+"max_total_num_tokens")
	for _, s := range w.InternalStates {
		pool.least(s.MemoryUsage.TokenCapacity, from+"internal_states[].memory_usage.token_capacity")
	}
	f.MaxInput.least(w.MaxReqInputLen, from+"max_req_input_len")
	f.Context.least(w.ContextLength, from+"context_length")
	f.PageSize.least(w.PageSize, from+"page_size")
	if f.Version.Value == "" {
		f.setVersion(w, from)
	}
}

func (f *Facts) setVersion(w sglangWorker, from string) {
	if w.Version != "" {
		f.Version = Text{string(w.Version), from + "version"}
	}
}
