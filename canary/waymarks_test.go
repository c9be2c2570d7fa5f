package canary

import "testing"

// TestWaymarks: what is remembered of earlier walks changes no result, and a
// second walk to the same canary ends at a mark of the first.
func TestWaymarks(t *testing.T) {
	c := New(testKey(1))
	const deep = 60_000
	s := c.stateAt(3, deep, 0)
	id, at, ok := c.chain.locate(s)
	if !ok || id != 3 || at != deep {
		t.Fatalf("located %v at %d, %v", id, at, ok)
	}
	marks := 0
	for _, m := range c.chain.marks.slots {
		if !m.set {
			continue
		}
		marks++
		if m.id != 3 || m.at >= deep || c.stateAt(3, m.at, 0) != m.state {
			t.Fatalf("mark %+v is wrong", m)
		}
	}
	if marks < deep/markEvery/2 || marks > deep/markEvery*2 {
		t.Errorf("%d marks in %d words", marks, deep)
	}
	// A mark that lies is believed, which shows that walks end there.
	for i := range c.chain.marks.slots {
		if m := &c.chain.marks.slots[i]; m.set {
			m.id = 4
		}
	}
	if id, at, ok := c.chain.locate(s); !ok || id != 4 || at != deep {
		t.Errorf("second walk located %v at %d, %v without the marks", id, at, ok)
	}
}
