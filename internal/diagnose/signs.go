package diagnose

import (
	"slices"
	"strings"

	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// Signs is a set of what classes are told apart by. The zero value is empty.
type Signs uint32

// sign is one of them: a bit, its name in the table, and when an answer with a
// finding shows it.
type sign struct {
	name  string
	shows func(f *oracle.Finding, e, from *wire.Exchange) bool // from is nil if it is not known
	// slack is how likely the sign is there, or not, whatever the fault does.
	slack float64
}

// slackOfKinds is small: a kind of finding is hardly made by anything else.
const slackOfKinds, slackOfPlaces = 0.02, 0.1

// all signs, in the order of their bits: the kinds of finding, and where in a
// protocol they were made. None depends on how many tenants a run has.
var all = append(ofKinds(),
	place("over", func(_ *oracle.Finding, e, _ *wire.Exchange) bool {
		return e.Purpose == wire.Over || e.Limit > 0 && e.SentTokens >= e.Limit
	}),
	// Its owner was being served at the same time, had been served before, or had left.
	place("live", func(_ *oracle.Finding, e, from *wire.Exchange) bool { return from != nil && e.Overlaps(from) }),
	place("past", func(_ *oracle.Finding, e, from *wire.Exchange) bool { return from != nil && !e.Overlaps(from) }),
	place("left", func(_ *oracle.Finding, _, from *wire.Exchange) bool { return from != nil && from.Left }),
	arm(wire.ArmLoad), arm(wire.ArmHit), arm(wire.ArmOwn), arm(wire.ArmAgain),
	// It is another exchange's answer, byte for byte, or the beginning of it.
	place("whole answer", func(_ *oracle.Finding, e, from *wire.Exchange) bool {
		mine, theirs := text(e), text(from)
		return len(mine) >= shortest && strings.HasPrefix(theirs, mine)
	}),
	// Its own value is there as well: only a part of the answer is another's.
	place("own nonce", func(_ *oracle.Finding, e, _ *wire.Exchange) bool { return e.Asked >= 0 && e.Echoes(e.Asked) }),
)

// kinds of finding are signs by their own names; they come first.
var kinds = []oracle.Kind{
	oracle.Leak, oracle.Misroute, oracle.FailOpen, oracle.Truncation, oracle.Contamination, oracle.Sharing,
}

// shortest is how long an answer has to be, bytes, to be called another's whole answer.
const shortest = 12

func ofKinds() []sign {
	var out []sign
	for _, k := range kinds {
		out = append(out, sign{string(k), func(f *oracle.Finding, _, _ *wire.Exchange) bool { return f.Kind == k }, slackOfKinds})
	}
	return out
}

func place(name string, shows func(f *oracle.Finding, e, from *wire.Exchange) bool) sign {
	return sign{name, shows, slackOfPlaces}
}

// arm is a finding on that side of a comparison.
func arm(name string) sign {
	return place("arm "+name, func(_ *oracle.Finding, e, _ *wire.Exchange) bool { return e.Arm == name })
}

// text is what an answer says to its reader.
func text(e *wire.Exchange) string {
	if e == nil || e.Answer == nil {
		return ""
	}
	var b strings.Builder
	for _, p := range e.Answer.Pieces {
		if p.Channel == wire.Content {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// SignsOf are the signs of one protocol's findings. exchanges are those of the
// run, in the order of their seqs.
func SignsOf(findings []oracle.Finding, exchanges []wire.Exchange) Signs {
	var out Signs
	for i := range findings {
		f := &findings[i]
		e := find(exchanges, f.Exchange)
		if e == nil {
			e = &wire.Exchange{Asked: -1}
		}
		var from *wire.Exchange
		if f.FromExchange != nil {
			from = find(exchanges, *f.FromExchange)
		}
		for n, s := range all {
			if s.shows(f, e, from) {
				out |= 1 << n
			}
		}
	}
	return out
}

func find(exchanges []wire.Exchange, seq int) *wire.Exchange {
	i, ok := slices.BinarySearchFunc(exchanges, seq, func(e wire.Exchange, seq int) int { return e.Seq - seq })
	if !ok {
		return nil
	}
	return &exchanges[i]
}

// found says that there was any finding.
func (s Signs) found() bool { return s&(1<<len(kinds)-1) != 0 }

// String lists the names with ", " between them, "" for none: the key of a set in the table.
func (s Signs) String() string {
	var names []string
	for i := range all {
		if s&(1<<i) != 0 {
			names = append(names, all[i].name)
		}
	}
	return strings.Join(names, ", ")
}

// parse reads what String has written; a name that is unknown is left out.
func parse(list string) (out Signs) {
	for name := range strings.SplitSeq(list, ", ") {
		if i := slices.IndexFunc(all, func(s sign) bool { return s.name == name }); i >= 0 {
			out |= 1 << i
		}
	}
	return out
}
