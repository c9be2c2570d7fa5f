package api

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// stopped is the slow twin of stopper: letter by letter, looking at all of the
// text each time. held is what may not be shown yet at the end.
func stopped(stops []string, text string) (show, hit, held string) {
	for n := 1; n <= len(text); n++ {
		for _, stop := range stops {
			if strings.HasSuffix(text[:n], stop) && len(stop) > len(hit) {
				hit = stop
			}
		}
		if hit != "" {
			return text[:n-len(hit)], hit, ""
		}
	}
	for i := range len(text) {
		for _, stop := range stops {
			if strings.HasPrefix(stop, text[i:]) {
				return text[:i], "", text[i:]
			}
		}
	}
	return text, "", ""
}

func TestStopperEqualsItsSlowTwinHoweverTheTextIsCut(t *testing.T) {
	word := func(most int) *rapid.Generator[string] {
		return rapid.StringOfN(rapid.RuneFrom([]rune("ab\n")), 1, most, -1)
	}
	rapid.Check(t, func(t *rapid.T) {
		stops := rapid.SliceOfN(word(4), 0, 4).Draw(t, "stops")
		pieces := rapid.SliceOfN(word(5), 0, 8).Draw(t, "pieces")
		s := stopper{stops: stops}
		var shown, sent strings.Builder
		for _, p := range pieces {
			sent.WriteString(p)
			show, hit := s.write(p)
			shown.WriteString(show)
			wantShow, wantHit, wantHeld := stopped(stops, sent.String())
			if shown.String() != wantShow || hit != wantHit || s.held != wantHeld {
				t.Fatalf("after %q: shown %q hit %q held %q, want %q %q %q",
					sent.String(), shown.String(), hit, s.held, wantShow, wantHit, wantHeld)
			}
			if hit != "" {
				return
			}
		}
		if rest := s.close(); shown.String()+rest != sent.String() {
			t.Fatalf("shown %q and rest %q, sent %q", shown.String(), rest, sent.String())
		}
	})
}
