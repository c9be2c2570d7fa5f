package engine

import (
	"context"
	"strings"
)

// askOllama reads which models are loaded: only there does Ollama state the
// window that it has given a model. A model that is not loaded has none yet,
// and what /api/show says is what the model was trained with.
func askOllama(ctx context.Context, a *asker, f *Facts) bool {
	var loaded struct {
		Models *[]struct {
			Name    word  `json:"name"`
			Context count `json:"context_length"`
		} `json:"models"`
	}
	if !a.get(ctx, "/api/ps", &loaded) || loaded.Models == nil {
		return false
	}
	var version struct {
		Version word `json:"version"`
	}
	if a.get(ctx, "/api/version", &version) && version.Version != "" {
		f.Version = Text{string(version.Version), "GET /api/version"}
	}
	f.addListed(ctx, a)
	for _, m := range (*loaded.Models)[:min(len(*loaded.Models), maxModels)] {
		f.Context.least(m.Context, "GET /api/ps context_length")
		for i := range f.Models {
			if f.Models[i].ID == string(m.Name) {
				f.Models[i].Context = int(m.Context)
			}
		}
	}
	// A model may be asked for without its tag.
	for _, m := range f.Models {
		if short, ok := strings.CutSuffix(m.ID, ":latest"); ok && len(f.Models) < maxModels {
			f.Models = append(f.Models, Model{short, m.Context})
		}
	}
	return true
}
