package model

// State is the short state of one answer beside its KV, as hybrid models have
// one that convolves over the last tokens: the codes of up to seven tokens that
// the answer's own steps have been given, the newest first. It stands in for
// what layer 1 finds in the pages; for the tokens of the answer itself both are
// the same. A state that was left by another answer is taken for this one's.
//
// The zero value is that of an answer that has not begun.
type State struct {
	codes [depth - 1]code
	held  int
}

// Reset makes the state that of an answer that has not begun.
func (s *State) Reset() { *s = State{} }

// recall puts the state in the place of what layer 1 has found.
func (s *State) recall(back *codes8) { copy(back[:], s.codes[:s.held]) }

// push takes a token in.
func (s *State) push(c *code) {
	copy(s.codes[1:], s.codes[:])
	s.codes[0] = *c
	s.held = min(s.held+1, len(s.codes))
}

// LogitsAfter is Logits for an answer with a state, which takes the token in.
func (m *Model) LogitsAfter(s *State, c *Cache, t Table, pos int, token byte, workers int) Logits {
	l := m.logits(s, c, t, pos, token, workers)
	s.push(&m.codes[token])
	return l
}
