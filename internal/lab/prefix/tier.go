package prefix

// tier is the second tier: a store of blobs that is used round and round, and an
// index of where blobs were put. The store tells nobody that it has used a blob
// again; whoever comes with a handle has to look at its number.
type tier struct {
	blobs []blob
	next  int // blob to be used next
	index map[key]handle
	order []key // of the index, oldest first
}

// blob is what the store knows of one.
type blob struct {
	gen  uint64 // how often it was used
	mark tag    // that came with it
	left bool   // it was left under the name of what came
	sum  [16]byte
	lent int
}

// handle is what the index knows of a block that was put away.
type handle struct {
	name
	at     int32
	gen    uint64
	sum    [16]byte
	summed bool
}

// handles is how many handles there are for each blob, at most.
const handles = 4

func newTier(blobs int) tier { return tier{blobs: make([]blob, blobs), index: map[key]handle{}} }

// put finds a blob for a page that loses its place, unless it is there already.
func (t *tier) put(c *Cache, pg *page) (int32, bool) {
	if len(t.blobs) == 0 || pg.state != whole {
		return 0, false
	}
	if h, ok := t.index[pg.blob]; ok && c.Current(Source{Blob: true, From: h.at, gen: h.gen}) && c.fits(&h.name, &pg.name) {
		return 0, false
	}
	at, ok := t.turn()
	if !ok {
		return 0, false
	}
	b := &t.blobs[at]
	b.gen++
	b.mark, b.left = pg.mark, pg.marked == pg.gen
	t.keep(pg.blob, handle{name: pg.name, at: at, gen: b.gen})
	return at, true
}

// turn is the next blob that nobody reads.
func (t *tier) turn() (int32, bool) {
	for range t.blobs {
		at := t.next
		t.next = (t.next + 1) % len(t.blobs)
		if t.blobs[at].lent == 0 {
			return int32(at), true
		}
	}
	return 0, false
}

// keep notes a handle; the oldest ones go.
func (t *tier) keep(k key, h handle) {
	if _, ok := t.index[k]; !ok {
		t.order = append(t.order, k)
	}
	t.index[k] = h
	for len(t.order) > handles*len(t.blobs) {
		delete(t.index, t.order[0])
		t.order = t.order[1:]
	}
}

func (t *tier) find(c *Cache, n *name) (Source, bool) {
	h, ok := t.index[n.blob]
	if !ok {
		return Source{}, false
	}
	b := &t.blobs[h.at]
	s := Source{Blob: true, From: h.at, gen: h.gen}
	if !c.Current(s) || !c.fits(&h.name, n) || !c.allowed(b.mark, n, b.left) {
		return Source{}, false
	}
	switch {
	case c.on.Any(ChecksumOfKey):
		s.Sum, s.Summed = h.sum, h.summed
	case c.on.Any(ChecksumOfHop):
		s.Sum, s.Summed = b.sum, true
	}
	return s, true
}

// Summing reports whether blobs have checksums.
func (c *Cache) Summing() bool { return c.on.Any(sums) }

// Spilled says that a put's page has been copied to its blob, and the checksum of
// what was copied.
func (c *Cache) Spilled(put Put, sum [16]byte) {
	b := &c.tier.blobs[put.Blob]
	b.sum = sum
	if h, ok := c.tier.index[put.spill]; ok && h.at == put.Blob && h.gen == b.gen {
		h.sum, h.summed = sum, true
		c.tier.index[put.spill] = h
	}
}
