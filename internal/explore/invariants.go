package explore

import (
	"fmt"
	"slices"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// Invariant is something that holds at every moment, or at the end.
type Invariant uint8

// The invariants.
const (
	Books Invariant = iota // a machine found its own books wrong and stopped
	I1
	I2
	I3
	I4
	I5
	I6
	I7
	I8

	// The rest are no invariants: asking for them finds out whether something
	// can happen at all.

	Spoilt  // an answer comes from pages that nobody has written for it
	Noticed // a check of the transfer or of the pages finds something

	invariants
)

// Invariants says what each of them means.
var Invariants = [invariants]string{
	Books: "no machine finds its own books wrong",
	I1:    "no step reads a page whose last writer is not its owner at that index, or that is not written whole",
	I2:    "a refused request never owns a page and never sends a byte",
	I3:    "no page has two owners",
	I4:    "every page is free, owned or draining: none is lost, none is free twice",
	I5:    "each request ends in a whole answer or an error: by itself, or, if a message was lost, by its time limit",
	I6:    "no answer mixes two requests: no client is sent a token of, or computed from pages of, another one",
	I7:    "a write lands only in a page that is leased to its room and generation",
	I8:    "at the end of everything no page is owned; none drains unless a message was lost; no machine holds a request unless one was lost or a node crashed",

	Spoilt:  "no client is sent a token that was computed from a page that was not written whole for it",
	Noticed: "no check of the transfer or of the pages has anything to find",
}

func (i Invariant) String() string {
	switch i {
	case Books:
		return "I0"
	case Spoilt:
		return "spoilt"
	case Noticed:
		return "noticed"
	}
	return fmt.Sprintf("I%d", uint8(i))
}

// set is a set of invariants.
type set uint16

// of are those in the set that are violated.
func (s set) of(all []Violation) set {
	var out set
	for _, v := range all {
		out |= 1 << v.Invariant
	}
	return out & s
}

// Violation is an invariant that does not hold, in words.
type Violation struct {
	Invariant Invariant `json:"invariant"`
	Text      string    `json:"text"`
}

func violated(i Invariant, format string, args ...any) Violation {
	return Violation{i, fmt.Sprintf(format, args...)}
}

// checkBooks looks for pages with two owners, and for ones that are free twice,
// or free and owned (I3, I4). A room may have pages in its table that it does not
// own any more; that is for I1 and I7 to judge.
func checkBooks(node string, pool *handoff.Pool, table func(handoff.Room) []int32, all []held) []Violation {
	var out []Violation
	tables := make([]int, pool.Pages())
	for _, h := range all {
		for _, page := range table(h.room) {
			tables[page]++
		}
	}
	free := 0
	for i, n := range tables {
		owner := pool.Owner(int32(i))
		if n > 1 {
			out = append(out, violated(I3, "page %d of %s is in the tables of two rooms", i, node))
		}
		if owner == 0 {
			free++
		}
	}
	if free != pool.Free() {
		out = append(out, violated(I4, "%d pages of %s have no owner and %d are on the free list", free, node, pool.Free()))
	}
	return out
}

// checkTables looks for pages whose owner does not have them in its table (I4).
func checkTables(d *handoff.Decode) []Violation {
	draining := 0
	for i := range int32(d.Pool().Pages()) {
		switch owner := d.Pool().Owner(i); {
		case owner == handoff.Draining:
			draining++
		case owner != 0 && !slices.Contains(d.Table(owner), i):
			return []Violation{violated(I4, "page %d of decode is lost: room %d owns it and does not know", i, owner)}
		}
	}
	if draining != d.Draining() {
		return []Violation{violated(I4, "%d pages of decode drain and %d are accounted for", draining, d.Draining())}
	}
	return nil
}

// refusedOwns looks for pages of requests that must be refused (I2).
func refusedOwns(node string, table func(handoff.Room) []int32, all []held) []Violation {
	for _, h := range all {
		if h.long && len(table(h.room)) > 0 {
			return []Violation{violated(I2, "request %d must be refused and owns pages of %s", h.req, node)}
		}
	}
	return nil
}

// atLull looks at a state in which nothing more happens before a time limit
// (I5), and, if no client waits, nothing at all (I8).
func (m *Model) atLull(all rest, b budget) []Violation {
	lost := b.spent(m.setup.Bounds.budget(), oneLoss)
	crashed := b.spent(m.setup.Bounds.budget(), oneCrash)
	switch {
	case all&restWaiting != 0 && !lost:
		return []Violation{violated(I5, "a request has neither an answer nor an error, and nothing more happens")}
	case all&restWaiting != 0:
		return nil
	case all&restOwned != 0:
		return []Violation{violated(I8, "nothing more happens, and a page is still owned")}
	case all&restDrain != 0 && !lost:
		return []Violation{violated(I8, "nothing more happens, and a page still drains")}
	case all&restHeld != 0 && !lost && !crashed:
		return []Violation{violated(I8, "nothing more happens, and a machine has not let go of a request")}
	}
	return nil
}
