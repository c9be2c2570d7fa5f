package explore

import (
	"bufio"
	"flag"
	"os"
	"strings"
	"testing"
)

var everyCell = flag.Bool("table", false, "explore every cell of the table of defences")

// The table says of each defence what it does about each fault. The short form
// explores the cells of one-request faults that differ from having no defence.
func TestTable(t *testing.T) {
	if !*everyCell {
		for _, want := range []Cell{
			{Fault: "F1 stale_reserve", Defence: "tags:by_writer", Verdict: Detects},
			{Fault: "F2 late_write", Defence: "tags:by_writer", Verdict: Detects},
			{Fault: "F2 late_write", Defence: "quiesce", Verdict: Stops},
			{Fault: "F9 id_reuse", Defence: "tags:by_writer", Verdict: Misses},
		} {
			got, err := OneCell(t.Context(), want.Fault, want.Defence, Options{Workers: 2})
			if err != nil {
				t.Fatal(err)
			}
			if got.Verdict != want.Verdict {
				t.Errorf("%s with %s: %s, want %s", want.Fault, want.Defence, got.Verdict, want.Verdict)
			}
			if line := rowOf(t, got); !strings.Contains(line, string(got.Verdict)) {
				t.Errorf("testdata/table.md has %q for %s with %s", line, got.Fault, got.Defence)
			}
		}
		return
	}
	var cells []Cell
	if err := Cells(t.Context(), Options{Workers: 2}, func(c Cell) { cells = append(cells, c) }); err != nil {
		t.Fatal(err)
	}
	golden(t, "table.md", Markdown(cells))
}

// rowOf finds a cell in the table that is kept.
func rowOf(t *testing.T, c Cell) string {
	cells := readTable(t)
	return cells[[2]string{c.Fault, c.Defence}]
}

func readTable(t *testing.T) map[[2]string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/table.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[[2]string]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i, c := range columns {
			if i+1 < len(fields) {
				out[[2]string{c.name, strings.TrimSpace(fields[0])}] = strings.TrimSpace(fields[i+1])
			}
		}
	}
	return out
}

// apart are the cells in which the two models differ, and why.
var apart = map[string]string{
	"stale_source+generations": "the machines number the leases of prefill's own pages too, and compare before they say that all is written",
}

// Spin, asked about a model that was written from the protocol and not from this
// code, says the same of each defence.
func TestAgreesWithSpec(t *testing.T) {
	file, err := os.Open("../../spec/expected.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ours := readTable(t)
	compared := 0
	for in := bufio.NewScanner(file); in.Scan(); {
		f := strings.Split(in.Text(), "\t")
		if len(f) < 12 || strings.HasPrefix(f[0], "#") || f[1] != "table" && f[1] != "long" {
			continue
		}
		fault, defence, _ := strings.Cut(f[2], "+")
		if f[1] == "long" != (fault == "stale_reserve") {
			continue
		}
		if defence == "" {
			defence = "none"
		}
		var column string
		for _, c := range columns {
			if strings.HasSuffix(c.name, " "+fault) {
				column = c.name
			}
		}
		got, known := ours[[2]string{column, defence}]
		if !known {
			continue
		}
		compared++
		want := specVerdict(f[3:12])
		if agrees := strings.HasPrefix(got, want) || want == "misses" && strings.HasPrefix(got, "blunts"); agrees == (apart[f[2]] != "") {
			t.Errorf("%s: %q here, %q in the spec (apart: %q)", f[2], got, want, apart[f[2]])
		}
	}
	// The spec knows one reason to refuse a prompt, so other_abort is not in it.
	if want := len(rows) * (len(columns) - 1); compared != want {
		t.Errorf("%d cells compared, want %d", compared, want)
	}
}

// specVerdict reads the columns alarm, I1 to I8.
func specVerdict(marks []string) string {
	switch {
	case marks[1] == "x" || marks[6] == "x":
		return "misses"
	case strings.Contains(strings.Join(marks, ""), "x"):
		return "detects"
	}
	return "stops"
}
