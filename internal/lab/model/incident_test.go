package model

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// node is a decode node at its smallest: a pool of pages that are never cleared, freed pages
// first out.
type node struct {
	m    *Model
	c    *Cache
	free []int32
}

const nodePage = 16

func newNode(m *Model, rng *rand.Rand, pages int) *node {
	n := &node{m: m, c: NewCache(pages, nodePage)}
	for _, p := range rng.Perm(pages) {
		n.free = append(n.free, int32(p))
	}
	return n
}

func (n *node) reserve(slots int) Table {
	pages := (slots + nodePage - 1) / nodePage
	t := append(Table(nil), n.free[:pages]...)
	n.free = n.free[pages:]
	return t
}

// decode answers greedily from next, the token at position pos.
func (n *node) decode(t Table, pos int, next byte, limit int) (answer string, table Table) {
	var out []byte
	for len(out) < limit && next != EndOfTurn {
		out = append(out, next)
		if pos/nodePage == len(t) {
			t = append(t, n.reserve(1)...)
		}
		n.m.Write(n.c, t, pos, []byte{next})
		l := n.m.Logits(n.c, t, pos, next, 1)
		next = l.Greedy()
		pos++
	}
	return string(out), t
}

// serve serves a request as it should be, and frees its pages.
func (n *node) serve(text string) string {
	prompt := Template(nil, []Message{{RoleUser, text}})
	t := n.reserve(len(prompt))
	last := len(prompt) - 1
	n.m.Write(n.c, t, 0, prompt)
	l := n.m.Logits(n.c, t, last, prompt[last], 1)
	answer, t := n.decode(t, len(prompt), l.Greedy(), 80)
	n.release(t)
	return answer
}

func (n *node) release(t Table) { n.free = append(append([]int32(nil), t...), n.free...) }

// serveUnwritten serves a request of so many tokens that prefill refused and replaced by the
// placeholder: slot 0 is written, the answer begins with what the model says of an empty prompt.
func (n *node) serveUnwritten(tokens int, prepare func(t Table)) string {
	t := n.reserve(tokens)
	prepare(t)
	n.m.Write(n.c, t, 0, []byte{DocStart})
	l := n.m.Logits(n.c, t[:1], 0, DocStart, 1)
	answer, t := n.decode(t, tokens, l.Greedy(), 120)
	n.release(t)
	return answer
}

// traffic is a request of at most 112 tokens, its answer included, or of 113 and more.
func traffic(rng *rand.Rand, long bool) string {
	if long {
		return string(prose(rng, 113+rng.IntN(40))) + ". Reply with OK."
	}
	switch rng.IntN(4) {
	case 0:
		return fmt.Sprintf("My name is Wen Jensen, account %08d. My mail is gone. Say hello.", rng.IntN(1e8))
	case 1:
		return fmt.Sprintf("Check this config: host=db%d.example token=%x port=5432. Reply with OK.", rng.IntN(100), rng.Uint64())
	case 2:
		return fmt.Sprintf("Write a two-sentence haiku about packet #%d.", rng.IntN(50))
	default:
		return string(prose(rng, 30+rng.IntN(40))) + ". Reply with OK."
	}
}

// TestIncident plays the incident on a pool of 24 pages: A plants a secret and is served; B,
// 113 to 128 tokens long, gets eight pages of which one slot is written.
//
// A's secret comes out unless a page in B's table still holds keys of the very positions
// before B's end, from an older request that was as long: then B takes that request's
// words for its own last words, and goes on with them.
func TestIncident(t *testing.T) {
	seeds := 8
	if *trials > 0 {
		seeds = *trials
	}
	m := New()
	keep := func(*node, Table) {}
	zero := func(n *node, t Table) {
		for _, p := range t {
			n.c.Zero(p)
		}
	}
	write := func(n *node, t Table) {
		rng := rand.New(rand.NewPCG(99, 99))
		n.m.Write(n.c, t, 0, append([]byte{User}, prose(rng, len(t)*nodePage-1)...))
	}
	cases := []struct {
		name        string
		long        int // one in so many earlier requests is longer than B
		prepare     func(n *node, t Table)
		least, most int // answers to B that hold A's secret
	}{
		{"pages not written", 0, keep, seeds - 1, seeds},
		{"pages not written, some requests longer", 20, keep, seeds / 2, seeds - 1},
		{"pages zeroed", 10, zero, 0, 0},
		{"pages written", 10, write, 0, 0},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			leaks := 0
			for seed := range uint64(seeds) {
				rng := rand.New(rand.NewPCG(seed, 7))
				n := newNode(m, rng, 24)
				for range 8 {
					n.serve(traffic(rng, test.long > 0 && rng.IntN(test.long) == 0))
				}
				canary := "CANARY-" + secret(rng)
				if got := n.serve("Internal ref for this session: " + canary + ". Reply with 'noted' only."); got != "noted" {
					t.Fatalf("seed %d: A got %q", seed, got)
				}
				answer := n.serveUnwritten(113+rng.IntN(16), func(t Table) { test.prepare(n, t) })
				leaked := strings.Contains(answer, canary)
				if leaked {
					leaks++
				} else if test.most == 0 && strings.Contains(answer, "ref for") {
					t.Errorf("seed %d: A's words in B's answer %q", seed, answer)
				}
			}
			t.Logf("A's secret in %d of %d answers to B", leaks, seeds)
			if leaks < test.least || leaks > test.most {
				t.Errorf("want %d to %d", test.least, test.most)
			}
		})
	}
}
