package oracle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kvcanary/kvcanary/internal/stats"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// judgeContamination holds answers that were given beside others, or after
// requests that were aborted, against those of the control arm: how often does
// this model answer with the value that its prompt asks for when nothing else
// runs, and how often under load? The difference is tested exactly, among
// prompts that are alike; a model that does not do as it is told shows nothing
// by not doing it. Each group of exchanges is a comparison of its own: what
// changes the control of one says nothing about another.
func judgeContamination(ctx context.Context, c Case) Judgement {
	var j Judgement
	r := &reader{ctx: ctx, coder: c.Coder}
	exchanges, again := r.without(c.Exchanges)
	j.Unsure = repeatedOnly(c.Exchanges, again)
	controlled := slices.ContainsFunc(c.Exchanges, func(e wire.Exchange) bool { return e.Arm == wire.ArmNull })
	groups, stock := groupsOf(exchanges), stockPhrases(c.run())
	bySeq := promptsOf(c.run()).bySeq
	for _, g := range groups {
		if sayAgain(g, bySeq) {
			j.Unsure = "whenever a conversation goes on, the model says once more what it has answered before, and not the value that it is asked for: what else runs cannot be told from that"
			continue
		}
		own := slices.DeleteFunc(slices.Clone(g), func(e wire.Exchange) bool { return stock.has(&e) })
		j.contaminated(own, len(groups), controlled)
		if len(own) < len(g) {
			j.stock(g, len(groups), len(g)-len(own))
		}
	}
	return j
}

// groupsOf parts the exchanges of both arms by group, in the order in which
// groups begin.
func groupsOf(exchanges []wire.Exchange) (groups [][]wire.Exchange) {
	at := map[int]int{}
	for _, e := range exchanges {
		if e.Arm != wire.ArmNull && e.Arm != wire.ArmLoad {
			continue
		}
		i, ok := at[e.Group]
		if !ok {
			i, groups = len(groups), append(groups, nil)
			at[e.Group] = i
		}
		groups[i] = append(groups[i], e)
	}
	return groups
}

// contaminated makes the test of one group of so many. controlled says that some
// group has a control.
func (j *Judgement) contaminated(exchanges []wire.Exchange, groups int, controlled bool) {
	tables, alone, beside, able := compared(exchanges)
	if beside.n() == 0 {
		return
	}
	if alone.n() == 0 {
		if beside.lost > 0 && controlled {
			j.Unsure = fmt.Sprintf("%d of %d answers that were given beside or after others lack the value that their prompt asks for, and no prompt like theirs was answered alone", beside.lost, beside.n())
		}
		return
	}
	if !able {
		if beside.lost > 0 {
			j.Unsure = fmt.Sprintf("the model answers with the value that it is asked for %d of %d times when nothing else runs: not doing so beside others says nothing; name a model that does as it is told", alone.kept, alone.n())
		}
		return
	}
	p := stats.FisherStrata(tables)
	e := beside.first
	if e == nil {
		e = beside.any
	}
	told, means := told(alone, beside)
	j.Tests = append(j.Tests, Test{P: p, Finding: Finding{
		Kind: Contamination, Protocol: e.Protocol, Exchange: e.Seq, Tenant: e.Tenant,
		Explain: told + ": " + means,
	}})
	if p*float64(groups) <= suspicious {
		j.Unsure = told + ": too few to be sure"
	}
}

// told says what was counted, and what it means if it is no chance.
func told(alone, beside echoes) (counted, means string) {
	if beside.held == beside.n() {
		return fmt.Sprintf("%d of %d answers to prompts that begin as earlier ones did lack the value that their prompt asks for, %d of %d on the control arm", beside.lost, beside.n(), alone.lost, alone.n()),
			"what is kept of earlier prompts changes answers"
	}
	return fmt.Sprintf("%d of %d answers that were given beside or after others lack the value that their prompt asks for, %d of %d that were given alone to prompts like theirs", beside.lost, beside.n(), alone.lost, alone.n()),
		"what else runs changes answers"
}

// form is what decides, besides what else runs, whether a model finds a value:
// how many turns there are, up to those of a conversation, in which of them
// the value is, and whether it is asked for with all of its line. What answers from the last turn alone, as simulators do, has
// those of short prompts and loses those of longer ones, load or none.
type form struct {
	turns, place int
	line         bool
}

func formOf(e *wire.Exchange) form {
	line := strings.HasSuffix(e.Tail, wire.WholeLine)
	if e.Messages == 1 {
		return form{1, 0, line}
	}
	return form{min(e.Messages, turnsApart), e.Asked, line}
}

// timesLonger is how many times as long as any of its form that was answered
// alone a prompt may be and still be compared with it.
const timesLonger = 4

// stratum holds the answers of both arms to prompts of one form.
type stratum struct {
	form          form
	alone, beside echoes
	longest       int // of those that were answered alone, tokens
}

// compared counts the answers of both arms, by form and in all, those left out
// whose prompts have no like on the other arm. Where none has, only what was
// given beside others is counted. able says that there is a form to whose
// prompts the model does answer with the value when nothing else runs.
func compared(exchanges []wire.Exchange) (tables []stats.Table, alone, beside echoes, able bool) {
	var strata []stratum
	of := func(e *wire.Exchange) *stratum {
		f := formOf(e)
		i := slices.IndexFunc(strata, func(s stratum) bool { return s.form == f })
		if i < 0 {
			i, strata = len(strata), append(strata, stratum{form: f})
		}
		return &strata[i]
	}
	for i := range exchanges {
		if e := &exchanges[i]; e.Arm == wire.ArmNull {
			if s := of(e); s.alone.count(e) {
				s.longest = max(s.longest, e.SentTokens)
			}
		}
	}
	var unlike echoes
	for i := range exchanges {
		if e := &exchanges[i]; e.Arm == wire.ArmLoad {
			if s := of(e); s.alone.n() > 0 && e.SentTokens <= timesLonger*s.longest {
				s.beside.count(e)
			} else {
				unlike.count(e)
			}
		}
	}
	for _, s := range strata {
		if a, b := s.alone, s.beside; b.n() > 0 {
			tables = append(tables, stats.Table{Hits: b.lost, Trials: b.n(), OtherHits: a.lost, OtherTrials: a.n()})
			alone.add(a)
			beside.add(b)
			able = able || 2*a.kept > a.n()
		}
	}
	if beside.n() == 0 {
		beside = unlike
	}
	return tables, alone, beside, able
}

// suspicious is the p-value from which on a test that finds nothing is no
// reason to be sure either.
const suspicious = 0.05

// echoes counts the answers of an arm by whether they have the value asked for.
type echoes struct {
	kept, lost int
	held       int            // of both, to prompts that begin as an earlier one did
	first, any *wire.Exchange // the first that lacks it, and the last of all
}

func (a *echoes) n() int { return a.kept + a.lost }

// count takes an answer, and reports whether it says anything.
func (a *echoes) count(e *wire.Exchange) bool {
	switch {
	case !e.Answer.Served() || e.Asked < 0 || e.Left:
		return false
	case e.Echoes(e.Asked):
		a.kept++
	case e.EchoLost():
		a.lost++
		if a.first == nil {
			a.first = e
		}
	default:
		return false
	}
	a.any = e
	if len(e.Holds) > 0 {
		a.held++
	}
	return true
}

// add takes what another has counted: the first that lacks its value is the
// first of both, the last the last.
func (a *echoes) add(o echoes) {
	a.kept += o.kept
	a.lost += o.lost
	a.held += o.held
	if o.first != nil && (a.first == nil || o.first.Seq < a.first.Seq) {
		a.first = o.first
	}
	if o.any != nil && (a.any == nil || o.any.Seq > a.any.Seq) {
		a.any = o.any
	}
}
