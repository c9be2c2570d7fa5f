package prefix

import (
	"container/list"
	"fmt"
)

// Config is the size of a cache.
type Config struct {
	Pages    int // of the first tier; 0 is no cache
	Blobs    int // of the second tier; 0 is none
	PageSize int // tokens
	Switches Switches
}

// Cache is the bookkeeping of both tiers. It is used by one goroutine.
type Cache struct {
	cfg   Config
	on    Defences
	pages []page
	index map[key]int32
	free  []int32    // pages that hold nothing to be found
	idle  *list.List // pages that may be used for something else, the one used longest ago first
	tier  tier
}

// page is a page of the first tier.
type page struct {
	name
	gen     uint64 // how often it was given out
	mark    tag    // as its writer, or the cache, has left it
	marked  uint64 // the gen that it was left under
	state   state
	lent    int           // loans that read it now
	place   *list.Element // in idle
	indexed bool
}

type state uint8

const (
	blank   state = iota // free
	pending              // given out, to be written
	whole                // written
)

// New returns an empty cache. It panics if a size is not positive.
func New(cfg Config) *Cache {
	if cfg.Pages < 1 || cfg.PageSize < 1 || cfg.Blobs < 0 {
		panic(fmt.Sprintf("kvcanary: internal error: a prefix cache of %d pages of %d tokens and %d blobs", cfg.Pages, cfg.PageSize, cfg.Blobs))
	}
	c := &Cache{
		cfg: cfg, on: cfg.Switches.On(), pages: make([]page, cfg.Pages), index: map[key]int32{},
		idle: list.New(), tier: newTier(cfg.Blobs),
	}
	for i := range c.pages {
		c.free = append(c.free, int32(cfg.Pages-1-i))
	}
	return c
}

// Source is a block that was found.
type Source struct {
	Blob   bool     // in the second tier
	From   int32    // page or blob
	Sum    [16]byte // what a checksum of the blob has to be, if Summed
	Summed bool

	gen uint64
}

// Loan is a run of blocks from the start of a prompt. None of them is given to
// anybody else until it is given back.
type Loan struct{ Blocks []Source }

// Find looks for the blocks of a prompt, from its start, until one is missing. At
// least the last token is left to be computed.
func (c *Cache) Find(p *Prompt) Loan {
	var l Loan
	for _, n := range c.names(p, (len(p.Tokens)-1)/c.cfg.PageSize) {
		s, ok := c.find(&n)
		if !ok {
			break
		}
		c.lend(&s, 1)
		l.Blocks = append(l.Blocks, s)
	}
	return l
}

func (c *Cache) find(n *name) (Source, bool) {
	if i, ok := c.index[n.key]; ok {
		if c.good(i, n) {
			return Source{From: i, gen: c.pages[i].gen}, true
		}
	}
	return c.tier.find(c, n)
}

// good compares a page that has the right key with what is wanted.
func (c *Cache) good(i int32, n *name) bool {
	pg := &c.pages[i]
	return c.fits(&pg.name, n) && c.allowed(pg.mark, n, pg.marked == pg.gen)
}

// fits compares the tokens of a block that has the right key.
func (c *Cache) fits(have, want *name) bool {
	return !c.on.Any(FullCompare) || have.tokens == want.tokens && have.text == want.text
}

// allowed compares for whom a block was computed; left says that its tag was left
// under its present name.
func (c *Cache) allowed(have tag, want *name, left bool) bool {
	return !c.on.Any(tags) || left && have == want.tag
}

// Current reports whether what a source says is still so, to be asked before a
// blob is copied and after.
func (c *Cache) Current(s Source) bool {
	return !s.Blob || !c.on.Any(BlobGenerations) || c.tier.blobs[s.From].gen == s.gen
}

// Give gives a loan back. The blocks that the prompt begins with are the last to go.
func (c *Cache) Give(l Loan) {
	for i := len(l.Blocks) - 1; i >= 0; i-- {
		c.lend(&l.Blocks[i], -1)
	}
}

func (c *Cache) lend(s *Source, n int) {
	if s.Blob {
		c.tier.blobs[s.From].lent += n
		return
	}
	c.pages[s.From].lent += n
	c.settle(s.From)
}

// settle puts a page where it belongs: among those that may be used for something
// else, the newest last, or not.
func (c *Cache) settle(i int32) {
	pg := &c.pages[i]
	if pg.place != nil {
		c.idle.Remove(pg.place)
		pg.place = nil
	}
	if pg.lent < 0 {
		panic(fmt.Sprintf("kvcanary: internal error: page %d of the prefix cache is given back more often than lent", i))
	}
	if pg.lent == 0 && pg.state == whole && pg.indexed {
		pg.place = c.idle.PushBack(i)
	}
}

// Used is how many pages hold something, or are about to.
func (c *Cache) Used() int { return len(c.pages) - len(c.free) }

// Early reports whether blocks are published with a fault of EarlyPublish.
func (c *Cache) Early(f Faults) bool { return c.cfg.Switches.Has(f) && !c.on.Any(AfterCommit) }
