package oracle

import (
	"context"
	"fmt"

	"github.com/kvcanary/kvcanary/internal/stats"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// judgeContamination holds answers that were given beside others, or after
// requests that were aborted, against those of the control arm: how often does
// this model answer with the value that its prompt asks for when nothing else
// runs, and how often under load? The difference is tested exactly; a model
// that does not do as it is told shows nothing by not doing it.
func judgeContamination(_ context.Context, c Case) Judgement {
	var j Judgement
	var alone, beside echoes
	for i := range c.Exchanges {
		switch e := &c.Exchanges[i]; e.Arm {
		case wire.ArmNull:
			alone.count(e)
		case wire.ArmLoad:
			beside.count(e)
		}
	}
	if alone.n() == 0 || beside.n() == 0 {
		return j
	}
	if 2*alone.kept <= alone.n() {
		j.Unsure = fmt.Sprintf("the model answers with the value that it is asked for %d of %d times when nothing else runs: not doing so beside others says nothing", alone.kept, alone.n())
		return j
	}
	p := stats.Fisher(beside.lost, beside.n(), alone.lost, alone.n())
	if beside.lost == 0 || float64(beside.lost)*float64(alone.n()) <= float64(alone.lost)*float64(beside.n()) {
		p = 1 // no more than alone
	}
	e := beside.first
	if e == nil {
		e = beside.any
	}
	told := fmt.Sprintf("%d of %d answers that were given beside or after others lack the value that their prompt asks for, %d of %d that were given alone", beside.lost, beside.n(), alone.lost, alone.n())
	j.Tests = []Test{{P: p, Finding: Finding{
		Kind: Contamination, Protocol: e.Protocol, Exchange: e.Seq, Tenant: e.Tenant,
		Explain: told + ": what else runs changes answers",
	}}}
	if p <= suspicious {
		j.Unsure = told + ": too few to be sure"
	}
	return j
}

// suspicious is the p-value from which on a test that finds nothing is no
// reason to be sure either.
const suspicious = 0.05

// echoes counts the answers of an arm by whether they have the value asked for.
type echoes struct {
	kept, lost int
	first, any *wire.Exchange // the first that lacks it, and the last of all
}

func (a *echoes) n() int { return a.kept + a.lost }

func (a *echoes) count(e *wire.Exchange) {
	switch {
	case !e.Answer.Served() || e.Asked < 0 || e.Left:
		return
	case e.Echoes(e.Asked):
		a.kept++
	case e.EchoLost():
		a.lost++
		if a.first == nil {
			a.first = e
		}
	default:
		return
	}
	a.any = e
}
