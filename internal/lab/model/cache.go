package model

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Table is a page table: slot s of a sequence is slot s%pageSize of page Table[s/pageSize].
type Table []int32

// Bytes of one slot in a page, by kind. A page holds all rows of a kind together, and
// layer-2 keys by depth (the codes one token back of all slots, then those two back,
// and so on): most slots are ruled out by the first depths, and the scan then reads
// memory in one direction.
const (
	key1Bytes  = 4 * 2 * pairs // float32
	val1Bytes  = codeDims      // int8, 1/256
	key2Bytes  = depth * codeDims
	val2Bytes  = outDims // int8, 1/sqrt(128)
	tokenBytes = key1Bytes + val1Bytes + key2Bytes + val2Bytes
)

// Cache is the KV memory of a node: fixed pages, never cleared. Its methods do not
// lock; callers keep writers of a page apart from its other users.
type Cache struct {
	mem      []byte
	pages    int
	pageSize int
}

// CacheBytes is the memory that a cache of so many pages of so many tokens needs.
func CacheBytes(pages, pageSize int) int { return pages * pageSize * tokenBytes }

// NewCache makes a cache of zeroed memory; pageSize in tokens.
func NewCache(pages, pageSize int) *Cache {
	c, err := NewCacheOn(make([]byte, CacheBytes(pages, pageSize)), pages, pageSize)
	if err != nil {
		panic("kvcanary: internal error: " + err.Error())
	}
	return c
}

// NewCacheOn makes a cache over given memory, such as a shared mapping, whatever it
// holds. It fails if the memory is too small or a size is not positive.
func NewCacheOn(mem []byte, pages, pageSize int) (*Cache, error) {
	if pages < 1 || pageSize < 1 {
		return nil, fmt.Errorf("kv cache of %d pages of %d tokens: both must be at least 1", pages, pageSize)
	}
	need := CacheBytes(pages, pageSize)
	if len(mem) < need {
		return nil, fmt.Errorf("kv cache of %d pages of %d tokens needs %d bytes, got %d", pages, pageSize, need, len(mem))
	}
	return &Cache{mem: mem[:need], pages: pages, pageSize: pageSize}, nil
}

// Pages is the number of pages.
func (c *Cache) Pages() int { return c.pages }

// PageSize is the length of a page, tokens.
func (c *Cache) PageSize() int { return c.pageSize }

// PageBytes is the length of a page, bytes.
func (c *Cache) PageBytes() int { return c.pageSize * tokenBytes }

// Page gives the raw bytes of a page, for transfer: the memory itself, not a copy.
func (c *Cache) Page(i int32) []byte {
	size := c.PageBytes()
	start := int(i) * size
	return c.mem[start : start+size : start+size]
}

// Zero clears a page.
func (c *Cache) Zero(i int32) { clear(c.Page(i)) }

// ZeroFrom clears the slots of a page from one on; 0 is all of them.
func (c *Cache) ZeroFrom(page int32, slot int) {
	p := c.Page(page)
	rows := func(start, row int) { clear(p[start+slot*row : start+c.pageSize*row]) }
	rows(0, key1Bytes)
	rows(c.pageSize*key1Bytes, val1Bytes)
	for d := range depth {
		rows(c.pageSize*(key1Bytes+val1Bytes)+d*c.depthBytes(), codeDims)
	}
	rows(c.pageSize*(key1Bytes+val1Bytes+key2Bytes), val2Bytes)
}

// slot finds a slot of a sequence: its page and its index there.
func (c *Cache) slot(t Table, s int) (page []byte, i int) {
	return c.Page(t[s/c.pageSize]), s % c.pageSize
}

// Parts of a page.

func (c *Cache) key1(page []byte, i int) *[key1Bytes]byte {
	return (*[key1Bytes]byte)(page[i*key1Bytes:])
}

func (c *Cache) val1(page []byte, i int) *code {
	return (*code)(page[c.pageSize*key1Bytes+i*val1Bytes:])
}

// keys2 gives the layer-2 keys of a page: for k = 0..7, the codes k+1 tokens back of all
// slots. Slot i's is at k*depthBytes + i*codeDims.
func (c *Cache) keys2(page []byte) []byte {
	start := c.pageSize * (key1Bytes + val1Bytes)
	return page[start : start+c.pageSize*key2Bytes]
}

// depthBytes is the length of the layer-2 keys of one depth in a page.
func (c *Cache) depthBytes() int { return c.pageSize * codeDims }

func (c *Cache) val2(page []byte, i int) *[val2Bytes]byte {
	return (*[val2Bytes]byte)(page[c.pageSize*(key1Bytes+val1Bytes+key2Bytes)+i*val2Bytes:])
}

//go:norace
func putVector(b *[key1Bytes]byte, v *vector) {
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(x))
	}
}

//go:norace
func getVector(b *[key1Bytes]byte, v *vector) {
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
}

// checkTable panics unless t has pages for slots 0..last and they exist.
func (c *Cache) checkTable(t Table, last int) {
	if last < 0 || last >= MaxPosition || last/c.pageSize >= len(t) {
		panic(fmt.Sprintf("kvcanary: internal error: slot %d is outside a table of %d pages of %d tokens", last, len(t), c.pageSize))
	}
}
