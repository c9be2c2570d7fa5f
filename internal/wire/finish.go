package wire

import "slices"

// What the dialects call an end that the model chose, and one that came because
// the answer had as many tokens as it may have.
var (
	byItself = []string{"stop", "end_turn", "completed", "stop_sequence", "tool_calls", "tool_use", "function_call", "eos"}
	byLength = []string{"length", "max_tokens", "max_output_tokens"}
)

// EndedByItself reports whether the model ended the answer of its own accord.
func (a *Answer) EndedByItself() bool { return slices.Contains(byItself, a.Finish) }

// CutShort reports whether the answer ended because it had as many tokens as
// it was allowed, or as the window has room for.
func (a *Answer) CutShort() bool { return slices.Contains(byLength, a.Finish) }
