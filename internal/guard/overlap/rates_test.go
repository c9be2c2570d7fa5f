package overlap

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The rates that docs/guard.md states, with the defaults: how often a run of
// another tenant's text is reported by how long it is, and how often text that
// nobody has sent is. Text by chance is the worst case of the first, since a
// fingerprint stands anywhere.
func TestRatesAreAsDocumented(t *testing.T) {
	const trials = 400
	r := random(7)
	x := newIndex(t, func(o *Options) { o.Memory = 16 << 20 })
	var rows strings.Builder
	for _, letters := range []int{150, 160, 165, 170, 175, 180, 185, 190} {
		found := 0
		for range trials {
			run := wordsOf(r, letters)
			send(x, "alpha", wordsOf(r, 100)+run+wordsOf(r, 100), start)
			found += len(say(x, "beta", wordsOf(r, 100)+run+wordsOf(r, 100), start))
		}
		fmt.Fprintf(&rows, "| %d | %.1f %% |\n", letters, 100*float64(found)/trials)
		if letters < 160 && found > 0 || letters >= x.AlwaysFrom() && found < trials {
			t.Errorf("%d of %d runs of %d letters are reported", found, trials, letters)
		}
	}
	for range 200 {
		if got := say(x, "beta", wordsOf(r, 2000), start); len(got) != 0 {
			t.Errorf("text that nobody has sent is reported: %+v", got)
		}
	}
	doc, err := os.ReadFile("../../../docs/guard.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), rows.String()) {
		t.Errorf("docs/guard.md does not have these rows:\n%s", rows.String())
	}
}

// What is remembered when the memory is full: a fingerprint for every 8.5
// letters on average, the newest ones.
func TestMemoryHoldsTheNewestLetters(t *testing.T) {
	r := random(8)
	x := newIndex(t, nil)
	var sent []string
	for range 30 {
		sent = append(sent, wordsOf(r, 20_000))
		send(x, "alpha", sent[len(sent)-1], start)
	}
	room := LeastMemory / perPrint * (window + 1) / 2 / 20_000 // texts
	kept := 0
	for i := len(sent) - 1; i >= 0 && len(say(x, "beta", sent[i][:1000], start)) == 1; i-- {
		kept++
	}
	if kept < room*9/10 || kept > room+1 {
		t.Errorf("%d texts are remembered, want about %d", kept, room)
	}
}
