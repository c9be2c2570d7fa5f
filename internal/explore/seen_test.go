package explore

import (
	"testing"

	"pgregory.net/rapid"
)

func TestSeenAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, twin := newSeen(), map[digest]bool{}
		// Few distinct low words: chains of colliding slots are long.
		narrow := rapid.Uint64Range(0, 40)
		for range rapid.IntRange(0, 3000).Draw(t, "n") {
			p := digest{narrow.Draw(t, "low"), rapid.Uint64Range(1, 300).Draw(t, "high")}
			if got := s.add(p); got == twin[p] {
				t.Fatalf("add %v says new: %v", p, got)
			}
			twin[p] = true
		}
		if s.n != len(twin) {
			t.Fatalf("%d digests, want %d", s.n, len(twin))
		}
	})
}
