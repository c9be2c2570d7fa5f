package node

import (
	"github.com/kvcanary/kvcanary/internal/lab/model"
)

// promptSlots is how many prompts are kept in slots: that of llama.cpp's server.
const promptSlots = 4

// promptSlot holds the KV of the beginning of one prompt, in memory of its own
// beside the pool, so that a prompt that goes on from there need not be computed
// again. It is never cleared.
type promptSlot struct {
	cache  *model.Cache
	table  model.Table
	tokens []byte // whose KV it holds
	of     Origin
	used   uint64 // when, in prompts
}

// kept are the slots of a prefill node. A prompt gets the slot that it has most
// in common with, or the one that has not been used for the longest.
type kept struct {
	slots  []*promptSlot
	tokens int // that a slot holds
	clock  uint64
	faults Faults
	on     Defences
}

func newKept(s Setup) *kept {
	if s.SlotTokens == 0 {
		return nil
	}
	k := &kept{tokens: s.SlotTokens, faults: s.Also.Faults, on: s.Also.On()}
	pages := s.SlotTokens / s.Handoff.PageSize
	for range promptSlots {
		slot := &promptSlot{cache: model.NewCache(pages, s.Handoff.PageSize)}
		for page := range pages {
			slot.table = append(slot.table, int32(page))
		}
		k.slots = append(k.slots, slot)
	}
	return k
}

// is reports whether a fault is on and not cured.
func (k *kept) is(fault Faults) bool { return k.faults.Any(fault) && !k.on.Any(SlotReset) }

// restore puts what a slot has of a prompt into pages. done is how many tokens
// need not be computed, at least one does; found is how many of them are known
// to be the prompt's.
func (k *kept) restore(j *job, of Origin, to *model.Cache) (slot *promptSlot, done, found int) {
	k.clock++
	slot, found = k.choose(j.tokens, of)
	slot.used = k.clock
	most := min(len(slot.tokens), len(j.tokens)-1)
	done = found
	size := to.PageSize()
	switch {
	case found == 0 && k.is(DirtyRestore) && !k.on.Any(CompareRestored):
		done = most // what was restored is nothing, and nobody looks
	case found > 0 && k.is(DirtyTail):
		done = min((found+size-1)/size*size, most)
	}
	if k.on.Any(ZeroSlots) {
		slot.forget(found)
	}
	for i := 0; i < done; i += size {
		copy(to.Page(j.table[i/size]), slot.cache.Page(slot.table[i/size]))
	}
	return slot, done, found
}

// choose finds the slot for a prompt, and how many tokens both begin with: of a
// page at least, and of the same tenant and adapter. Where what is behind the
// match is kept, slots know no tenants, as those of the engines that it was
// seen in.
func (k *kept) choose(tokens []byte, of Origin) (best *promptSlot, found int) {
	for _, s := range k.slots {
		if s.of.Adapter != of.Adapter || s.of.Tenant != of.Tenant && !k.is(DirtyTail) {
			continue
		}
		if n := min(common(s.tokens, tokens), len(tokens)-1); n >= s.cache.PageSize() && n > found {
			best, found = s, n
		}
	}
	if best != nil {
		return best, found
	}
	best = k.slots[0]
	for _, s := range k.slots {
		if s.used < best.used {
			best = s
		}
	}
	return best, 0
}

// save keeps the beginning of a prompt that has been computed.
func (k *kept) save(slot *promptSlot, j job, of Origin, from *model.Cache) {
	slot.tokens = append([]byte(nil), j.tokens[:min(len(j.tokens), k.tokens)]...)
	slot.of = Origin{Tenant: of.Tenant, Adapter: of.Adapter}
	size := from.PageSize()
	for i := 0; i < len(slot.tokens); i += size {
		copy(slot.cache.Page(slot.table[i/size]), from.Page(j.table[i/size]))
	}
}

// forget clears all behind the first tokens.
func (s *promptSlot) forget(tokens int) {
	s.tokens = s.tokens[:tokens]
	size := s.cache.PageSize()
	for i, page := range s.table {
		s.cache.ZeroFrom(page, min(max(0, tokens-i*size), size))
	}
}

// common is how many tokens both begin with.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
