package explore

import (
	"testing"
)

func explore(t *testing.T, s Setup, o Options) Result {
	t.Helper()
	r, err := Explore(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func setup(t *testing.T, name string) Setup {
	t.Helper()
	s, ok := Find(name)
	if !ok {
		t.Fatalf("no setup %q", name)
	}
	return s
}

// In the small setups nothing breaks, whatever happens in whatever order.
func TestSmallSetupsHold(t *testing.T) {
	for _, s := range Setups {
		if !s.Small {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			r := explore(t, s, Options{Workers: 2})
			if c := r.Counterexample; c != nil {
				t.Fatalf("%s", c.Story())
			}
			if !r.Complete || r.Endless != "" || r.States < 1000 || r.Ends == 0 {
				t.Errorf("%+v", r)
			}
			t.Logf("%d states, %d transitions, depth %d, %.2f s, %d values", r.States, r.Transitions, r.Depth, r.Seconds, r.Values)
		})
	}
}
