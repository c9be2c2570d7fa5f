package prefix

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// memory is a twin of what the cache keeps books of: in place of KV every page
// and blob holds what its KV was computed from.
type memory struct {
	cache *Cache
	size  int
	pages []string
	blobs []string
}

func newMemory(cfg Config) *memory {
	return &memory{cache: New(cfg), size: cfg.PageSize, pages: make([]string, cfg.Pages), blobs: make([]string, cfg.Blobs)}
}

// truth is what the KV of a block depends on.
func truth(p *Prompt, block, size int) string {
	to := (block + 1) * size
	s := fmt.Sprintf("%s|%q", p.Adapter, p.Tokens[:to])
	for _, m := range p.Media {
		if m.At < to {
			s += fmt.Sprintf("|%d %x", m.At, m.Digest)
		}
	}
	return s
}

// serve does for a prompt what a node does, and aborts after so many blocks.
func (m *memory) serve(p *Prompt, stop int) (hits int, wrong []string) {
	loan := m.cache.Find(p)
	for i, s := range loan.Blocks {
		from := m.pages
		if s.Blob {
			from = m.blobs
		}
		if got := from[s.From]; m.cache.Current(s) && got != truth(p, i, m.size) {
			wrong = append(wrong, got)
		}
	}
	m.cache.Give(loan)
	plan := m.cache.Plan(p)
	for _, put := range plan.Puts {
		if put.Spill {
			m.blobs[put.Blob] = m.pages[put.Page]
			m.cache.Spilled(put, [16]byte{})
		}
	}
	for _, put := range plan.Puts {
		if put.Block < stop && m.cache.Writing(put) {
			m.pages[put.Page] = truth(p, put.Block, m.size)
		}
	}
	m.cache.Commit(plan, stop)
	m.cache.Abandon(plan)
	return len(loan.Blocks), wrong
}

func anyPrompt(t *rapid.T) *Prompt {
	p := &Prompt{
		Tokens:  []byte(rapid.StringOfN(rapid.SampledFrom([]rune("ab")), 1, 24, -1).Draw(t, "tokens")),
		Tenant:  rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant"),
		Adapter: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "adapter"),
	}
	if at := rapid.IntRange(0, 12).Draw(t, "at"); at < len(p.Tokens)-3 {
		p.Media = []Media{{At: at, Tokens: 3, Digest: [16]byte{rapid.ByteRange(1, 2).Draw(t, "picture")}}}
		copy(p.Tokens[at:], "###")
	}
	return p
}

// Whatever is served and aborted, in whatever order, who finds a block finds the
// KV of the very tokens, adapter and pictures, and never another tenant's.
func TestWhoFindsABlockFindsTheirOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMemory(Config{
			Pages: rapid.IntRange(1, 12).Draw(t, "pages"), Blobs: rapid.IntRange(0, 8).Draw(t, "blobs"),
			PageSize: rapid.IntRange(1, 4).Draw(t, "size"),
		})
		sent := map[string]bool{} // what each tenant has sent, block by block
		for range rapid.IntRange(1, 40).Draw(t, "prompts") {
			p := anyPrompt(t)
			blocks := len(p.Tokens) / m.size
			hits, wrong := m.serve(p, rapid.IntRange(0, blocks).Draw(t, "computed"))
			if len(wrong) > 0 {
				t.Fatalf("%+v is served %q", p, wrong)
			}
			if hits > (len(p.Tokens)-1)/m.size {
				t.Fatalf("%d blocks of %d tokens: nothing is left to compute", hits, len(p.Tokens))
			}
			for i := range blocks {
				id := p.Tenant + " " + truth(p, i, m.size)
				if i < hits && !sent[id] {
					t.Fatalf("%+v finds block %d, which its tenant has never sent", p, i)
				}
				sent[id] = true
			}
			m.sound(t)
		}
	})
}

// sound checks that every page is in one place only.
func (m *memory) sound(t *rapid.T) {
	c := m.cache
	where := make([]int, len(c.pages))
	for _, i := range c.free {
		where[i]++
		if c.pages[i].state != blank || c.pages[i].indexed {
			t.Fatalf("page %d is free and %+v", i, c.pages[i].state)
		}
	}
	for e := c.idle.Front(); e != nil; e = e.Next() {
		where[e.Value.(int32)]++
	}
	for k, i := range c.index {
		if c.pages[i].key != k || !c.pages[i].indexed {
			t.Fatalf("page %d is found under a key that it does not have", i)
		}
	}
	for i, n := range where {
		if n != 1 || c.pages[i].lent != 0 {
			t.Fatalf("page %d is in %d places and lent %d times", i, n, c.pages[i].lent)
		}
	}
	if len(c.tier.index) > handles*len(c.tier.blobs) {
		t.Fatalf("%d handles for %d blobs", len(c.tier.index), len(c.tier.blobs))
	}
}

// What is lent is given to nobody else, however short pages are.
func TestLoansHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMemory(Config{Pages: 4, Blobs: 2, PageSize: 1})
		p := &Prompt{Tokens: []byte("abcd"), Tenant: "a"}
		m.serve(p, 4)
		loan := m.cache.Find(p)
		held := map[int32]bool{}
		for _, s := range loan.Blocks {
			held[s.From] = !s.Blob
		}
		for range rapid.IntRange(1, 10).Draw(t, "prompts") {
			plan := m.cache.Plan(anyPrompt(t))
			for _, put := range plan.Puts {
				if held[put.Page] {
					t.Fatalf("page %d is given out and lent", put.Page)
				}
			}
			m.cache.Commit(plan, rapid.IntRange(0, 24).Draw(t, "computed"))
			m.cache.Abandon(plan)
		}
		m.cache.Give(loan)
		m.sound(t)
	})
}

// Parts of different kinds and the same bytes make different keys, wherever one
// part ends and the next begins.
func TestNamesTellPromptsApart(t *testing.T) {
	c := New(Config{Pages: 8, PageSize: 4})
	seen := map[key]int{}
	for i, p := range []*Prompt{
		{Tokens: []byte("abcdabcd")},
		{Tokens: []byte("abcdabcd"), Tenant: "x"},
		{Tokens: []byte("abcdabcd"), Adapter: "x"},
		{Tokens: []byte("abcdabcd"), Tenant: "x", Adapter: "x"},
		{Tokens: []byte("abcdabcd"), Tenant: "xx"},
		{Tokens: []byte("abcdabcd"), Media: []Media{{0, 4, [16]byte{1}}}},
		{Tokens: []byte("abcdabcd"), Media: []Media{{0, 4, [16]byte{2}}}},
		{Tokens: []byte("abcdabcd"), Media: []Media{{1, 3, [16]byte{1}}}},
		{Tokens: []byte("abcdabcd"), Media: []Media{{0, 2, [16]byte{1}}, {2, 2, [16]byte{2}}}},
		{Tokens: []byte("xbcdabcd")},
	} {
		for _, n := range c.names(p, 9) {
			if other, ok := seen[n.key]; ok {
				t.Errorf("prompts %d and %d have a key in common", other, i)
			}
			seen[n.key] = i
		}
	}
}

// The second block's key says what the first one's tokens were.
func TestNamesAreAChain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(Config{Pages: 8, PageSize: 4})
		a, b := anyPrompt(t), anyPrompt(t)
		na, nb := c.names(a, 9), c.names(b, 9)
		for i := range min(len(na), len(nb)) {
			same := a.Tenant == b.Tenant && truth(a, i, 4) == truth(b, i, 4)
			// A picture that begins in a block says so there, whole or not.
			if (na[i].key == nb[i].key) != same {
				t.Fatalf("%+v and %+v, block %d: keys equal is %v", a, b, i, !same)
			}
			if na[i].key == nb[i].key && !slices.Equal(na[:i+1], nb[:i+1]) {
				t.Fatalf("%+v and %+v differ before block %d", a, b, i)
			}
		}
	})
}

func BenchmarkNames(b *testing.B) {
	c := New(Config{Pages: 1 << 16, PageSize: 64})
	p := &Prompt{Tokens: make([]byte, 1<<20), Tenant: "a"}
	b.SetBytes(int64(len(p.Tokens)))
	for b.Loop() {
		c.names(p, len(p.Tokens))
	}
}
