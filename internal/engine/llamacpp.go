package engine

import "context"

// askLlamaCpp reads /props of llama.cpp's server. The window stated there is
// that of one slot. How large the cache behind all slots is stands nowhere:
// slots may have a share each or all of it in common.
func askLlamaCpp(ctx context.Context, a *asker, f *Facts) bool {
	var props struct {
		Settings *struct {
			Context count `json:"n_ctx"`
		} `json:"default_generation_settings"`
		Slots count `json:"total_slots"`
		Build word  `json:"build_info"`
	}
	if !a.get(ctx, "/props", &props) || props.Settings == nil || props.Slots == 0 {
		return false
	}
	if props.Build != "" {
		f.Version = Text{string(props.Build), "GET /props build_info"}
	}
	f.addListed(ctx, a)
	f.Context.least(props.Settings.Context, "GET /props default_generation_settings.n_ctx")
	for i := range f.Models {
		f.Models[i].Context = int(props.Settings.Context) // it serves one model, under all its names
	}
	return true
}
