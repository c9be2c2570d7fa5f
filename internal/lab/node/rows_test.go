package node

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/model"
)

// Whatever answers come and go, both parties of a batch hold each of them once;
// in the same order unless they are out of step.
func TestRows(t *testing.T) {
	apart := 0
	rapid.Check(t, func(t *rapid.T) {
		straight, skewed := rows{}, rows{skewed: true}
		var live []handoff.Room
		for next := handoff.Room(1); next < 30; next++ {
			if rapid.Bool().Draw(t, "new") {
				live = append(live, next)
			}
			live = slices.DeleteFunc(live, func(handoff.Room) bool { return rapid.IntRange(0, 4).Draw(t, "ends") == 0 })
			var steps []handoff.Event
			for _, room := range live {
				steps = append(steps, handoff.Event{Room: room})
			}
			for _, r := range []*rows{&straight, &skewed} {
				r.update(steps)
				for _, all := range [][]handoff.Room{r.computed, r.given} {
					if !slices.Equal(slices.Sorted(slices.Values(all)), live) {
						t.Fatalf("rows %v of answers %v", all, live)
					}
				}
			}
			if !slices.Equal(straight.computed, straight.given) || !slices.Equal(straight.computed, skewed.computed) {
				t.Fatalf("computed as %v, given back as %v", straight.computed, straight.given)
			}
			if !slices.Equal(skewed.computed, skewed.given) {
				apart++
			}
		}
	})
	if apart == 0 {
		t.Error("the fault does nothing")
	}
}

// Slots go to one answer at a time and, unless they are dirty, begin anew.
func TestSlots(t *testing.T) {
	for _, clean := range []bool{true, false} {
		s := slots{clean: clean}
		a, b := s.take(), s.take()
		if a == b {
			t.Fatal("one slot for two")
		}
		m := model.New()
		m.LogitsAfter(&a.state, testCache(m, "abc"), []int32{0}, 2, 'c', 1)
		before := a.state
		s.give(a)
		s.give(nil)
		if got := s.take(); got != a || (got.state != before) != clean {
			t.Errorf("clean %v: another slot %v, state kept %v", clean, got != a, got.state == before)
		}
		a.state = before
		s.give(a)
		if s.tidy(); s.take().state == before {
			t.Errorf("clean %v: state kept when there was time", clean)
		}
	}
}

func testCache(m *model.Model, text string) *model.Cache {
	c := model.NewCache(1, 64)
	m.Write(c, []int32{0}, 0, []byte(text))
	return c
}
