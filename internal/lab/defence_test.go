package lab

import (
	"strings"
	"testing"
)

// Which defence holds the incident, one at a time, whether pages come as
// messages or are written by prefill itself.
func TestDefencesAgainstTheIncident(t *testing.T) {
	const (
		leaks      = ""
		incomplete = "KV transfer incomplete: 1 of 3072 tokens were sent."
		unverified = "KV transfer refused: a page is not this request's."
	)
	for defence, want := range map[string]string{
		"retire":                 "Input length (3072 tokens) exceeds the maximum allowed length",
		"admission":              "Input length (3072 tokens) exceeds the maximum allowed length",
		"coverage":               incomplete,
		"tags":                   unverified,
		"checksum":               unverified,
		"checksum_absent:reject": unverified,
		"tags:at_reserve":        leaks,
		"checksum:sender":        leaks,
		"checksum_absent:skip":   leaks,
		"generations":            leaks,
		"quiesce":                leaks,
		"unique_ids":             leaks,
	} {
		for _, onesided := range []bool{true, false} {
			if !onesided && !*sweep && want != leaks {
				continue // the machines' walks have both
			}
			cfg := tiny()
			cfg.Faults, cfg.Defences, cfg.OneSided = []string{"stale_reserve"}, []string{defence}, onesided
			got, _, others := incident(t, cfg, 1)
			if want == leaks {
				if piece := longestPiece(got.text, others); got.err != nil || len(piece) < 24 {
					t.Errorf("%s, one-sided %v: only %q of %q is somebody else's, %+v", defence, onesided, piece, got.text, got.err)
				}
			} else if got.err == nil || !strings.HasPrefix(got.err.Message, want) || got.text != "" {
				t.Errorf("%s, one-sided %v: got %q, %+v, want %q", defence, onesided, got.text, got.err, want)
			}
		}
	}
}

// handoffDefences are those that live in the handoff and not in what is around it.
var handoffDefences = []string{
	"checksum:sender", "checksum:receiver", "checksum_absent:skip", "checksum_absent:reject", "tags:at_reserve", "tags:by_writer", "coverage", "retire",
	"generations", "quiesce", "unique_ids",
}
