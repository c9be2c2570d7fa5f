package handoff

import (
	"encoding/binary"
	"slices"
)

// Each machine can be copied, and packed so that machines that will do the same
// from here on are equal byte for byte. What is only counted is left out.

// Clone returns an independent copy.
func (r *Router) Clone() *Router {
	c := *r
	c.rooms = slices.Clone(r.rooms)
	return &c
}

// Clone returns an independent copy.
func (p *Prefill) Clone() *Prefill {
	c := *p
	c.pool = p.pool.Clone()
	c.rooms, c.queue, c.stopping = slices.Clone(p.rooms), slices.Clone(p.queue), slices.Clone(p.stopping)
	return &c
}

// Clone returns an independent copy.
func (d *Decode) Clone() *Decode {
	c := *d
	c.pool = d.pool.Clone()
	c.rooms, c.queue, c.draining = slices.Clone(d.rooms), slices.Clone(d.queue), slices.Clone(d.draining)
	for i := range c.rooms {
		c.rooms[i].val.written = slices.Clone(c.rooms[i].val.written)
	}
	return &c
}

// AppendState appends the packed machine.
func (r *Router) AppendState(b []byte) []byte {
	b = numbers(b, uint64(r.newest), uint64(r.lost), uint64(len(r.rooms)))
	for _, e := range r.rooms {
		b = numbers(b, uint64(e.room))
	}
	return b
}

// AppendState appends the packed machine.
func (p *Prefill) AppendState(b []byte) []byte {
	b = list(p.pool.append(numbers(b, uint64(p.busy))), p.queue)
	b = numbers(b, uint64(len(p.rooms)))
	for i := range p.rooms {
		b = p.rooms[i].val.append(numbers(b, uint64(p.rooms[i].room)))
	}
	b = numbers(b, uint64(len(p.stopping)))
	for i := range p.stopping {
		s := &p.stopping[i]
		b = list(numbers(b, uint64(s.room), s.gen, uint64(s.writes), bit(s.asked)), s.local)
	}
	return b
}

func (r *prompt) append(b []byte) []byte {
	flags := bit(r.placeholder) | bit(r.owned)<<1 | bit(r.torn)<<2 | bit(r.stop)<<3
	b = numbers(b, uint64(r.phase), flags, uint64(r.token), uint64(r.tokens), uint64(r.pending.Have), uint64(r.writes),
		r.lease.gen, r.source)
	return list(list(b, r.lease.pages), r.local)
}

// AppendState appends the packed machine.
func (d *Decode) AppendState(b []byte) []byte {
	b = list(d.pool.append(numbers(b, uint64(d.newest))), d.queue)
	b = numbers(b, uint64(len(d.rooms)))
	for i := range d.rooms {
		b = d.rooms[i].val.append(numbers(b, uint64(d.rooms[i].room)))
	}
	b = numbers(b, uint64(len(d.draining)))
	for i := range d.draining {
		q := &d.draining[i]
		b = list(numbers(b, uint64(q.room), q.lease.gen), q.lease.pages)
	}
	return b
}

func (r *answer) append(b []byte) []byte {
	flags := bit(r.aborted) | bit(r.stop)<<1
	b = numbers(b, uint64(r.phase), flags, uint64(r.token), uint64(r.tokens), uint64(r.maxNew), uint64(r.hello),
		uint64(r.prompt), uint64(r.total), uint64(r.made), r.gen)
	return list(list(b, r.pages), r.written)
}

func (p *Pool) append(b []byte) []byte {
	b = numbers(b, p.leases)
	for _, s := range p.pages {
		b = numbers(b, uint64(s.owner), s.gen)
	}
	return list(list(b, p.front), p.apart)
}

// numbers appends small numbers in a byte each.
func numbers(b []byte, ns ...uint64) []byte {
	for _, n := range ns {
		if n < 0x80 {
			b = append(b, byte(n))
		} else {
			b = binary.AppendUvarint(b, n)
		}
	}
	return b
}

// list appends a list with its length in front.
func list[T ~int32 | ~uint64](b []byte, ns []T) []byte {
	b = numbers(b, uint64(len(ns)))
	for _, n := range ns {
		b = numbers(b, uint64(n))
	}
	return b
}

func bit(set bool) uint64 {
	if set {
		return 1
	}
	return 0
}
