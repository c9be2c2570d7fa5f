package engine

import (
	"context"
	"encoding/json"
)

var lmdeploy = Engine{
	Name: "lmdeploy", ask: askLMDeploy,
	names: []string{"lmdeploy", "openmmlab/lmdeploy"},
	flags: map[string]setting{
		"session-len":           number(func(f *Facts) *Number { return &f.Context }),
		"cache-block-seq-len":   number(func(f *Facts) *Number { return &f.PageSize }),
		"enable-prefix-caching": on(func(f *Facts) *Flag { return &f.PrefixCache }),
		"role":                  lmdeployRole,
	},
	defaults: func(f *Facts) { f.PrefixCache.orDefault(false, "LMDeploy's default") },
}

func lmdeployRole(f *Facts, value, source string) {
	roles := map[string]string{"Hybrid": "both", "Prefill": "prefill", "Decode": "decode"}
	f.Role.set(roles[value], source)
}

// askLMDeploy reads /distserve/engine_info, whose body is a string of JSON
// that holds JSON. The window is said nowhere.
func askLMDeploy(ctx context.Context, a *asker, f *Facts) bool {
	var inner string
	var info struct {
		Blocks count `json:"num_gpu_blocks"`
		Size   count `json:"block_size"`
	}
	p := a.read(ctx, "/distserve/engine_info")
	if json.Unmarshal(p, &inner) == nil {
		p = []byte(inner)
	}
	const from = "GET /distserve/engine_info "
	if len(p) > maxAnswer || json.Unmarshal(p, &info) != nil || times(info.Blocks, info.Size) == 0 {
		return false
	}
	f.PageSize.least(info.Size, from+"block_size")
	f.Pool.leastBy(times(info.Blocks, info.Size), from+"num_gpu_blocks * block_size", Inferred)
	f.addListed(ctx, a)
	return true
}
