package probe

import (
	"slices"
	"testing"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// Moments lie all over what lies between prefill and the first token, more of
// them in its beginning, and some in prefill.
func TestMomentsLieAllOver(t *testing.T) {
	var early, late, before int
	var all []float64
	for n := range firstChases {
		m := moment(n)
		switch {
		case m < -1 || m > 1:
			t.Errorf("chase %d leaves at %v", n, m)
		case m < 0:
			before++
		case m < 0.5:
			early++
		default:
			late++
		}
		all = append(all, m)
	}
	if before == 0 || late == 0 || early <= late {
		t.Errorf("%d in prefill, %d early and %d late behind it", before, early, late)
	}
	slices.Sort(all)
	for i := range all[1:] {
		if gap := all[i+1] - all[i]; all[i] >= 0 && gap > 0.25 {
			t.Errorf("nobody leaves between %v and %v", all[i], all[i+1])
		}
	}
}

// Whoever leaves does so before anybody comes behind, and those behind stay.
func TestThoseBehindFollowAtOnce(t *testing.T) {
	c := newChurn(Env{Tenants: 2, Seed: 1, MaxAnswer: 160, PageSize: 16})
	for n := range max(firstChases, answerChases) {
		for _, batch := range [][]Send{c.chase(n), c.chaseAnswers(n)} {
			at := slices.IndexFunc(batch, func(s Send) bool { return s.Behind })
			for i, s := range batch {
				if leaves := s.Hangup.Any(); leaves != (i < at) || s.Behind != (i == at) || !leaves && s.Arm != wire.ArmLoad {
					t.Errorf("chase %d, %d of %d: leaves %v, behind %v, arm %q", n, i+1, len(batch), leaves, s.Behind, s.Arm)
				}
			}
		}
	}
}
