package oracle

import (
	"cmp"
	"context"
	"slices"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// Bounds of looking through one answer.
const (
	// decodeMost is how much text of an answer is looked into for encoded runs as
	// well, bytes: a hostile answer could make that take minutes.
	decodeMost = 4 << 20
	// scanStep is how much is scanned between two looks at the context, bytes.
	scanStep = 1 << 18
)

// reader looks through the texts of answers for canaries until ctx ends.
type reader struct {
	ctx    context.Context
	coder  *canary.Coder
	decode int // bytes of this answer that may still be looked into
}

// stopped says why the answers were not all looked through, "" if they were.
func (r *reader) stopped() string {
	if r.ctx.Err() != nil {
		return "interrupted while the answers were looked through: what was found until then is told"
	}
	return ""
}

// longestEach scans a text and keeps the longest run of each canary that is
// not among sent, in the order in which they stand. A run of words says more
// than a token: it has a place in the prompt.
func (r *reader) longestEach(text string, sent map[canary.ID]bool) []canary.Hit {
	var hits []canary.Hit
	decode := len(text) <= r.decode
	if decode {
		r.decode -= len(text)
	}
	scanner := r.coder.NewScanner(canary.ScanOptions{Decode: decode}, func(h canary.Hit) {
		if !sent[h.ID] {
			hits = append(hits, h)
		}
	})
	for len(text) > 0 && r.ctx.Err() == nil {
		n := min(len(text), scanStep)
		// A scanner takes any bytes and has nowhere to fail.
		_, _ = scanner.Write([]byte(text[:n]))
		text = text[n:]
	}
	_ = scanner.Close()
	slices.SortStableFunc(hits, func(a, b canary.Hit) int { return cmp.Compare(a.Start, b.Start) })

	var best []canary.Hit
	for _, h := range hits {
		i := slices.IndexFunc(best, func(b canary.Hit) bool { return b.ID == h.ID })
		switch {
		case i < 0:
			best = append(best, h)
		case h.Words > best[i].Words:
			best[i] = h
		}
	}
	return best
}

// prompts knows what every exchange was sent.
type prompts struct {
	bySeq map[int]*wire.Exchange
	// sighted are the foreign canaries that an answer was found to carry: where
	// that answer stands in a later prompt, they were sent.
	sighted map[int][]canary.ID
	// repeats are those that may have been answered with another's answer.
	repeats map[int]*wire.Exchange
}

func promptsOf(all []wire.Exchange) prompts {
	p := prompts{map[int]*wire.Exchange{}, map[int][]canary.ID{}, repeated(all)}
	for i := range all {
		p.bySeq[all[i].Seq] = &all[i]
	}
	return p
}

// sent are the canaries that stand in the prompt of an exchange: its own and
// those of the exchanges whose text it holds, be it because it repeats a prompt
// that does, or that the answer to its tenant's request of the same id may hold.
func (p prompts) sent(e *wire.Exchange) map[canary.ID]bool {
	ids := map[canary.ID]bool{canary.ID(e.ID): true}
	hold := func(e *wire.Exchange) {
		for _, seq := range e.Holds {
			if h := p.bySeq[seq]; h != nil {
				ids[canary.ID(h.ID)] = true
			}
			for _, id := range p.sighted[seq] {
				ids[id] = true
			}
		}
	}
	hold(e)
	if first := p.repeats[e.Seq]; first != nil {
		ids[canary.ID(first.ID)] = true
		hold(first)
	}
	if e.Again != nil && p.bySeq[*e.Again] != nil {
		hold(p.bySeq[*e.Again])
	}
	return ids
}
