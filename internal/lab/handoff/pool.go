package handoff

import (
	"fmt"
	"slices"
)

// Policy says in which order free pages are handed out again.
type Policy uint8

// The policies.
const (
	LIFO Policy = iota // the page freed last comes first: a paged allocator as such
	FIFO               // the page freed longest ago comes first
	Sort               // freed pages wait apart; when the rest runs short all are merged and sorted, so that use sweeps the pool (SGLang when disaggregated)
)

var policyNames = [...]string{"lifo", "fifo", "sort"}

func (p Policy) String() string {
	if int(p) < len(policyNames) {
		return policyNames[p]
	}
	return fmt.Sprintf("policy(%d)", uint8(p))
}

// ParsePolicy reads a policy's name.
func ParsePolicy(s string) (Policy, error) {
	if i := slices.Index(policyNames[:], s); i >= 0 {
		return Policy(i), nil
	}
	return 0, fmt.Errorf("unknown free-list policy %q: use lifo, fifo or sort", s)
}

// Draining is the owner of a page that nobody may use: its room has ended, and a
// write for that room may still be under way.
const Draining = ^Room(0)

// Pool hands out the pages of one node. Every page is free, owned by exactly one
// room, or draining; a page keeps its contents when it changes hands.
type Pool struct {
	policy Policy
	pages  []page
	front  []int32 // free pages; LIFO takes from the end, the others from the start
	apart  []int32 // free pages that Sort has not merged yet
	leases uint64  // how often pages have been reserved
	used   int     // pages with an owner
	// careless, with fault DoubleOwner, takes back what its giver does not own.
	careless bool
}

type page struct {
	owner Room   // 0 is free
	gen   uint64 // lease that it was given out under last
}

// NewPool returns a pool of free pages 0, 1, ... that are first handed out in that order.
func NewPool(pages int, policy Policy) Pool {
	p := Pool{policy: policy, pages: make([]page, pages), front: make([]int32, pages)}
	for i := range p.front {
		p.front[i] = int32(i)
	}
	if policy == LIFO {
		slices.Reverse(p.front)
	}
	return p
}

// Pages is how many pages the pool has.
func (p *Pool) Pages() int { return len(p.pages) }

// Free is how many pages nobody owns and anybody may have.
func (p *Pool) Free() int { return len(p.front) + len(p.apart) }

// Used is how many pages are owned or draining.
func (p *Pool) Used() int { return p.used }

// Owner is the room that owns a page, 0 for none, or Draining.
func (p *Pool) Owner(page int32) Room { return p.pages[page].owner }

// Gen is the lease that a page was given out under last, 0 for never.
func (p *Pool) Gen(page int32) uint64 { return p.pages[page].gen }

// Alloc gives n pages to room under a new lease, or none and false when fewer
// are free.
func (p *Pool) Alloc(room Room, n int) ([]int32, bool) {
	if n > p.Free() {
		return nil, false
	}
	p.leases++
	return p.Grow(room, p.leases, n)
}

// Grow gives n pages more to a room under a lease that it has.
func (p *Pool) Grow(room Room, gen uint64, n int) ([]int32, bool) {
	if room == 0 || room == Draining || n < 0 {
		broken("%d pages asked for by room %d", n, room)
	}
	if n > p.Free() {
		return nil, false
	}
	if n > len(p.front) {
		p.merge()
	}
	pages := p.take(n)
	for _, i := range pages {
		switch owner := p.pages[i].owner; {
		case owner == 0:
			p.used++
		case !p.careless:
			broken("page %d is on the free list and owned by room %d", i, owner)
		}
		p.pages[i] = page{room, gen}
	}
	return pages, true
}

func (p *Pool) take(n int) []int32 {
	if p.policy == LIFO {
		rest := len(p.front) - n
		pages := slices.Clone(p.front[rest:])
		slices.Reverse(pages)
		p.front = p.front[:rest]
		return pages
	}
	pages := slices.Clone(p.front[:n])
	p.front = p.front[n:]
	return pages
}

func (p *Pool) merge() {
	p.front = append(slices.Clone(p.front), p.apart...)
	p.apart = nil
	slices.Sort(p.front)
}

// Drain takes pages from a room without making them free.
func (p *Pool) Drain(room Room, pages []int32) {
	for _, i := range pages {
		p.leave(room, i)
		if p.pages[i].owner == 0 {
			p.used++
		}
		p.pages[i].owner = Draining
	}
}

// Release makes pages of room, or of Draining, free. Their contents stay.
func (p *Pool) Release(room Room, pages []int32) {
	for _, i := range pages {
		p.leave(room, i)
		if p.pages[i].owner != 0 {
			p.used--
		}
		p.pages[i].owner = 0
	}
	switch p.policy {
	case LIFO:
		for _, page := range slices.Backward(pages) {
			p.front = append(p.front, page)
		}
	case FIFO:
		p.front = append(p.front, pages...)
	case Sort:
		p.apart = append(p.apart, pages...)
	}
}

// leave checks that a page is its giver's.
func (p *Pool) leave(room Room, i int32) {
	if owner := p.pages[i].owner; (owner != room || room == 0) && !p.careless {
		broken("page %d is freed by room %d and owned by room %d", i, room, owner)
	}
}

// Clone returns an independent copy.
func (p *Pool) Clone() Pool {
	c := *p
	c.pages, c.front, c.apart = slices.Clone(p.pages), slices.Clone(p.front), slices.Clone(p.apart)
	return c
}
