package oracle

import (
	"fmt"
	"slices"

	"github.com/kvcanary/kvcanary/internal/stats"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// A target that drops a part of long prompts and counts them as if it had not
// shows it only in the values that do not come back: those of one place, from
// some length on, while the same model answers with those of other places and
// of shorter prompts.

// wish is a value that a prompt asked for.
type wish struct {
	seq, tokens, place int
	lost               bool
	turns              bool // its prompt has a value at each place, each in a turn of its own
}

// parts are the parts of a prompt that may be dropped together, as the places
// in them: bit 0 the start, bit 1 the middle, bit 2 the end. With the end of a
// prompt its question may be gone, and so all of them.
var parts = []struct {
	places uint
	name   string
}{
	{1, "their start"}, {2, "their middle"}, {4, "their end"},
	{3, "their start and middle"}, {6, "their middle and end"}, {7, "any place of them"},
}

const (
	// leastLost is how many values have to be missing before there is anything to
	// say, and obeys what share of the others has to come back: a model that
	// often does not do as it is told says nothing by not doing it.
	leastLost = 2
	obeys     = 0.9
	// leastShown is how many values of the same part have to come back from shorter
	// prompts of the same shape.
	leastShown = 2
	// turnsApart is how many messages a prompt has whose places are all in turns of
	// their own.
	turnsApart = 5
)

// wishes are the values asked for in a run. Prompts over a limit are another
// oracle's business.
func wishes(exchanges []wire.Exchange) []wish {
	var all []wish
	proven := provenLimit(exchanges)
	for i := range exchanges {
		e := &exchanges[i]
		if !e.Answer.Served() || e.Asked < 0 || e.Collapsed() || overLimit(e, proven) > 0 || e.SentTokens <= 0 {
			continue
		}
		if !placed(e) {
			continue
		}
		if lost := e.EchoLost(); lost || e.Echoes(e.Asked) {
			all = append(all, wish{e.Seq, e.SentTokens, e.Asked, lost, (e.Messages == 0 || e.Messages >= turnsApart) && e.Nonces[0] != "" && e.Nonces[1] != "" && e.Nonces[2] != ""})
		}
	}
	return all
}

// placed reports whether the values of a prompt stand where their numbers say:
// there are three of them, or it is so short that places mean nothing.
func placed(e *wire.Exchange) bool {
	return e.SentTokens < 288 || e.Nonces[0] != "" && e.Nonces[1] != "" && e.Nonces[2] != ""
}

// lost adds the test of whether one place of long prompts is not read. The
// place and the length from which on it is lost are the ones that stand out
// most, so the p-value of Fisher's test is multiplied by how many there were to
// choose from. The test belongs to the protocol that has sent the last of the
// prompts.
func (j *Judgement) lost(c Case) {
	all := wishes(own(c.run()))
	best, looks := cut{p: 1}, 0
	for i, part := range parts {
		for _, from := range lengths(all, part.places) {
			looks++
			if k := cutAt(all, part.places, from); k.stands() && k.p < best.p {
				best = k
				best.part = i
			}
		}
	}
	i := slices.IndexFunc(c.Exchanges, func(e wire.Exchange) bool { return e.Seq == best.seq })
	if best.gone < leastLost || i < 0 {
		return
	}
	e := &c.Exchanges[i]
	t := Test{P: min(1, best.p*float64(looks)), Finding: Finding{
		Kind: Truncation, Protocol: e.Protocol, Exchange: e.Seq, Tenant: e.Tenant,
		Explain: fmt.Sprintf("%s, the values at %s never came back (0 of %d), while %d of %d others did, of shorter prompts or other places: a part of long prompts is not read, whatever the target counts",
			best.span(), parts[best.part].name, best.gone, best.kept, best.kept+best.otherLost),
	}}
	lacking := fmt.Sprintf("%s, the values at %s did not come back (0 of %d)", best.span(), parts[best.part].name, best.gone)
	if !best.shows(parts[best.part].places) {
		// A target that answers from the last turn alone, as simulators do, and a model
		// that takes the nearest value lose these at any length.
		j.Unsure = lacking + ", nor did they from shorter prompts of as many turns: the target may read the last turn only; name a model that reads them all, or go past what is in front of it"
		return
	}
	j.Tests = append(j.Tests, t)
	j.Unsure = lacking + ": too few were asked for to tell a part that is not read from a model that forgets"
}

// cut is the supposition that a part of prompts of some length or more is not read.
type cut struct {
	part            int    // index into parts
	from, seq       int    // length in tokens, and the last prompt that shows it
	gone, came      int    // values in that part of such prompts
	kept, otherLost int    // all others
	shown           [3]int // of those kept, the ones of shorter prompts of several turns, by place
	p               float64
}

func cutAt(all []wish, places uint, from int) cut {
	k := cut{from: from}
	for _, w := range all {
		switch there := w.tokens >= from && places>>w.place&1 == 1; {
		case there && w.lost:
			k.gone++
			k.seq = max(k.seq, w.seq)
		case there:
			k.came++
		case w.lost:
			k.otherLost++
		default:
			k.kept++
			if w.turns && w.tokens < from {
				k.shown[w.place]++
			}
		}
	}
	k.p = stats.Fisher(k.gone, k.gone+k.came, k.otherLost, k.otherLost+k.kept)
	return k
}

// stands reports whether nothing contradicts the supposition: none of the
// values came, and nearly all others did.
func (k cut) stands() bool {
	return k.gone >= leastLost && k.came == 0 && k.kept > 0 && float64(k.kept) >= obeys*float64(k.kept+k.otherLost)
}

// shows reports whether shorter prompts of the same shape have shown that the
// model answers with values of these places.
func (k cut) shows(places uint) bool {
	for place, n := range k.shown {
		if places>>place&1 == 1 && n < leastShown {
			return false
		}
	}
	return true
}

// lengths are the prompt lengths at which places were asked for, each once.
func lengths(all []wish, places uint) []int {
	var out []int
	for _, w := range all {
		if places>>w.place&1 == 1 {
			out = append(out, w.tokens)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (k cut) span() string { return fmt.Sprintf("in prompts of %d tokens and more", k.from) }
