package handoff

import (
	"fmt"
	"strings"
	"testing"
)

// What no correct peer does, and no order of what correct peers do leads to: the
// explorer never sees these checks find anything, so each is tried here by hand.
// Every case is a machine that is led to a point, and an event with one field
// that is not as it should be.

var secondLine = Config{PageSize: 4, PrefillPages: 8, DecodePages: 8, Context: 32}

// said is what a machine does with an event, in short.
func said(actions []Action) string {
	var out []string
	for _, a := range actions {
		word := fmt.Sprintf("%v %v", a.To, a.Kind)
		if a.Kind == Refused {
			word += fmt.Sprintf(" %d", a.Refusal.Reason)
		}
		out = append(out, word)
	}
	return strings.Join(out, ", ")
}

// sendingPrefill has written the first of two pages of room 1, under lease 3.
func sendingPrefill(t *testing.T, cfg Config) *Prefill {
	t.Helper()
	p := NewPrefill(cfg)
	for _, e := range []Event{
		{Kind: Submit, Room: 1, Tokens: 7},
		{Kind: Reserved, Room: 1, Pages: []int32{5, 6}, Gen: 3},
		{Kind: Ran, Room: 1, Token: 9},
	} {
		if len(p.Step(e)) == 0 {
			t.Fatalf("%v is not taken", e)
		}
	}
	return p
}

// reservedDecode has two pages reserved for room 2, under lease 2.
func reservedDecode(t *testing.T, cfg Config) *Decode {
	t.Helper()
	d := NewDecode(cfg)
	for _, e := range []Event{
		{Kind: Submit, Room: 1, Tokens: 7, MaxNew: 2}, {Kind: Hello, Room: 1, Tokens: 7}, {Kind: Abort, Room: 1},
		{Kind: Gone, Room: 1, Gen: 1},
		{Kind: Submit, Room: 2, Tokens: 7, MaxNew: 2}, {Kind: Hello, Room: 2, Tokens: 7},
	} {
		d.Step(e)
	}
	if d.Lease(2) != 2 || len(d.Table(2)) != 2 || d.Draining() != 0 {
		t.Fatalf("lease %d, table %v, %d draining", d.Lease(2), d.Table(2), d.Draining())
	}
	return d
}

func TestPrefillDoubtsItsPeer(t *testing.T) {
	put := func(i int, gen uint64, ok bool) Event {
		return Event{Kind: Put, Room: 1, Index: i, To: 5 + int32(i), Gen: gen, OK: ok}
	}
	for _, c := range []struct {
		name  string
		after []Event
		in    Event
		want  string
	}{
		{"all is well", []Event{put(0, 3, true)}, put(1, 3, true), "decode Meta"},
		{"the last page was not written", []Event{put(0, 3, true)}, put(1, 3, false), "router Refused 11, self Forget"},
		{"the first page was not written", []Event{put(0, 3, false)}, put(1, 3, true), "router Refused 11, self Forget"},
		{"a write under another lease ends", []Event{put(0, 3, true)}, put(1, 2, true), ""},
		{"a write of a page that there is none of ends", []Event{put(0, 3, true)}, put(2, 3, true), ""},
		{"an acknowledgement before all is written", []Event{put(0, 3, true)}, Event{Kind: Ack, Room: 1}, ""},
		{"quiesce for another lease of the room", nil, Event{Kind: Quiesce, Room: 1, Gen: 2}, "decode Gone"},
		{"quiesce for the lease", nil, Event{Kind: Quiesce, Room: 1, Gen: 3}, "self Halt, self Forget"},
		{"quiesce for another lease of a room that stops", []Event{{Kind: Abort, Room: 1}}, Event{Kind: Quiesce, Room: 1, Gen: 2}, "decode Gone"},
		{"quiesce for a room that stops", []Event{{Kind: Abort, Room: 1}}, Event{Kind: Quiesce, Room: 1, Gen: 3}, ""},
		{"decode that waits for a room that stops is lost",
			[]Event{{Kind: Quiesce, Room: 1, Gen: 3}, {Kind: PeerLost}, put(0, 3, true)}, put(1, 3, true), ""},
	} {
		p := sendingPrefill(t, secondLine)
		for _, e := range c.after {
			p.Step(e)
		}
		if got := said(p.Step(c.in)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestDecodeDoubtsItsPeer(t *testing.T) {
	for _, c := range []struct {
		name string
		in   Event
		want string
	}{
		{"all is well", Event{Kind: Meta, Room: 2, Sent: 7, Prompt: 7, Gen: 2}, "self Verify"},
		{"an older lease", Event{Kind: Meta, Room: 2, Sent: 7, Prompt: 7, Gen: 1}, ""},
		{"a younger lease", Event{Kind: Meta, Room: 2, Sent: 7, Prompt: 7, Gen: 3}, ""},
		{"less than was reserved", Event{Kind: Meta, Room: 2, Sent: 6, Prompt: 7, Gen: 2}, "router Refused 4, self Forget"},
		{"more than was reserved", Event{Kind: Meta, Room: 2, Sent: 8, Prompt: 7, Gen: 2}, "router Refused 4, self Forget"},
		{"gone under an older lease", Event{Kind: Gone, Room: 2, Gen: 1}, ""},
	} {
		cfg := secondLine
		cfg.OneSided = true
		if got := said(reservedDecode(t, cfg).Step(c.in)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	for _, c := range []struct {
		name string
		in   Event
		want string
	}{
		{"all is well", Event{Kind: Page, Room: 2, Index: 1, To: 1, Gen: 2}, "self Write"},
		{"an older lease", Event{Kind: Page, Room: 2, Index: 1, To: 1, Gen: 1}, ""},
		{"a younger lease", Event{Kind: Page, Room: 2, Index: 1, To: 1, Gen: 3}, ""},
		{"another page", Event{Kind: Page, Room: 2, Index: 1, To: 0, Gen: 2}, ""},
	} {
		if got := said(reservedDecode(t, secondLine).Step(c.in)); got != c.want {
			t.Errorf("page, %s: %q, want %q", c.name, got, c.want)
		}
	}
}

// An answer ends when a page of its table has been given out again, under an
// older lease or a younger one.
func TestDecodeNoticesPagesThatHaveChangedHands(t *testing.T) {
	for _, gen := range []uint64{1, 2, 3} {
		for page := range int32(2) {
			cfg := secondLine
			cfg.OneSided = true
			d := reservedDecode(t, cfg)
			d.Step(Event{Kind: Meta, Room: 2, Sent: 7, Prompt: 7, Gen: 2})
			d.pool.pages[d.Table(2)[page]].gen = gen
			want := "router Refused 13, self Forget"
			if gen == 2 {
				want = "prefill Ack, router Token, self Step"
			} else {
				want = "prefill Ack, " + want
			}
			if got := said(d.Step(Event{Kind: Verified, Room: 2, OK: true})); got != want {
				t.Errorf("page %d under lease %d: %q, want %q", page, gen, got, want)
			}
		}
	}
}

// A node that is there again does not stand for the other one.
func TestRouterWaitsForBothNodes(t *testing.T) {
	r := NewRouter(secondLine)
	for _, why := range []Reason{PrefillGone, DecodeGone} {
		r.Step(Event{Kind: PeerLost, Refusal: Refusal{Reason: why}})
	}
	for _, back := range []Reason{DecodeGone, PrefillGone} {
		if got := r.Step(Event{Kind: Open, Room: r.newest + 1, Tokens: 7, MaxNew: 2}); len(got) != 1 || got[0].Kind != Refused {
			t.Errorf("a request is let in: %v", got)
		}
		r.Step(Event{Kind: Reset, Refusal: Refusal{Reason: back}})
	}
	if got := r.Step(Event{Kind: Open, Room: r.newest + 1, Tokens: 7, MaxNew: 2}); len(got) != 2 || got[0].Kind != Submit {
		t.Errorf("both are there: %v", got)
	}
}
