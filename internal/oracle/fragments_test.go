package oracle_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/internal/oracle"
)

// TestFragments: what is too little or too odd for a proof is no finding of
// any oracle, and no silence either.
func TestFragments(t *testing.T) {
	backwards := func(s string) string {
		b := []byte(s)
		slices.Reverse(b)
		return string(b)
	}
	for name, c := range map[string]struct {
		put    func(w *world) string
		unsure bool
	}{
		"seven words":            {func(w *world) string { return w.words(1, 1, 40, 7) }, true},
		"seven in capitals":      {func(w *world) string { return strings.ToUpper(w.words(1, 1, 0, 7)) }, true},
		"letters apart":          {func(w *world) string { return strings.Join(strings.Split(w.words(1, 1, 9, 12), ""), " ") }, true},
		"run together":           {func(w *world) string { return strings.ReplaceAll(w.words(1, 1, 9, 12), " ", "") }, true},
		"from its end":           {func(w *world) string { return backwards(w.words(1, 1, 9, 12)) }, true},
		"two words":              {func(w *world) string { return w.words(1, 1, 9, 2) }, false},
		"its own":                {func(w *world) string { return w.words(0, 0, 9, 7) }, false},
		"of what it was sent":    {func(w *world) string { return w.words(2, 2, 9, 7) }, false},
		"never sent":             {func(w *world) string { return w.words(1, 9, 9, 7) }, false},
		"farther than was sent":  {func(w *world) string { return w.words(1, 1, 3000, 7) }, false},
		"nothing of the kind":    {func(*world) string { return strings.Repeat("the quick brown fox ", 20) }, false},
		"a word of each of them": {func(w *world) string { return w.words(1, 1, 9, 1) + " " + w.words(0, 0, 9, 6) }, false},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			w := newWorld(t)
			w.served(0, "content", c.put(w)).Holds = []int{2}
			w.served(1, "content", "noted")
			w.served(2, "content", "noted")
			for i := range w.all {
				w.all[i].SentBytes = 8000
				w.all[0].Answer.End = w.all[i].Answer.End
			}
			for _, o := range oracle.All() {
				j := w.judge(o.Name)
				if len(j.Findings)+len(j.Tests) > 0 {
					t.Errorf("%s found %+v, tested %+v", o.Name, j.Findings, j.Tests)
				}
				if o.Name == "fragments" && (j.Unsure != "") != c.unsure {
					t.Errorf("unsure %q", j.Unsure)
				}
			}
		})
	}
}

// TestFragmentsAgreeWithSlowTwin holds the rolling hash against a search for
// each window of the letters.
func TestFragmentsAgreeWithSlowTwin(t *testing.T) {
	const window = 22
	only := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' {
				return r
			}
			return -1
		}, strings.ToLower(s))
	}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		said := "so " + w.words(1, 1, rapid.IntRange(0, 60).Draw(t, "from"), rapid.IntRange(1, 7).Draw(t, "words")) + " it is"
		cut := rapid.IntRange(0, len(said)-1).Draw(t, "cut")
		said = said[:cut] + rapid.SampledFrom([]string{"", "-", "x", " 7\n"}).Draw(t, "put in") + said[cut:]
		w.served(0, "content", said)
		w.served(1, "content", "noted")
		w.all[0].Answer.End = w.all[1].Answer.End
		w.all[1].SentBytes = int64(rapid.IntRange(0, 600).Draw(t, "bytes"))
		sent := only(w.words(1, 1, 0, 600)[:w.all[1].SentBytes])
		want, letters := false, only(said)
		for i := range max(0, len(letters)-window+1) {
			want = want || strings.Contains(sent, letters[i:i+window])
		}
		if got := w.judge("fragments").Unsure; (got != "") != want {
			t.Fatalf("%q: unsure %q, want %v", said, got, want)
		}
	})
}
