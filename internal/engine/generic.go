package engine

import (
	"context"
	"slices"
)

// generic is any server with a list of models: only probing shows more of it.
var generic = Engine{Name: "generic", ask: askGeneric}

// askGeneric reads GET /v1/models, which every OpenAI-compatible server has.
// max_model_len stands there on vLLM, SGLang and what imitates them.
func askGeneric(ctx context.Context, a *asker, f *Facts) bool {
	var answer struct {
		Data []struct {
			ID          word  `json:"id"`
			MaxModelLen count `json:"max_model_len"`
		} `json:"data"`
	}
	if !a.get(ctx, "/v1/models", &answer) || len(answer.Data) == 0 {
		return false
	}
	for _, m := range answer.Data[:min(len(answer.Data), maxModels)] {
		if m.ID == "" {
			continue
		}
		f.Models = append(f.Models, Model{string(m.ID), int(m.MaxModelLen)})
		f.Context.least(m.MaxModelLen, "GET /v1/models max_model_len")
	}
	for _, m := range f.Models { // of several windows the smallest counts: say whose it is
		if m.Context > f.Context.Value {
			i := slices.IndexFunc(f.Models, func(m Model) bool { return m.Context == f.Context.Value })
			f.Context.Source = "GET /v1/models max_model_len of " + f.Models[i].ID
			break
		}
	}
	return len(f.Models) > 0
}

// addListed takes over what the list of models says.
func (f *Facts) addListed(ctx context.Context, a *asker) {
	var listed Facts
	if askGeneric(ctx, a, &listed) {
		f.Models = listed.Models
		f.Context.least(count(listed.Context.Value), listed.Context.Source)
	}
}
