package matrix

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/stats"
)

const (
	committed = "../../docs/power.json"
	written   = "../../docs/power.md"
)

func measured(t *testing.T) *Table {
	t.Helper()
	b, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	table, err := Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// The tables of docs/power.md are those of what was measured.
func TestTheDocumentIsWhatWasMeasured(t *testing.T) {
	doc, err := os.ReadFile(written)
	if err != nil {
		t.Fatal(err)
	}
	again, err := measured(t).Document(doc)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(doc, again) {
		t.Error("docs/power.md is not as kvcanary matrix --from docs/power.json --document docs/power.md writes it")
	}
}

// Every fault of the lab has been measured, and what no protocol finds often
// enough has a reason in the document.
func TestEveryFaultIsMeasured(t *testing.T) {
	table := measured(t)
	for _, fault := range Faults() {
		c := table.best(fault)
		switch {
		case c == nil:
			t.Errorf("%s was not measured", fault)
		case !isInnocent(fault) && c.Found.Rate < wanted && limitOf(fault) == "":
			t.Errorf("%s is found in %v %% at best, and nothing says why it is not more", fault, c.Found)
		case isInnocent(fault) && c.Leak.Count > 0:
			t.Errorf("%s: %d leaks where there are none", fault, c.Leak.Count)
		}
	}
}

// Trials made now are a likely sample of what the document says: of an exact
// cell and of one that is not.
func TestTheDocumentIsStillTrue(t *testing.T) {
	table := measured(t)
	o := Options{Trials: 3, Seed: 90_000}
	for _, c := range []struct{ fault, probe string }{
		{"stale_reserve:prefill_usage", "straddle"}, {"auto_truncate", "boundary"}, {NoFault, "churn"}, {"stale_source:transfer", "churn"},
	} {
		o.Faults, o.Probes = []string{c.fault}, pick(t, c.probe)
		if slow {
			o.Trials = 1
		}
		t.Run(c.fault, func(t *testing.T) {
			t.Parallel()
			now, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			was := table.only(func(o *Cell) bool { return o.Fault == c.fault && o.Probe == c.probe && o.Defence == "" })
			if len(was.Cells) != 1 {
				t.Fatalf("%s under %s is in the document %d times", c.fault, c.probe, len(was.Cells))
			}
			if p := unlikely(now.Cells[0].Found, o.Trials, was.Cells[0].Found); p < 1e-4 {
				t.Errorf("%s under %s: %d of %d found, the document says %v %%", c.fault, c.probe, now.Cells[0].Found.Count, o.Trials, was.Cells[0].Found)
			}
		})
	}
}

// unlikely is the chance of so few or so many in n trials, at whatever rate of
// the interval makes it likeliest.
func unlikely(now Rate, n int, was Rate) float64 {
	if now.Rate < was.Rate {
		return stats.BinomialTail(n-now.Count, n, 1-was.Lower)
	}
	return stats.BinomialTail(now.Count, n, was.Upper)
}

func TestDocumentKeepsTheRest(t *testing.T) {
	table := &Table{Cells: []Cell{
		cellOf(t, "stale_source:transfer", "churn", 10, 9), cellOf(t, "stale_source:transfer", "smoke", 10, 0),
		cellOf(t, NoFault, "smoke", 10, 0), cellOf(t, NoFault+":drops", "smoke", 10, 0),
	}}
	var doc strings.Builder
	doc.WriteString("before\n")
	for _, name := range []string{"power", "best", "short", "clean", "defences"} {
		doc.WriteString("<!-- matrix " + name + " -->\nold\n<!-- end -->\nbehind " + name + "\n")
	}
	got, err := table.Document([]byte(doc.String()))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"before\n", "behind defences\n", "| stale_source:transfer | 0/10 | 90 %, 9/10 |", "**stale_source:transfer**: churn finds 90.0",
		"| **all** | 20 | 0 (below 16.8 %) | 0 (below 16.8 %) | 0 |", "Not measured.",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(string(got), "old") {
		t.Errorf("something old is left:\n%s", got)
	}
	if again, err := table.Document(got); err != nil || !bytes.Equal(again, got) {
		t.Errorf("a second time it is different: %v", err)
	}
	if _, err := table.Document([]byte("<!-- matrix power -->\n<!-- matrix best -->\n<!-- end -->")); err == nil {
		t.Error("a mark that is not closed is taken")
	}
}

func TestMergeTakesTheCellWithMoreTrials(t *testing.T) {
	a := &Table{Cells: []Cell{cellOf(t, "id_reuse:client", "ids", 20, 3), cellOf(t, NoFault, "smoke", 5, 0)}}
	a.Merge(&Table{Cells: []Cell{cellOf(t, "id_reuse:client", "ids", 10, 9), cellOf(t, NoFault, "smoke", 7, 1), cellOf(t, NoFault, "published script", 7, 0)}})
	want := []struct {
		probe  string
		trials int
	}{{"published script", 7}, {"smoke", 7}, {"ids", 20}}
	for i, c := range a.Cells {
		if len(a.Cells) != len(want) || c.Probe != want[i].probe || c.Trials != want[i].trials {
			t.Fatalf("merged into %+v", a.Cells)
		}
	}
}

func TestTablesThatCannotBeAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"{":                               "matrix: ",
		`{"schema":"kvcanary.matrix/v2"}`: "measure it again",
		`{"schema":"kvcanary.matrix/v1","cells":[{"fault":"a","probe":"p","trials":2,"found":{"count":3}}]}`: "3 findings",
	} {
		if _, err := Read([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// cellOf is a cell with so many of its trials found.
func cellOf(t *testing.T, fault, probe string, trials, found int) Cell {
	t.Helper()
	outcomes := make([]*outcome, trials)
	for i := range outcomes {
		outcomes[i] = &outcome{}
		if i < found {
			outcomes[i].kinds = []oracle.Kind{oracle.Contamination}
		}
	}
	c := sum(t, outcomes)
	c.Fault, c.Probe = fault, probe
	return c
}

// What the model says of the handoff's own faults is the worst that can happen;
// the live engine does no worse. Where the fault is nearly always found, the
// live engine does as badly.
func TestDefencesLiveAgreeWithTheModel(t *testing.T) {
	model, live := modelTable(t), measured(t)
	compared := 0
	for _, c := range live.Cells {
		want := model[c.Defence+"/"+strings.Split(c.Fault, ":")[0]]
		beside := c.Fault == "stale_source:tier" || c.Fault == "id_reuse:metadata_slot" // not in the handoff, which alone is explored
		if c.Defence == "" || want == "" || beside {
			continue
		}
		compared++
		if rank(c.Verdict) > rank(want) {
			t.Errorf("%s with %s: live it %s, and the model says that it %s", c.Fault, c.Defence, c.Verdict, want)
		}
		// Which of two owners writes and ends first decides what a tag of double_owner
		// shows: a few trials need not meet the worst order.
		ordered := c.Fault == "double_owner"
		if sure := live.only(func(o *Cell) bool {
			return o.Fault == c.Fault && o.Probe == c.Probe && o.Defence == NoDefence && o.Crossed == o.Trials
		}); want == Misses && !ordered && len(sure.Cells) == 1 && c.Verdict != Misses {
			t.Errorf("%s with %s: live it %s, and the model says that it misses what is found every time without", c.Fault, c.Defence, c.Verdict)
		}
	}
	if compared < 10 {
		t.Errorf("%d cells to compare", compared)
	}
}

func rank(v Verdict) int { return slices.Index([]Verdict{Stops, Detects, Blunts, Misses}, v) }

// modelTable reads the defence table of docs/verification.md, by "defence/fault".
func modelTable(t *testing.T) map[string]Verdict {
	t.Helper()
	b, err := os.ReadFile("../../docs/verification.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Verdict{}
	var faults []string
	for line := range strings.Lines(string(b)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case cells[0] == "defence":
			faults = cells
		case len(cells) == len(faults):
			for i, cell := range cells[1:] {
				verdict, _, _ := strings.Cut(cell, " ")
				_, fault, named := strings.Cut(faults[i+1], " ")
				if v := Verdict(verdict); named && rank(v) >= 0 {
					out[cells[0]+"/"+fault] = v
				}
			}
		}
	}
	if len(out) < 65 {
		t.Fatalf("docs/verification.md has %d verdicts", len(out))
	}
	return out
}
