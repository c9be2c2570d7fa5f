// Package preflight decides from facts whether an engine may be given traffic.
//
// [Check] is pure: it applies [Rules] to what is known of a deployment. A fact
// that is missing never makes a verdict better: a rule that it is needed for is
// unknown, and an unknown error rule is no pass.
package preflight

import (
	"fmt"

	"github.com/kvcanary/kvcanary/internal/engine"
	"github.com/kvcanary/kvcanary/internal/prose"
)

// Schema names the JSON form of a [Report].
const Schema = "kvcanary.preflight/v1"

// Severity says what a failed rule means for traffic.
type Severity string

// The severities. Errors decide the exit code; warnings only where that was
// asked for; notes never.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// State is what a rule has come to.
type State string

// The states of a rule.
const (
	Pass          State = "pass"
	Fail          State = "fail"
	Unknown       State = "unknown"
	NotApplicable State = "not_applicable"
)

// Verdict is what all rules have come to, in the words of the other commands.
type Verdict string

// The verdicts.
const (
	Clean        Verdict = "clean"
	Violation    Verdict = "violation"
	Inconclusive Verdict = "inconclusive"
)

// Worker is one engine process, or one that a manifest describes.
type Worker struct {
	Name    string       `json:"name"` // its URL, or where the manifest describes it
	Facts   engine.Facts `json:"facts"`
	Trouble string       `json:"trouble,omitempty"` // why it could not be asked
	Via     string       `json:"via,omitempty"`     // the router that speaks for it; empty if it spoke itself
}

// spokenFor reports whether w is a router whose workers are there beside it.
func (w *Worker) spokenFor() bool { return w.Facts.Router.Is(true) && len(w.Facts.Behind) > 0 }

// role is "prefill", "decode", "both", or "" if it is not known.
func (w *Worker) role() string { return w.Facts.Role.Value }

// Probe is what prompts have shown of the endpoint.
type Probe struct {
	At          string `json:"at,omitempty"`           // worker that was asked, by name
	AcceptedMax int    `json:"accepted_max,omitempty"` // longest prompt that was served, tokens
	RejectedMin int    `json:"rejected_min,omitempty"` // shortest prompt that was refused for its length, tokens
	Pool        int    `json:"pool,omitempty"`         // what the refusals say of the pool, tokens; 0 for nothing
	Findings    int    `json:"findings"`               // leaks and violations
	Finding     string `json:"finding,omitempty"`      // the first of them, for people
	Missing     string `json:"missing,omitempty"`      // what was not reached, empty if all was
}

// speaksFor reports whether what was probed is this worker: of several, one
// refused prompt shows nothing of the others.
func (p *Probe) speaksFor(w *Worker, d *Deployment) bool {
	return p != nil && (len(d.Workers) == 1 || p.At != "" && p.At == w.Name)
}

// Deployment is all that is known of what shall be given traffic.
type Deployment struct {
	Workers []Worker
	// Declared are the workers that manifests and logs describe, where Workers
	// are those that run. With no Workers they are judged themselves.
	Declared []Worker
	// Context and Pool are what the operator says, tokens; 0 for nothing.
	Context, Pool int
	// Alone says that all requests are of one customer, Salted that a gateway
	// keeps customers apart in the prefix cache.
	Alone, Salted bool
	// Strict makes failed warnings and unknown errors fail, and unknown warnings
	// no pass.
	Strict bool
	Probe  *Probe // nil if nothing was probed
}

// Result is one rule applied to one worker, or to all of them.
type Result struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	Worker   string   `json:"worker,omitempty"` // empty for a rule about all of them
	State    State    `json:"state"`
	Compared string   `json:"compared"`        // what was compared with what, and where each stands
	Why      string   `json:"why"`             // why it matters, one sentence
	Fix      string   `json:"fix,omitempty"`   // what to do, with the engine's own flag; for what has not passed
	Class    string   `json:"class,omitempty"` // F1 to F12, for a known report
	Links    []string `json:"links,omitempty"`
	AISVS    []string `json:"aisvs,omitempty"` // requirements of OWASP AISVS 1.0
}

// Report is what a preflight has come to. JSON names are a contract.
type Report struct {
	Schema  string        `json:"schema"`
	Verdict Verdict       `json:"verdict"`
	Summary string        `json:"summary"` // one line
	Workers []Worker      `json:"workers"`
	Probe   *Probe        `json:"probe,omitempty"`
	Results []Result      `json:"results"`
	Counts  map[State]int `json:"counts"`
}

// Check applies all rules and all advisories.
func Check(d Deployment) Report {
	d = d.complete()
	r := Report{Schema: Schema, Workers: d.Workers, Probe: d.Probe, Results: []Result{}, Counts: map[State]int{}}
	for _, rule := range Rules {
		r.Results = append(r.Results, rule.apply(&d)...)
	}
	r.Results = append(r.Results, advise(&d, Advisories())...)
	for _, x := range r.Results {
		r.Counts[x.State]++
	}
	r.Verdict = r.verdict(d.Strict)
	r.Summary = r.summary(d.Strict)
	return r
}

// ExitCode is 0, 1 or 3, as the verdict has it.
func (r *Report) ExitCode() int {
	switch r.Verdict {
	case Violation:
		return 1
	case Inconclusive:
		return 3
	}
	return 0
}

// verdict is clean only if something was checked and nothing that counts has
// failed or is unknown.
func (r *Report) verdict(strict bool) Verdict {
	v := Inconclusive
	for _, x := range r.Results {
		if x.Severity == Error && x.State == Pass {
			v = Clean
		}
	}
	for _, x := range r.Results {
		counts := x.Severity == Error || strict && x.Severity == Warning
		switch {
		case counts && x.State == Fail, strict && x.Severity == Error && x.State == Unknown:
			return Violation
		case counts && x.State == Unknown:
			v = Inconclusive
		}
	}
	return v
}

// summary is one line that says why. What decides comes first.
func (r *Report) summary(strict bool) string {
	failed, open := map[Severity]int{}, map[Severity]int{}
	first := ""
	for _, x := range r.Results {
		switch x.State {
		case Fail:
			if failed[x.Severity]++; first == "" && x.Severity == Error {
				first = ": " + x.Compared
			}
		case Unknown:
			open[x.Severity]++
		}
	}
	warnings := prose.Plural(failed[Warning], "warning")
	switch r.Verdict {
	case Violation:
		switch {
		case failed[Error] > 0:
			return fmt.Sprintf("do not deploy: %s failed%s", prose.Plural(failed[Error], "error rule"), first)
		case open[Error] > 0:
			return fmt.Sprintf("do not deploy: %s could not be checked (--strict)", prose.Plural(open[Error], "error rule"))
		}
		return fmt.Sprintf("do not deploy: no error, %s (--strict)", warnings)
	case Inconclusive:
		switch {
		case open[Error] > 0:
			return fmt.Sprintf("not known to be safe: %s could not be checked", prose.Plural(open[Error], "error rule"))
		case strict && open[Warning] > 0:
			return fmt.Sprintf("not known to be safe: %s could not be checked (--strict)", prose.Plural(open[Warning], "warning"))
		}
		return "not known to be safe: nothing could be checked"
	}
	if failed[Warning] > 0 {
		return fmt.Sprintf("may be deployed: no error, %s", warnings)
	}
	return "may be deployed: no error, no warning"
}
