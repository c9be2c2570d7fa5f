package node

import (
	"github.com/zeebo/xxh3"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/model"
	"github.com/kvcanary/kvcanary/pagetag"
)

const tagged = handoff.TagsAtReserve | handoff.TagsByWriter

// owner is whose the pages of a room are, in the words of tags.
func owner(epoch uint64, room handoff.Room, gen uint64) pagetag.Owner {
	return pagetag.Owner{Epoch: epoch, Request: uint64(room), Generation: gen}
}

// markOf is the mark of page index of a sequence of so many tokens.
func markOf(o pagetag.Owner, index, tokens, pageSize int) pagetag.Mark {
	length := max(0, min(tokens-index*pageSize, pageSize))
	t := pagetag.Claim(o, pagetag.Place{Index: uint32(index), Length: uint32(length)})
	return t.Mark()
}

// guard compares the marks of one room's pages. It is used by one goroutine at
// a time.
type guard struct {
	owner pagetag.Owner
	buf   []pagetag.Mark
}

// owns reports whether the first tokens of a table may be read.
func (g *guard) owns(m *Memory, table []int32, tokens, pageSize int) bool {
	want := pagetag.Expected{Owner: g.owner, Tokens: uint64(tokens), PageTokens: uint32(pageSize)}
	n, err := want.Pages()
	if err != nil || n > len(table) {
		return false
	}
	g.buf = g.buf[:0]
	for _, page := range table[:n] {
		g.buf = append(g.buf, m.at(page))
	}
	return pagetag.CheckMarks(g.buf, want) == nil
}

// grow makes room for a token more in a page's mark, as a writer of that token.
func (g *guard) grow(m *Memory, page int32, pos, pageSize int) bool {
	index := pos / pageSize
	return m.move(page, markOf(g.owner, index, pos, pageSize), markOf(g.owner, index, pos+1, pageSize))
}

// sumBytes is the length of a checksum.
const sumBytes = 16

// checksum is that of whole pages in the order of a table.
func checksum(c *model.Cache, table []int32) [sumBytes]byte {
	h := xxh3.New()
	for _, page := range table {
		h.Write(c.Page(page))
	}
	return h.Sum128().Bytes()
}
