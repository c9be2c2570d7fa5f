package canary

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWordList (C7): the list is what the package says it is.
func TestWordList(t *testing.T) {
	words := strings.Split(strings.TrimSuffix(wordList, "\n"), "\n")
	if len(words) != wordCount {
		t.Fatalf("%d words, want %d", len(words), wordCount)
	}
	if !slices.IsSorted(words) {
		t.Error("the list is not sorted")
	}
	form := regexp.MustCompile(`^[a-z]{4,8}$`)
	set := map[string]bool{}
	for i, w := range words {
		if !form.MatchString(w) || set[w] {
			t.Errorf("%q has no place in the list, or two", w)
		}
		set[w] = true
		if got := theLexicon().find(pack([]byte(w+"        "), len(w))); got != i {
			t.Errorf("%s is word %d, looked up as %d", w, i, got)
		}
	}
	for _, w := range words {
		if isEscapeLetter(w[0]) && set[w[1:]] {
			t.Errorf(`\%s could be an escape and %s`, w, w[1:])
		}
	}
	for _, w := range strings.Fields(functionWords) {
		if set[w] {
			t.Errorf("%q is a function word", w)
		}
	}
	offensive := regexp.MustCompile(`^(fuck|shit|cunt|nigg|rap(e|ed|ist)$|sex|porn|nazi|whor|slut|kill|murder|suicid|gun(s|ner)?$|bomb|terror|penis|vagin|anal$|pussy|bitch|bastard|genocid|tortur|hate|jew(s|ish)?$|musl|christ)`)
	for _, w := range words {
		if offensive.MatchString(w) {
			t.Errorf("%q may offend", w)
		}
	}
}

const functionWords = `about above after again against also although always among been before being below between
both could does down during each either even every from have hers here into itself just less many might more most much
must myself never none only onto other ours over same shall should since some such than that their them then there these
they this those through thus under until upon very well were what when where which while whom whose will with within
without would your yours`

func TestFindUnknown(t *testing.T) {
	lx := theLexicon()
	for _, w := range []string{"a", "the", "zzzz", "abando", "abandonn", "abandons", "kvcanary"} {
		if n := lx.find(pack([]byte(w+"        "), len(w))); n >= 0 {
			t.Errorf("%q is word %d", w, n)
		}
	}
}
