package explore

import (
	"os"
	"strings"
	"testing"
)

// docs/verification.md says what the tests have found.
func TestDocumentAgrees(t *testing.T) {
	doc, err := os.ReadFile("../../docs/verification.md")
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("testdata/table.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), string(table)) {
		t.Error("the table of defences is not the one in testdata/table.md")
	}
	found, err := os.ReadFile("testdata/mutants.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(found)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 5 {
			t.Fatalf("testdata/mutants.tsv: %q", line)
		}
		if row := strings.Join([]string{"", f[0], f[4], f[1], f[2], f[3], ""}, " | "); !strings.Contains(string(doc), strings.TrimSpace(row)) {
			t.Errorf("no row %s", row)
		}
	}
	for i, text := range Invariants[:I8+1] {
		if !strings.Contains(string(doc), "| "+Invariant(i).String()+" | "+text) {
			t.Errorf("%v is not there in these words: %s", Invariant(i), text)
		}
	}
}
