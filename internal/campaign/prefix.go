package campaign

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// prefix is what a prompt repeats of an earlier one.
type prefix struct {
	messages []wire.Message
	nonces   [3]string // that stand in the messages
	holds    []int     // seqs of the exchanges whose text they are, in order
}

// prefix takes turns from the prompt of an earlier exchange of the protocol
// under way, and its answer if that is asked for.
func (r *runner) prefix(from probe.Prefix) prefix {
	i := slices.IndexFunc(r.all, func(e wire.Exchange) bool { return e.Seq == from.Seq })
	p, made := r.prompts[from.Seq]
	if i < 0 || !made || from.Turns < 0 || from.Turns > len(p.messages) {
		panic(fmt.Sprintf("kvcanary: internal error: a prompt is to begin with %d turns of exchange %d, which this protocol has not sent", from.Turns, from.Seq))
	}
	base := &r.all[i]
	out := prefix{messages: p.messages, holds: append(slices.Clone(base.Holds), base.Seq)}
	if from.Turns > 0 {
		out.messages = p.messages[:from.Turns]
	}
	for n, nonce := range base.Nonces {
		if nonce != "" && slices.ContainsFunc(out.messages, func(m wire.Message) bool { return mentions(m, nonce) }) {
			out.nonces[n] = nonce
		}
	}
	if from.Answer {
		said := base.Answer.Text(wire.Content)
		var x text
		x.literal(said)
		out.messages = append(slices.Clip(out.messages), wire.Message{Role: "assistant", Text: &x})
		out.holds = append(out.holds, r.owners(said)...)
	}
	slices.Sort(out.holds)
	out.holds = slices.Compact(out.holds)
	return out
}

// mentions reports whether a nonce stands in one of the literal pieces of a
// message or in its picture.
func mentions(m wire.Message, nonce string) bool {
	x, ok := m.Text.(*text)
	return len(m.Images) > 0 && slices.ContainsFunc(m.Images, func(p []byte) bool { return strings.Contains(string(p), nonce) }) ||
		ok && slices.ContainsFunc(x.segments, func(s segment) bool { return s.n == 0 && strings.Contains(s.literal, nonce) })
}

// owners are the exchanges of this run whose canaries or nonces stand in a
// text: when it is sent on, so are they.
func (r *runner) owners(said string) []int {
	var out []int
	for _, h := range r.coder.Scan([]byte(said)) {
		if h.ID.Run() == r.id {
			out = append(out, h.ID.Seq())
		}
	}
	said = strings.ToLower(said)
	for i := range r.all {
		if slices.ContainsFunc(r.all[i].Nonces[:], func(n string) bool { return n != "" && strings.Contains(said, n) }) {
			out = append(out, r.all[i].Seq)
		}
	}
	return out
}
