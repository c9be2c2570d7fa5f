package matrix

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/kvcanary/kvcanary/internal/lab"
	"github.com/kvcanary/kvcanary/internal/oracle"
)

// A small version of docs/power.md: what the tables there say must stay true.
func TestPowerOnTheIncident(t *testing.T) {
	defer goleak.VerifyNone(t)
	trials := 4
	if slow {
		trials = 1
	}
	table, err := Run(context.Background(), Options{
		Trials: trials, Faults: []string{"stale_reserve:prefill_usage", "stale_reserve:decode_usage"},
		Probes: pick(t, "published script", "straddle"), Seed: 1000,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range table.Cells {
		switch {
		case c.Probe == "straddle" && (c.Found.Count != trials || c.Leak.Count < trials-1):
			t.Errorf("%s: one pair of straddle finds %d and proves %d of %d", c.Fault, c.Found.Count, c.Leak.Count, trials)
		case c.Probe == "published script" && c.Found.Count != 0:
			t.Errorf("%s: the published script finds %d of %d; docs/power.md says that it is blind", c.Fault, c.Found.Count, trials)
		}
	}
}

// Every protocol, and no finding where there is nothing to find; nor is any
// engine of this kind too much for a protocol.
func TestNoFalseAlarms(t *testing.T) {
	trials, probes := 2, Probes()
	if slow {
		trials, probes = 1, pick(t, "published script", "straddle", "churn")
	}
	table, err := Run(context.Background(), Options{Trials: trials, Faults: []string{NoFault}, Probes: probes, Seed: 2000, Lab: mini()})
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Cells) != len(probes) {
		t.Fatalf("%d cells for %d probes", len(table.Cells), len(probes))
	}
	for _, c := range table.Cells {
		if c.Found.Count != 0 || c.Unsure != 0 {
			t.Errorf("%s on a correct engine: %v, %d inconclusive of %d", c.Probe, c.Kinds, c.Unsure, trials)
		}
	}
}

var clean = flag.Int("clean", 0, "campaigns against endpoints that only look bad; 0 makes a few")

// No leak and no misroute, and at most 1 % other findings, over campaigns
// against endpoints that do nothing wrong and do not look it. -clean 2000 makes
// as many; CI two protocols for each kind of endpoint, or one where races are looked for.
func TestInnocentEndpointsAreNotAccused(t *testing.T) {
	probes := Probes()[2:]
	cells, made, findings := len(innocents)*len(probes), 0, 0
	for i, look := range innocents {
		o := Options{Trials: 1, Faults: []string{NoFault + ":" + look.mode}, Probes: []Probe{probes[(2*i)%len(probes)], probes[(2*i+1)%len(probes)]}, Seed: 3000, Lab: mini()}
		if slow {
			o.Probes = pick(t, "smoke")
		}
		if *clean > 0 {
			o.Probes, o.Trials = probes, (*clean+cells-1)/cells
		}
		table, err := Run(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range table.Cells {
			made += c.Trials
			findings += c.Found.Count
			if c.Leak.Count > 0 || c.Found.Count > 0 && *clean == 0 {
				t.Errorf("%s on %s: %v of %d trials", c.Probe, c.Fault, c.Kinds, c.Trials)
			}
			t.Logf("%s, %s: %d findings %v, %d inconclusive of %d", c.Fault, c.Probe, c.Found.Count, c.Kinds, c.Unsure, c.Trials)
		}
	}
	if made < max(*clean, len(innocents)) || findings*100 > made {
		t.Errorf("%d findings in %d campaigns", findings, made)
	}
	t.Logf("%d campaigns, %d with a finding", made, findings)
}

func TestTableDependsOnTheSeedAlone(t *testing.T) {
	run := func(workers int) *Table {
		table, err := Run(context.Background(), Options{
			Trials: 4, Faults: []string{"stale_reserve:prefill_usage"}, Probes: pick(t, "straddle"), Seed: 7, Workers: workers, Lab: mini(),
		})
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	if one, three := run(1), run(3); !reflect.DeepEqual(one, three) {
		t.Errorf("one at a time:\n%+v\nthree:\n%+v", one, three)
	}
}

// What was measured before an interruption is kept, and counted right.
func TestInterruptionKeepsWhatIsThere(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	table, err := Run(ctx, Options{
		Trials: 6, Faults: []string{NoFault}, Probes: pick(t, "published script", "straddle"), Lab: mini(), Workers: 1,
		Progress: func(p Progress) {
			if p.Trials != 12 {
				t.Errorf("%d trials in all, want 12", p.Trials)
			}
			if p.Done == 3 {
				cancel()
			}
		},
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if len(table.Cells) != 1 || table.Cells[0].Trials != 3 {
		t.Errorf("interrupted after three trials: %+v", table.Cells)
	}
}

// Each verdict of a defence, live, on the incident.
func TestDefencesLive(t *testing.T) {
	want := map[string]Verdict{
		NoDefence: Misses, "retire": Stops, "coverage": Detects, "zero_on_alloc": Blunts,
		"checksum:sender": Misses, "checksum:receiver": Detects,
	}
	o := Options{Trials: 2, Faults: []string{"stale_reserve:prefill_usage"}, Probes: Probes(), Best: true, Seed: 50, Lab: mini()}
	for d := range want {
		o.Defences = append(o.Defences, d)
	}
	table, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Cells) != len(want) {
		t.Errorf("%d cells for %d defences under the best probe", len(table.Cells), len(want))
	}
	for _, c := range table.Cells {
		if c.Verdict != want[c.Defence] {
			t.Errorf("%s: %s (%+v), want %s", c.Defence, c.Verdict, c.Kinds, want[c.Defence])
		}
	}
	var md bytes.Buffer
	if err := table.Markdown(&md); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(md.String(), "| none | misses |") || !strings.Contains(md.String(), "| coverage | detects |") {
		t.Errorf("markdown:\n%s", &md)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	if _, err := Run(context.Background(), Options{Trials: 0}); err == nil || !strings.Contains(err.Error(), "at least 1") {
		t.Errorf("no trials: %v", err)
	}
	if _, err := Run(context.Background(), Options{Trials: 1, Faults: []string{"bogus"}, Probes: pick(t, "straddle")}); err == nil || !strings.Contains(err.Error(), "bogus") {
		t.Errorf("a fault that is none: %v", err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if table, err := Run(ended, Options{Trials: 1, Faults: []string{NoFault}, Probes: pick(t, "straddle")}); !errors.Is(err, context.Canceled) || len(table.Cells) != 0 {
		t.Errorf("a cancelled run ends with %v and %+v", err, table)
	}
}

func TestModes(t *testing.T) {
	if got := Modes("stale_reserve", Faults()); len(got) < 2 || got[0] != "stale_reserve:prefill_usage" {
		t.Errorf("stale_reserve stands for %v", got)
	}
	if got := Modes(NoFault, Faults()); len(got) != 1+len(innocents) || got[0] != NoFault {
		t.Errorf("%s stands for %v", NoFault, got)
	}
	if got := Modes("stale", Faults()); got != nil {
		t.Errorf("half a name stands for %v", got)
	}
}

func TestSummary(t *testing.T) {
	c := sum(t, []*outcome{
		{kinds: []oracle.Kind{oracle.Leak, oracle.FailOpen}, requests: 3, tokens: 100},
		nil, // interrupted before this one was made
		{kinds: []oracle.Kind{oracle.FailOpen}, requests: 5, tokens: 300},
		{unsure: true, failed: 2, requests: 9, tokens: 800},
		{requests: 9, tokens: 800},
	})
	if c.Trials != 4 || c.Kinds[oracle.FailOpen] != 2 || c.Kinds[oracle.Leak] != 1 || c.Failed != 1 || c.Crossed != 1 {
		t.Errorf("%+v", c)
	}
	if c.Found.Count != 2 || c.Leak.Count != 1 || c.Unsure != 1 || c.Requests != 9 || c.PromptTokens != 800 {
		t.Errorf("%+v", c)
	}
	if u := c.Until; *u.Mean != 1000 || *u.Lower >= 1000 || *u.Upper <= 1000 {
		t.Errorf("500 tokens a trial at a rate of one half: %v", u)
	}
	if u := sum(t, []*outcome{{tokens: 500}}).Until; u.Mean != nil || u.Upper != nil || *u.Lower < 500 {
		t.Errorf("never found: %v", u)
	}
}

func TestRendering(t *testing.T) {
	table := &Table{Trials: 1, Cells: []Cell{sum(t, []*outcome{{requests: 2, tokens: 50}})}}
	var text, md bytes.Buffer
	if err := table.Text(&text); err != nil {
		t.Fatal(err)
	}
	if err := table.Markdown(&md); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "never found (more than 51)") {
		t.Errorf("text:\n%s", &text)
	}
	lines := strings.Split(strings.TrimSpace(md.String()), "\n")
	if len(lines) != 3 || strings.Count(lines[0], "|") != strings.Count(lines[2], "|") {
		t.Errorf("markdown:\n%s", &md)
	}
}

func sum(t *testing.T, outcomes []*outcome) Cell {
	t.Helper()
	c := cell{fault: "f", probe: Probe{Name: "p", Concurrency: 1}, outcomes: outcomes}
	got, ok := c.summary()
	if !ok {
		t.Fatal("nothing to sum up")
	}
	return got
}

// mini is an engine of the same proportions, a quarter of the size.
func mini() lab.Config {
	return lab.Config{Context: 4096, PrefillPool: 2656, DecodePool: 5120, PageSize: 16}
}

func pick(t *testing.T, names ...string) []Probe {
	t.Helper()
	out := slices.DeleteFunc(Probes(), func(p Probe) bool { return !slices.Contains(names, p.Name) })
	if len(out) != len(names) {
		t.Fatalf("not all of %v are probes", names)
	}
	return out
}

// Faults that show only in answers beside each other are tried on an engine whose
// answers take their time, where a protocol asks for several at once.
func TestAnswersTakeTheirTimeWhereAFaultNeedsIt(t *testing.T) {
	for _, fault := range abreastOnly {
		if !slices.Contains(Faults(), fault) {
			t.Errorf("%s is no fault", fault)
		}
	}
	for _, c := range []struct {
		fault, probe string
		want         int
	}{
		{"dirty_slot:recurrent", "interleave", decodeRate}, {"row_skew", "churn", decodeRate}, {"stream_desync:parser", "interleave", decodeRate},
		{"dirty_slot:recurrent", "replay", 0}, {"dirty_slot:lru", "interleave", 0}, {NoFault, "churn", 0},
	} {
		i := slices.IndexFunc(Probes(), func(p Probe) bool { return p.Name == c.probe })
		if got := (Options{}).config(&cell{fault: c.fault, probe: Probes()[i]}).DecodeRate; got != c.want {
			t.Errorf("%s under %s: %d steps a second, want %d", c.fault, c.probe, got, c.want)
		}
	}
}
