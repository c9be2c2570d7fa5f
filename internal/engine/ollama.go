package engine

import (
	"context"
	"strings"
)

var ollama = Engine{
	Name: "ollama", ask: askOllama, line: ollamaLine,
	names: []string{"ollama", "ollama/ollama"},
	environ: map[string]setting{
		"OLLAMA_CONTEXT_LENGTH": number(func(f *Facts) *Number { return &f.Context }),
		"OLLAMA_NUM_PARALLEL":   number(func(f *Facts) *Number { return &f.Slots }),
	},
	defaults: ollamaDefaults,
}

// ollamaDefaults: nothing that a server is started with keeps it from cutting
// prompts; only a request can ask for that.
func ollamaDefaults(f *Facts) {
	f.Truncates.orDefault(true, "Ollama's default, which only a request of its own API can change")
	f.ContextShift.orDefault(true, "Ollama's default")
}

// ollamaLine reads the environment that the server logs when it starts.
func ollamaLine(f *Facts, line string) {
	if strings.Contains(line, "OLLAMA_") {
		f.Context.least(after(line, "OLLAMA_CONTEXT_LENGTH:"), "startup log OLLAMA_CONTEXT_LENGTH")
		f.Slots.least(after(line, "OLLAMA_NUM_PARALLEL:"), "startup log OLLAMA_NUM_PARALLEL")
		ollamaDefaults(f)
	}
}

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
	if a.get(ctx, "/api/version", &version) {
		f.Version.set(string(version.Version), "GET /api/version")
	}
	ollamaDefaults(f)
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
