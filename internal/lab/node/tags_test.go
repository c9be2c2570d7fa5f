package node

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/internal/lab/model"
	"github.com/kvcanary/kvcanary/pagetag"
)

// A table whose pages have been written for a room is its own, whatever pages
// they are; any page of another room, lease, acquaintance, place or length, or
// one that is being written, makes it nobody's.
func TestGuard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, tokens := rapid.IntRange(1, 5).Draw(t, "size"), rapid.IntRange(1, 20).Draw(t, "tokens")
		n := (tokens + size - 1) / size
		m := NewMemory(n+3, size)
		table := rapid.Permutation([]int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22}[:n+3]).Draw(t, "table")
		own := owner(5, 6, 7)
		for i, page := range table[:n] {
			m.mark(page, markOf(own, i, tokens, size))
		}
		g := guard{owner: own}
		if !g.owns(m, table, tokens, size) {
			t.Fatal("a room's own pages are refused")
		}
		i := rapid.IntRange(0, n-1).Draw(t, "page")
		kept := m.at(table[i])
		for name, mark := range map[string]pagetag.Mark{
			"another run":        markOf(owner(4, 6, 7), i, tokens, size),
			"another room":       markOf(owner(5, 5, 7), i, tokens, size),
			"another lease":      markOf(owner(5, 6, 8), i, tokens, size),
			"another place":      markOf(own, i+1, tokens+size, size),
			"fewer tokens":       markOf(own, i, i*size, size),
			"nobody":             {},
			"somebody, not done": {Owner: kept.Owner},
		} {
			m.mark(table[i], mark)
			if g.owns(m, table, tokens, size) {
				t.Fatalf("a page of %s is taken", name)
			}
		}
		m.mark(table[i], kept)
		if g.owns(m, table[:n-1], tokens, size) || g.owns(m, table, 0, size) {
			t.Fatal("a table that is too short, or no table, is taken")
		}
	})
}

// A room grows token by token; a page that somebody else has written in between
// is not made its own by that.
func TestGuardGrows(t *testing.T) {
	const size = 4
	m, own, table := NewMemory(3, size), owner(1, 2, 3), []int32{2, 0, 1}
	m.mark(2, markOf(own, 0, 3, size))
	g := guard{owner: own}
	for pos := 3; pos < 11; pos++ {
		if page := table[pos/size]; pos%size == 0 {
			m.mark(page, markOf(own, pos/size, pos+1, size))
		} else if !g.grow(m, page, pos, size) {
			t.Fatalf("token %d is refused", pos)
		}
		if !g.owns(m, table, pos+1, size) || pos%size != 0 && g.owns(m, table, pos, size) {
			t.Fatalf("after token %d the tags say something else", pos)
		}
	}
	m.mark(1, markOf(owner(1, 9, 3), 2, 11, size))
	g.grow(m, 1, 11, size)
	if g.owns(m, table, 12, size) {
		t.Error("a page of room 9 has become the room's own by a token")
	}
	m.clear(1)
	if g.grow(m, 1, 11, size) {
		t.Error("a page that is being written takes a token")
	}
}

func TestChecksumCoversTheTable(t *testing.T) {
	c := model.NewCache(4, 2)
	rng := rand.New(rand.NewPCG(1, 1))
	for page := range int32(4) {
		for i := range c.Page(page) {
			c.Page(page)[i] = byte(rng.Uint32())
		}
	}
	sum := checksum(c, []int32{1, 3})
	if sum == checksum(c, []int32{3, 1}) || sum == checksum(c, []int32{1}) || sum != checksum(c, []int32{1, 3}) {
		t.Error("it depends on something else than pages and their order")
	}
	c.Page(3)[5] ^= 1
	if sum == checksum(c, []int32{1, 3}) {
		t.Error("a bit that has changed does not show")
	}
}

// BenchmarkOwnership is what a decode step pays for tags at 64 tokens a page
// and a context of 64k, and what the step takes without.
func BenchmarkOwnership(b *testing.B) {
	const size, tokens = 64, 1 << 16
	m := model.New()
	mem := NewMemory(tokens/size+1, size)
	rng := rand.New(rand.NewPCG(1, 2))
	table := make([]int32, tokens/size+1)
	for i, page := range rng.Perm(len(table)) {
		table[i] = int32(page)
	}
	text := make([]byte, tokens)
	for i := range text {
		text[i] = byte('a' + rng.IntN(26))
	}
	m.Write(mem.cache, table, 0, text)
	g := guard{owner: owner(1, 2, 3)}
	for i, page := range table {
		mem.mark(page, markOf(g.owner, i, tokens, size))
	}
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			if !g.owns(mem, table, tokens, size) {
				b.Fatal("refused")
			}
		}
	})
	b.Run("step", func(b *testing.B) {
		for b.Loop() {
			m.Write(mem.cache, table, tokens-1, text[tokens-1:])
			m.Logits(mem.cache, table, tokens-1, text[tokens-1], 1)
		}
	})
}
