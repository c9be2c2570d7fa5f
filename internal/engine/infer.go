package engine

import "fmt"

// refuses is where it is known from that an engine does not cut prompts.
const refuses = "this engine refuses, and cuts only what a request asks it to cut"

// infer adds what follows from what is known and from how an engine works.
func (f *Facts) infer() {
	switch f.Engine {
	case "sglang":
		// The scheduler refuses n >= min(context, pool) - 6.
		if f.MaxInput.Value == 0 && f.Context.Value > 0 && f.Pool.Value > 0 {
			f.MaxInput = Number{Value: max(1, min(f.Context.Value, f.Pool.Value)-6), Source: fmt.Sprintf("min(%s, %s) - 6", f.Context.Source, f.Pool.Source), Basis: Inferred}
			f.MaxInput.AtMost = f.Pool.AtMost
		}
	case "llamacpp":
		// A slot's window is cut out of the buffer, or is all of it.
		if f.Pool.Value == 0 && f.Context.Value > 0 {
			f.Pool = Number{Value: f.Context.Value, Source: "one slot's window, which the buffer holds: " + f.Context.Source, Basis: Inferred}
		}
	case "ollama":
		// Ollama gives its runner the window times the number of parallel requests.
		if f.Pool.Value == 0 && f.Context.Value > 0 {
			f.Pool = Number{Value: f.Context.Value, Source: "one request's window, which the runner's buffer holds: " + f.Context.Source, Basis: Inferred}
		}
	}
}
