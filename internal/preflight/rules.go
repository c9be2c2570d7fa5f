package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvcanary/kvcanary/internal/engine"
	"github.com/kvcanary/kvcanary/internal/prose"
)

// Rule is one row of [Rules].
type Rule struct {
	ID       string
	Severity Severity
	Why      string // one sentence
	Links    []string
	AISVS    []string
	// Engines are those that it is about, nil for all. One that is not known may
	// be any of them.
	Engines []string
	// Routers says that it is about routers too, whose workers speak otherwise.
	Routers bool
	// One of the two: each is about one worker, all about the deployment.
	each func(*Worker, *Deployment) outcome
	all  func(*Deployment) outcome
}

// outcome is what one application of a rule has come to.
type outcome struct {
	state    State
	compared string
	fix      string
}

// Rules are applied in this order. One file a subject, one line a rule.
var Rules = []Rule{
	reachable,
	poolHoldsContext,
	limitsAgree,
	decodePoolWithin,
	noSilentTruncation,
	probed,
	noContextShift,
	checksumOn,
	loadFailureFails,
	prefixCacheApart,
	prefixHash,
	randomIDs,
	adminClosed,
	devModeOff,
	slotsApart,
	poolNotOverridden,
	pagesAgree,
	routerSeenThrough,
	declaredRuns,
	offloadTiers,
}

func (r *Rule) apply(d *Deployment) []Result {
	if r.all != nil {
		return []Result{r.result("", r.all(d))}
	}
	var out []Result
	for i := range d.Workers {
		if d.Workers[i].spokenFor() && !r.Routers {
			continue
		}
		o := notApplicable("it is about " + strings.Join(r.Engines, " and ") + " only")
		if r.about(d.Workers[i].Facts.Engine) {
			o = r.each(&d.Workers[i], d)
		}
		out = append(out, r.result(d.Workers[i].Name, o))
	}
	return out
}

// about reports whether the rule is about an engine.
func (r *Rule) about(engine string) bool {
	return r.Engines == nil || engine == "" || slices.Contains(r.Engines, engine)
}

func (r *Rule) result(worker string, o outcome) Result {
	if o.state == Pass || o.state == NotApplicable {
		o.fix = ""
	}
	return Result{
		Rule: r.ID, Severity: r.Severity, Worker: worker, State: o.state, Compared: o.compared,
		Why: r.Why, Fix: o.fix, Links: r.Links, AISVS: r.AISVS,
	}
}

func pass(format string, a ...any) outcome { return outcome{Pass, fmt.Sprintf(format, a...), ""} }

func fail(fix, format string, a ...any) outcome {
	return outcome{Fail, fmt.Sprintf(format, a...), fix}
}

func unknown(fix, format string, a ...any) outcome {
	return outcome{Unknown, fmt.Sprintf(format, a...), fix}
}

func notApplicable(why string) outcome { return outcome{NotApplicable, why, ""} }

// said is a number with where it comes from.
func said(what string, n engine.Number) string {
	if n.Value == 0 {
		return what + " is not known"
	}
	if n.AtMost {
		what += " of at most"
	}
	return fmt.Sprintf("%s %s (%s)", what, prose.Thousands(n.Value), n.Source)
}

// wantFlag is the outcome of a switch that has to be on, or off.
func wantFlag(f engine.Flag, want bool, what, fix string) outcome {
	is := map[bool]string{true: "on", false: "off"}
	switch {
	case !f.Known:
		return unknown(fix, "%s: not known", what)
	case f.On != want:
		return fail(fix, "%s is %s (%s)", what, is[f.On], f.Source)
	}
	return pass("%s is %s (%s)", what, is[f.On], f.Source)
}
