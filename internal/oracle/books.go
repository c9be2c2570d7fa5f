package oracle

import (
	"math"
	"slices"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// Counts that vary.
//
// That a target counted less of a prompt than of others like it says that the
// prompt was cut only if length is why. Some targets count unsteadily: replicas
// have tokenizers or hidden prompts of their own, a hidden prompt comes and goes,
// usage is rounded, what came from a cache is left out. Then prompts lack tokens
// at any length, and longer ones of the same tenant lack none. A target that cuts
// does so from some length on; one that cuts on some of its replicas only keeps
// about as much of each.

// books are what a target has counted in a run.
type books struct {
	line        wire.Baseline
	ends        int // prompts that were answered with the value at their end
	bySeq       map[int]*wire.Exchange
	short, full map[string][]*wire.Exchange // by tenant: prompts that lack tokens, and those that lack none
}

func booksOf(all []wire.Exchange) *books {
	b := &books{
		line: wire.NewBaseline(all), ends: endEchoes(all), bySeq: map[int]*wire.Exchange{},
		short: map[string][]*wire.Exchange{}, full: map[string][]*wire.Exchange{},
	}
	for i := range all {
		b.bySeq[all[i].Seq] = &all[i]
	}
	for i := range all {
		e := &all[i]
		_, reported := e.Used()
		switch {
		case !reported || !e.Answer.Served() || e.Again != nil || len(e.Holds) > 0 || b.line.Collapsed(e):
		case b.truncated(e) != "":
			b.short[e.Tenant] = append(b.short[e.Tenant], e)
		default:
			b.full[e.Tenant] = append(b.full[e.Tenant], e)
		}
	}
	return b
}

// mayBeHeld reports whether all that a count lacks may have come from a cache
// that is not reported: earlier prompts have sent so much of this one.
func (b *books) mayBeHeld(e *wire.Exchange) bool {
	used, ok := e.Used()
	if !ok || e.Answer.Usage.Cached > 0 {
		return false
	}
	held := 0
	for _, seq := range e.Holds {
		if h := b.bySeq[seq]; h != nil {
			held = max(held, h.SentTokens)
		}
	}
	return held > 0 && e.SentTokens-used <= held
}

// unknown reports whether less than half of a prompt was counted where others
// were counted whole and nothing says what to expect of this one: the short ones
// that say so for others contradict each other.
func (b *books) unknown(e *wire.Exchange) bool {
	used, reported := e.Used()
	if _, known := b.line.Expect(e); known || !reported || !e.SentExact || 2*used >= e.SentTokens || b.line.Shortest(e) || b.mayBeHeld(e) {
		return false
	}
	return slices.ContainsFunc(b.full[e.Tenant], func(g *wire.Exchange) bool {
		n, _ := g.Used()
		return g.SentExact && 10*n >= 9*g.SentTokens
	})
}

// doubtful says why it may not be for its length that a prompt lacks tokens, ""
// if it is: longer ones of its tenant lack none, or it lacks what shorter ones
// lack of which that is so, or it was answered with its value all the same and
// nothing else shows that anything was cut.
func (b *books) doubtful(e *wire.Exchange) string {
	used, _ := e.Used()
	switch {
	case b.line.Doubles():
		return "all counts are powers of two"
	case used < leastEchoing && e.Echoes(e.Asked):
		return "it was answered with the value that it asks for, which takes more"
	case b.passedOver(e):
		return "longer ones lack none"
	case slices.ContainsFunc(b.short[e.Tenant], func(f *wire.Exchange) bool {
		return f != e && longer(e, f, 1) && b.passedOver(f) && b.alike(e, f)
	}):
		return "shorter ones lack as many while longer ones lack none"
	case e.Echoes(e.Asked) && !b.cutToOne(e) && !b.valuesLost():
		return "it was answered with the value that it asks for, and nothing else shows that a part was dropped"
	}
	return ""
}

// valuesLost reports whether prompts that lack tokens are answered without their
// value where others hardly ever are.
func (b *books) valuesLost() bool {
	short, others := tally(b.short), tally(b.full)
	return short.lost > 0 && 10*others.lost <= others.echoed+others.lost
}

// tally counts how prompts were answered.
func tally(byTenant map[string][]*wire.Exchange) (a arm) {
	for _, of := range byTenant {
		for _, e := range of {
			switch {
			case e.Asked < 0:
			case e.Echoes(e.Asked):
				a.echoed++
			case e.EchoLost():
				a.lost++
			}
		}
	}
	return a
}

const (
	// leastEchoing is how many tokens a prompt has at least that states a value and
	// asks for it: a value alone has eleven characters that are no words.
	leastEchoing = 12
	// clearlyLonger is by how much prompts must differ in length to be told apart,
	// whatever their answers may have been allowed.
	clearlyLonger = 1.1
	// otherLength is by how much they must differ for being cut to one length to
	// be no chance, and sameLength by how much those lengths may.
	otherLength = 1.25
	sameLength  = 0.02
	// moreKept is how much more of another prompt must be counted for a target to
	// have no one length that it cuts to.
	moreKept = 1.5
)

// passedOver reports whether longer prompts of a tenant lack nothing, unless
// this one was cut to the length that others were cut to.
func (b *books) passedOver(e *wire.Exchange) bool {
	if !slices.ContainsFunc(b.full[e.Tenant], func(g *wire.Exchange) bool { return longer(g, e, clearlyLonger) }) {
		return false
	}
	return !b.cutToOne(e)
}

// cutToOne reports whether so much was counted of a prompt as of others of its
// tenant that lack tokens, too, and are longer or shorter, and of none of them
// much more. Where each of those was answered with its value, none of the values
// may have stood where nothing was kept, nor much more have been counted of a
// shorter one.
func (b *books) cutToOne(e *wire.Exchange) bool {
	used, _ := e.Used()
	cut, lost, shortest := false, e.EchoLost(), e
	for _, h := range b.short[e.Tenant] {
		kept, _ := h.Used()
		if float64(kept) >= moreKept*float64(used) {
			return false
		}
		switch {
		case math.Abs(float64(kept-used)) > sameLength*float64(used):
			continue
		case readInTheMiddle(h):
			return false
		}
		cut = cut || longer(h, e, otherLength) || longer(e, h, otherLength)
		lost = lost || h.EchoLost()
		if longer(shortest, h, 1) {
			shortest = h
		}
	}
	return cut && (lost || !slices.ContainsFunc(b.full[e.Tenant], func(g *wire.Exchange) bool {
		n, _ := g.Used()
		return longer(shortest, g, 1) && float64(n) >= moreKept*float64(used)
	}))
}

// readInTheMiddle reports whether a prompt was answered with the value in its
// middle, of which neither its head nor its tail reaches to if no more was kept
// than was counted.
func readInTheMiddle(e *wire.Exchange) bool {
	used, _ := e.Used()
	return e.Asked == 1 && e.Echoes(1) && 3*used < e.SentTokens
}

// alike reports whether a prompt lacks no more than another one: as many tokens,
// or as large a part.
func (b *books) alike(e, f *wire.Exchange) bool {
	used, want, ok := counted(e, b.line)
	less, of, known := counted(f, b.line)
	if !ok || !known {
		return false
	}
	return want-float64(used) <= 1.5*(of-float64(less))+surelyLost || float64(used)*of >= 0.9*float64(less)*want
}

// longer reports whether a prompt is so many times as long as another one.
func longer(e, f *wire.Exchange, times float64) bool {
	if e.SentBytes > 0 && f.SentBytes > 0 {
		return float64(e.SentBytes) >= times*float64(f.SentBytes)
	}
	return float64(e.SentTokens) >= times*float64(f.SentTokens)
}
