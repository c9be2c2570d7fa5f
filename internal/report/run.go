package report

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/kvcanary/kvcanary/internal/campaign"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/prose"
)

// Run is a run directory as reports see it: never what is in memory.
type Run struct {
	*campaign.Loaded
	Result *campaign.Result // never nil: a run that was killed has one that says so
	// Place is where findings are annotated: the line of a file that names the
	// target. Empty points at the plan.
	Place Place
	// ShowForeign shows what stands around leaked words, where a form can.
	ShowForeign bool
}

// Place is a line of a file.
type Place struct {
	File string
	Line int // from 1
}

// Open reads a run directory.
func Open(dir string) (*Run, error) {
	l, err := campaign.Load(dir)
	if err != nil {
		return nil, err
	}
	r := &Run{Loaded: l, Result: l.Result, Place: Place{"plan.json", 1}}
	if r.Result == nil {
		r.Result = &campaign.Result{
			Schema: campaign.Schema, Verdict: campaign.Inconclusive, Target: l.Plan.Target, Seed: l.Plan.Seed, Run: l.Plan.Run,
			KeyID: l.Plan.KeyID, Started: l.Plan.Started, Version: l.Plan.Version,
			Reason: fmt.Sprintf("the run ended before its result was written; %s are kept: go on with it, or run it again", prose.Plural(len(l.Exchanges), "exchange")),
		}
	}
	r.clip()
	return r, nil
}

// Format is one row of [Formats].
type Format struct {
	Name  string
	Write func(io.Writer, *Run) error
	// Foreign says that the form can show what stands around leaked words. Forms
	// that are handed on by machines, or to others, cannot.
	Foreign bool
}

// Formats are the forms of a report. One file a form, one line here.
var Formats = []Format{
	{"text", func(w io.Writer, r *Run) error { return writeText(w, r.Result, r.aroundOf) }, true},
	{"html", HTML, true},
	{"markdown", Markdown, true},
	{"junit", JUnit, false},
	{"sarif", SARIF, false},
	{"github", GitHub, false},
	{"disclosure", Disclosure, false},
}

// FormatNames are those of all formats.
func FormatNames() []string {
	var out []string
	for _, f := range Formats {
		out = append(out, f.Name)
	}
	return out
}

// FindFormat returns the format of a name.
func FindFormat(name string) (Format, bool) {
	i := slices.IndexFunc(Formats, func(f Format) bool { return f.Name == name })
	if i < 0 {
		return Format{}, false
	}
	return Formats[i], true
}

// sameAs tells findings of two runs apart by what they are about and not by
// where in the run they stood.
func sameAs(f oracle.Finding) string {
	return fmt.Sprintf("%s/%s/%s/%s/%s", f.Kind, f.Protocol, f.Tenant, f.FromTenant, f.Channel)
}

// Change is what became of one kind of finding between two runs.
type Change struct {
	What string `json:"what"`
	Now  int    `json:"now"`
	Was  int    `json:"was"`
}

// Compare counts findings of two runs by what they are about, new ones first.
func Compare(now, was *Run) []Change {
	count := map[string]*Change{}
	at := func(f oracle.Finding) *Change {
		key := sameAs(f)
		if count[key] == nil {
			count[key] = &Change{What: key}
		}
		return count[key]
	}
	for _, f := range now.Result.Findings {
		at(f).Now++
	}
	for _, f := range was.Result.Findings {
		at(f).Was++
	}
	var out []Change
	for _, key := range slices.Sorted(maps.Keys(count)) {
		out = append(out, *count[key])
	}
	slices.SortStableFunc(out, func(a, b Change) int { return a.order() - b.order() })
	return out
}

// State is "new", "gone" or "same".
func (c Change) State() string { return [...]string{"new", "same", "gone"}[c.order()] }

func (c Change) order() int {
	switch {
	case c.Was == 0:
		return 0
	case c.Now == 0:
		return 2
	}
	return 1
}
