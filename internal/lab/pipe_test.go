package lab

import "testing"

// An engine that has started has nodes that have met: closing it at once is clean.
func TestCloseRightAfterStartIsNoError(t *testing.T) {
	for range 20 {
		e, err := StartPipe(Small())
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
