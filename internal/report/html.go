package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/kvcanary/kvcanary/internal/campaign"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/prose"
	"github.com/kvcanary/kvcanary/internal/wire"
)

//go:embed run.html
var runPage string

// Bounds of the page, which is one file of a few hundred kilobytes however long
// the run was. What is left out is said.
const (
	maxBars     = 400 // exchanges in the timeline
	maxEvidence = 50  // findings with their text
)

type page struct {
	*Run
	Title    string
	Evidence []pageEvidence
	More     int // findings that are not shown
	Bars     []bar
	Sampled  int // exchanges that the bars were taken from, 0 if all are there
	Width    int
	Strips   []strip
	Usage    []usageRow
	Command  string
	Duration string
}

type pageEvidence struct {
	oracle.Finding
	Quote   string
	Around  *around
	Details []string // where it stood, whose it is, what the target calls the request
}

type bar struct {
	X, Y, W float64
	Class   string
	Title   string
}

type usageRow struct {
	Seq, Sent, Reported int
	Label               string
	Off                 bool // the two are apart by more than estimates are
}

// HTML writes a run as one page that needs nothing else.
func HTML(w io.Writer, run *Run) error {
	t, err := template.New("run").Funcs(template.FuncMap{
		"thousands": prose.Thousands, "bound": Bound, "printable": prose.Printable, "plural": prose.Plural,
		"percent": func(p float64) string { return fmt.Sprintf("%.0f %%", 100*p) },
		"utc":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	}).Parse(style + runPage)
	if err != nil {
		panic("kvcanary: internal error: " + err.Error())
	}
	return t.Execute(w, newPage(run))
}

func newPage(run *Run) *page {
	r := run.Result
	p := &page{Run: run, Title: headline(r), Width: 960, Command: repeat(r), Duration: r.Ended.Sub(r.Started).Round(time.Second).String()}
	if r.Ended.IsZero() {
		p.Duration = "not ended"
	}
	for i, f := range r.Findings {
		if i == maxEvidence {
			p.More = len(r.Findings) - i
			break
		}
		p.Evidence = append(p.Evidence, evidenceOf(run, f))
	}
	p.leakMap()
	p.timeline()
	p.usage()
	return p
}

func headline(r *campaign.Result) string {
	switch r.Verdict {
	case campaign.Leak:
		return "Text planted in one exchange came out in another"
	case campaign.Violation:
		return "No foreign text was seen, but the target does not do what it has to"
	case campaign.Clean:
		return "Nothing was found in this sample"
	}
	return "Nothing is proven either way"
}

func evidenceOf(run *Run, f oracle.Finding) pageEvidence {
	out := pageEvidence{Finding: f, Quote: quote(f.Evidence), Around: run.aroundOf(f)}
	say := func(format string, a ...any) {
		out.Details = append(out.Details, prose.Printable(fmt.Sprintf(format, a...)))
	}
	if f.Channel != "" {
		say("in %s", f.Channel)
	}
	if f.FromExchange != nil {
		say("words of exchange %d, tenant %s, planted at word %d of its canary", *f.FromExchange, f.FromTenant, f.Evidence.Offset)
		if f.Evidence.PageHint != "" {
			say("about page %s of its prompt", f.Evidence.PageHint)
		}
	}
	for i := range run.Exchanges {
		if e := &run.Exchanges[i]; e.Seq == f.Exchange && e.Tail != "" {
			say("the prompt's tail is %s", e.Tail)
		}
	}
	if id := requestID(run, f.Exchange); id != "" {
		say("request id %s", id)
	}
	if f.PValue != nil {
		say("p = %.2g", *f.PValue)
	}
	return out
}

// timeline lays exchanges out in lanes, so that those that overlap stand above
// each other.
func (p *page) timeline() {
	all := p.Exchanges
	step := 1
	if len(all) > maxBars {
		step = (len(all) + maxBars - 1) / maxBars
		p.Sampled = len(all)
	}
	var first, last time.Time
	var shown []*wire.Exchange
	for i := 0; i < len(all); i += step {
		e := &all[i]
		if e.Answer == nil || e.Answer.Start.IsZero() || e.Answer.End.Before(e.Answer.Start) {
			continue
		}
		if first.IsZero() || e.Answer.Start.Before(first) {
			first = e.Answer.Start
		}
		if e.Answer.End.After(last) {
			last = e.Answer.End
		}
		shown = append(shown, e)
	}
	span := last.Sub(first).Seconds()
	if span <= 0 {
		return
	}
	leaked := map[int]bool{}
	for _, f := range p.Result.Findings {
		leaked[f.Exchange] = true
	}
	var lanes []float64 // where the last bar of each lane ends
	for _, e := range shown {
		x := e.Answer.Start.Sub(first).Seconds() / span * float64(p.Width)
		width := max(e.Answer.End.Sub(e.Answer.Start).Seconds()/span*float64(p.Width), 1.5)
		lane := 0
		for lane < len(lanes) && lanes[lane] > x+0.01 {
			lane++
		}
		if lane == len(lanes) {
			lanes = append(lanes, 0)
		}
		lanes[lane] = x + width
		p.Bars = append(p.Bars, bar{x, float64(lane * 14), width, barClass(e, leaked[e.Seq]),
			prose.Printable(fmt.Sprintf("exchange %d: %s %s, tenant %s, %d tokens, HTTP %d", e.Seq, e.Protocol, e.Label, e.Tenant, e.SentTokens, e.Answer.Status))})
	}
}

// Height is that of the timeline.
func (p *page) Height() float64 {
	h := 14.0
	for _, b := range p.Bars {
		h = max(h, b.Y+14)
	}
	return h
}

func barClass(e *wire.Exchange, found bool) string {
	switch {
	case found:
		return "found"
	case e.Answer.Served():
		return "served"
	case e.Answer.Refusal != nil:
		return "refused"
	}
	return "failed"
}

// usage compares what was sent with what the target says it has read, where
// both are counts: the longest prompts, and all that are apart.
func (p *page) usage() {
	for i := range p.Exchanges {
		e := &p.Exchanges[i]
		if e.Answer == nil || e.Answer.Usage == nil || !e.Answer.Served() {
			continue
		}
		row := usageRow{e.Seq, e.SentTokens, e.Answer.Usage.Prompt, prose.Printable(e.Protocol + " " + e.Label), false}
		row.Off = row.Reported*10 < row.Sent*9
		if row.Off && len(p.Usage) < 20 {
			p.Usage = append(p.Usage, row)
		}
	}
}

func repeat(r *campaign.Result) string {
	var names []string
	for _, p := range r.Protocols {
		names = append(names, p.Name)
	}
	words := append([]string{"kvcanary", "run"}, names...)
	words = append(words, "--base-url", r.Target.BaseURL, "--model", r.Target.Model, "--dialect", r.Target.Dialect, "--seed", fmt.Sprint(r.Seed))
	for i := range words {
		words[i] = shellWord(words[i])
	}
	return strings.Join(words, " ")
}

// shellWord is a word as a shell takes it for one: whoever repeats a run may
// have the directory from a stranger.
func shellWord(s string) string {
	s = prose.Printable(s)
	bare := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,", r))
	}
	if s != "" && !strings.ContainsFunc(s, bare) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
