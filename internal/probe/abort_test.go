package probe

import (
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// Moments go by what the target takes, so that they fall into the same part of
// its work on a fast one and on a slow one.
func TestLeavingGoesByTheTarget(t *testing.T) {
	for _, c := range []struct {
		l     leaving
		first time.Duration
		want  wire.Hangup
	}{
		{leaving{part: 0.5}, 200 * time.Millisecond, wire.Hangup{Sent: true, After: 100 * time.Millisecond}},
		{leaving{part: 0.5}, 4 * time.Second, wire.Hangup{Sent: true, After: 2 * time.Second}},
		{leaving{text: 40}, 4 * time.Second, wire.Hangup{Text: 40}},
	} {
		if got := c.l.hangup(c.first); got != c.want {
			t.Errorf("%v of %v: %+v, want %+v", c.l, c.first, got, c.want)
		}
	}
}
