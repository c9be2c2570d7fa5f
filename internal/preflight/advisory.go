package preflight

import (
	"bytes"
	_ "embed"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kvcanary/kvcanary/internal/engine"
	"github.com/kvcanary/kvcanary/internal/prose"
)

// Advisory is a public report of an engine that leaks, or may.
type Advisory struct {
	ID       string   `yaml:"id"`
	Engine   string   `yaml:"engine"`
	Class    string   `yaml:"class"` // F1 to F12
	Severity Severity `yaml:"severity"`
	Summary  string   `yaml:"summary"` // one sentence: what happens
	Fix      string   `yaml:"fix"`
	// From and Before are the first release that has it and the first that has
	// not; empty for not known, which is from the first and to the last.
	From   string `yaml:"from"`
	Before string `yaml:"before"`
	// Fixed says that a fix is merged, and that the first release with it is not known.
	Fixed bool `yaml:"fixed"`
	// When lists facts that all have to hold for it to happen.
	When []Condition `yaml:"when"`
	// Unless lists facts of which one is enough to keep it from happening.
	Unless []Condition `yaml:"unless"`
	// Probed says that kvcanary's probing shows it where it happens.
	Probed bool     `yaml:"probed"`
	Links  []string `yaml:"links"`
}

// Condition is about one fact, by its name in JSON.
type Condition struct {
	Fact string   `yaml:"fact"`
	On   *bool    `yaml:"on"`   // for a switch
	In   []string `yaml:"in"`   // for a word: one of these
	Has  string   `yaml:"has"`  // for a list of words: this among them
	Over int      `yaml:"over"` // for a number: larger than this
}

//go:embed advisories.yaml
var advisories []byte

// Advisories are those that this build knows.
func Advisories() []Advisory {
	all, err := parseAdvisories(advisories)
	if err != nil {
		panic("kvcanary: internal error: " + err.Error())
	}
	return all
}

func parseAdvisories(p []byte) ([]Advisory, error) {
	var file struct {
		Advisories []Advisory `yaml:"advisories"`
	}
	d := yaml.NewDecoder(bytes.NewReader(p))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("advisories: %w", err)
	}
	return file.Advisories, nil
}

// advise applies advisories to the workers of their engine. Where the engine
// is not known, any of them may apply.
func advise(d *Deployment, all []Advisory) []Result {
	var out []Result
	for i := range d.Workers {
		w := &d.Workers[i]
		if w.spokenFor() {
			continue // its workers are there
		}
		switch w.Facts.Engine {
		case "", "generic":
			out = append(out, unadvised(w, d))
			continue
		}
		for j := range all {
			if a := &all[j]; a.Engine == w.Facts.Engine {
				out = append(out, a.result(w, a.judge(w, d)))
			}
		}
	}
	return out
}

// unadvised is the result for a worker whose engine nobody knows.
func unadvised(w *Worker, d *Deployment) Result {
	rule := Rule{ID: "known_reports", Severity: Error, Why: "engines have public reports of leaks, by version and setting"}
	if d.Probe != nil && d.Probe.Findings == 0 && d.Probe.Missing == "" {
		return rule.result(w.Name, pass("the engine is not known; probing found nothing"))
	}
	return rule.result(w.Name, unknown("name it with --engine, or let it ask with --probe", "the engine is not known, and so neither is what was reported of it"))
}

func (a *Advisory) result(w *Worker, o outcome) Result {
	r := Rule{ID: "advisory/" + a.ID, Severity: a.Severity, Why: a.Summary, Links: a.Links}
	if a.Severity == Error {
		r.AISVS = tenancy
	}
	out := r.result(w.Name, o)
	out.Class = a.Class
	return out
}

func (a *Advisory) judge(w *Worker, d *Deployment) outcome {
	affected, version := a.affects(w.Facts.Version.Value)
	happens, facts := allHold(a.When, &w.Facts)
	prevented, by := oneHolds(a.Unless, &w.Facts)
	compared := strings.Join(slices.DeleteFunc([]string{version, facts, by}, func(s string) bool { return s == "" }), "; ")
	switch {
	case affected == no:
		return notApplicable(version)
	case happens == no:
		return notApplicable(facts)
	case prevented == yes:
		return pass("%s", by)
	// Behaviour counts more than a version.
	case a.Probed && d.Probe != nil && d.Probe.Findings == 0 && d.Probe.Missing == "":
		return pass("%s; probing found nothing", compared)
	case affected == yes && happens == yes && prevented == no:
		return fail(a.Fix, "%s", compared)
	}
	fix := a.Fix
	if a.Probed {
		fix += "; or let it ask with --probe"
	}
	return unknown(fix, "%s", compared)
}

// maybe is the answer to a question about facts that may not be known.
type maybe int

const (
	dunno maybe = iota
	yes
	no
)

// affects reports whether a version is one of those that have it.
func (a *Advisory) affects(v string) (maybe, string) {
	span := "all releases"
	switch {
	case a.From != "" && a.Before != "":
		span = fmt.Sprintf("releases from %s to before %s", a.From, a.Before)
	case a.From != "":
		span = "releases from " + a.From
	case a.Before != "":
		span = "releases before " + a.Before
	}
	if a.From == "" && a.Before == "" && !a.Fixed {
		return yes, span + " are affected"
	}
	if a.From == "" && a.Before == "" {
		return dunno, "a fix is merged; whether this release has it is not known"
	}
	if v == "" {
		return dunno, span + " are affected; the version is not known"
	}
	r, ok := parseRelease(v)
	if !ok {
		return dunno, fmt.Sprintf("%s are affected; %s is a build whose contents its version does not tell", span, v)
	}
	from, hasFrom := parseRelease(a.From)
	before, hasBefore := parseRelease(a.Before)
	if hasFrom && r.before(from) || hasBefore && !r.before(before) {
		return no, fmt.Sprintf("%s are affected; this is %s", span, v)
	}
	if a.Fixed {
		return dunno, fmt.Sprintf("%s are affected until the fix, which is merged; this is %s", span, v)
	}
	return yes, fmt.Sprintf("%s are affected; this is %s", span, v)
}

// allHold is yes if every condition holds, no if one does not.
func allHold(conditions []Condition, f *engine.Facts) (maybe, string) {
	out := yes
	var open []string
	for _, c := range conditions {
		is, words := c.holds(f)
		if is == no {
			return no, words
		}
		if is == dunno {
			out = dunno
		}
		open = append(open, words)
	}
	return out, strings.Join(open, "; ")
}

// oneHolds is yes if one condition holds.
func oneHolds(conditions []Condition, f *engine.Facts) (maybe, string) {
	out := no
	for _, c := range conditions {
		is, words := c.holds(f)
		if is == yes {
			return yes, words
		}
		if is == dunno {
			out = dunno
		}
	}
	return out, ""
}

// holds looks at one fact.
func (c *Condition) holds(f *engine.Facts) (maybe, string) {
	field, ok := factOf(f, c.Fact)
	if !ok {
		panic("kvcanary: internal error: an advisory asks for a fact " + c.Fact)
	}
	answer := func(is bool) maybe {
		if is {
			return yes
		}
		return no
	}
	switch v := field.(type) {
	case engine.Flag:
		if !v.Known {
			return dunno, c.Fact + " is not known"
		}
		return answer(v.On == (c.On == nil || *c.On)), fmt.Sprintf("%s is %s (%s)", c.Fact, map[bool]string{true: "on", false: "off"}[v.On], v.Source)
	case engine.Number:
		if v.Value == 0 {
			return dunno, c.Fact + " is not known"
		}
		return answer(v.Value > c.Over), fmt.Sprintf("%s is %s (%s)", c.Fact, prose.Thousands(v.Value), v.Source)
	case engine.Text:
		if v.Value == "" {
			return dunno, c.Fact + " is not known"
		}
		is := slices.Contains(c.In, v.Value) || c.Has != "" && slices.Contains(strings.Split(v.Value, ","), c.Has)
		return answer(is), fmt.Sprintf("%s is %s (%s)", c.Fact, v.Value, v.Source)
	}
	panic("kvcanary: internal error: an advisory asks for " + c.Fact + ", which is no single fact")
}

// factOf is a fact by its name in JSON. pool_short follows from two of them:
// the window lets in what the pool does not hold.
func factOf(f *engine.Facts, name string) (value any, ok bool) {
	if name == "pool_short" {
		pool, context := f.Pool, f.Context
		return engine.Flag{
			Known: pool.Value > 0 && context.Value > 0 && (!pool.AtMost || context.Value > pool.Value), On: context.Value > pool.Value,
			Source: said("pool", pool) + " against " + said("context", context), Basis: engine.Inferred,
		}, true
	}
	v := reflect.ValueOf(*f)
	for i := range v.NumField() {
		tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if tag == name {
			return v.Field(i).Interface(), true
		}
	}
	return nil, false
}
