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

// Pool hands out the pages of one node. Every page is free or owned by exactly
// one room; a page keeps its contents when it changes hands.
type Pool struct {
	policy Policy
	owner  []Room  // by page; 0 is free
	front  []int32 // free pages; LIFO takes from the end, the others from the start
	apart  []int32 // free pages that Sort has not merged yet
}

// NewPool returns a pool of free pages 0, 1, ... that are first handed out in that order.
func NewPool(pages int, policy Policy) Pool {
	p := Pool{policy: policy, owner: make([]Room, pages), front: make([]int32, pages)}
	for i := range p.front {
		p.front[i] = int32(i)
	}
	if policy == LIFO {
		slices.Reverse(p.front)
	}
	return p
}

// Pages is how many pages the pool has.
func (p *Pool) Pages() int { return len(p.owner) }

// Free is how many pages nobody owns.
func (p *Pool) Free() int { return len(p.front) + len(p.apart) }

// Used is how many pages are owned.
func (p *Pool) Used() int { return p.Pages() - p.Free() }

// Owner is the room that owns a page, 0 for none.
func (p *Pool) Owner(page int32) Room { return p.owner[page] }

// Alloc gives n pages to room, or none and false when fewer are free.
func (p *Pool) Alloc(room Room, n int) ([]int32, bool) {
	if room == 0 || n < 0 {
		broken("%d pages asked for by room %d", n, room)
	}
	if n > p.Free() {
		return nil, false
	}
	if n > len(p.front) {
		p.merge()
	}
	pages := p.take(n)
	for _, page := range pages {
		if p.owner[page] != 0 {
			broken("page %d is on the free list and owned by room %d", page, p.owner[page])
		}
		p.owner[page] = room
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

// Release gives pages of room back. Their contents stay.
func (p *Pool) Release(room Room, pages []int32) {
	for _, page := range pages {
		if p.owner[page] != room || room == 0 {
			broken("page %d is freed by room %d and owned by room %d", page, room, p.owner[page])
		}
		p.owner[page] = 0
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

// Clone returns an independent copy.
func (p *Pool) Clone() Pool {
	return Pool{p.policy, slices.Clone(p.owner), slices.Clone(p.front), slices.Clone(p.apart)}
}
