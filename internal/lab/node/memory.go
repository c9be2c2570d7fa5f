package node

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/kvcanary/kvcanary/internal/lab/model"
	"github.com/kvcanary/kvcanary/pagetag"
)

// Memory is a node's pool: the bytes of its pages, never cleared, and a mark
// beside each that says whose they are. Decode's may lie in a file that prefill
// maps too and writes to.
type Memory struct {
	cache *model.Cache
	marks []pagetag.Mark // by page
	unmap func() error
}

// NewMemory makes a pool that nobody else can see.
func NewMemory(pages, pageSize int) *Memory {
	return &Memory{
		cache: model.NewCache(pages, pageSize), marks: make([]pagetag.Mark, pages),
		unmap: func() error { return nil },
	}
}

// marksBytes is how many bytes of a file the marks take: whole blocks, so that
// the pages behind them begin with one.
func marksBytes(pages int) int { return (pages*pagetag.MarkSize + 4095) &^ 4095 }

// fileBytes is the length of the file of a pool, bytes.
func fileBytes(pages, pageSize int) int { return marksBytes(pages) + model.CacheBytes(pages, pageSize) }

// CreateMemory makes a pool in a file that only this user may open, and says
// under which path another process finds it for as long as this one has it open.
// The file is written whole, so that what is too small for it shows now.
func CreateMemory(pages, pageSize int) (m *Memory, path string, err error) {
	f, err := newShared()
	if err != nil {
		return nil, "", fmt.Errorf("shared pool: %w", err)
	}
	if err := fill(f, fileBytes(pages, pageSize)); err != nil {
		return nil, "", errors.Join(fmt.Errorf("shared pool: %w", err), f.Close())
	}
	path, forget, err := share(f)
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("shared pool: %w", err), f.Close())
	}
	close := func() error { return errors.Join(f.Close(), forget()) }
	if m, err = mapMemory(f, pages, pageSize); err != nil {
		return nil, "", errors.Join(err, close())
	}
	unmap := m.unmap
	m.unmap = func() error { return errors.Join(unmap(), close()) }
	return m, path, nil
}

// fill writes so many zero bytes.
func fill(f *os.File, bytes int) error {
	zero := make([]byte, 1<<20)
	for left := bytes; left > 0; left -= len(zero) {
		if _, err := f.Write(zero[:min(left, len(zero))]); err != nil {
			return err
		}
	}
	return nil
}

// OpenMemory maps the pool of another process.
func OpenMemory(path string, pages, pageSize int) (*Memory, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("shared pool: %w: decode has gone", err)
	}
	defer f.Close()
	return mapMemory(f, pages, pageSize)
}

// mapMemory maps a file, which has to be as long as its pool.
func mapMemory(f *os.File, pages, pageSize int) (*Memory, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("shared pool: %w", err)
	}
	if have, need := info.Size(), int64(fileBytes(pages, pageSize)); have != need || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("shared pool: %s has %d bytes and %d pages of %d tokens take %d: start both nodes with the same sizes",
			f.Name(), have, pages, pageSize, need)
	}
	mem, unmap, err := mapFile(f, fileBytes(pages, pageSize))
	if err != nil {
		return nil, fmt.Errorf("shared pool: %w", err)
	}
	cache, err := model.NewCacheOn(mem[marksBytes(pages):], pages, pageSize)
	if err != nil {
		return nil, errors.Join(err, unmap())
	}
	marks := unsafe.Slice((*pagetag.Mark)(unsafe.Pointer(&mem[0])), pages)
	return &Memory{cache: cache, marks: marks, unmap: unmap}, nil
}

// Close lets go of the memory, which must not be used after.
func (m *Memory) Close() error { return m.unmap() }

// clear takes a page's mark away, before its bytes change.
func (m *Memory) clear(page int32) { atomic.StoreUint64(&m.marks[page].Place, 0) }

// mark sets a page's mark, after its bytes have been written.
func (m *Memory) mark(page int32, mark pagetag.Mark) {
	atomic.StoreUint64(&m.marks[page].Owner, mark.Owner)
	atomic.StoreUint64(&m.marks[page].Place, mark.Place)
}

// at is a page's mark.
func (m *Memory) at(page int32) pagetag.Mark {
	place := atomic.LoadUint64(&m.marks[page].Place)
	return pagetag.Mark{Owner: atomic.LoadUint64(&m.marks[page].Owner), Place: place}
}

// move changes where a page's mark says that it belongs, unless somebody else
// has written it in the meantime. The owner is not touched: what another writer
// has left there stays to be seen.
func (m *Memory) move(page int32, from, to pagetag.Mark) bool {
	return atomic.CompareAndSwapUint64(&m.marks[page].Place, from.Place, to.Place)
}

// store writes a page with its mark; a reader of the mark sees that it is being
// written. Without a mark of the writer's the old one stays, whatever it says.
func (m *Memory) store(page int32, from []byte, mark pagetag.Mark, tagged bool) {
	if !tagged {
		copy(m.cache.Page(page), from)
		return
	}
	m.clear(page)
	copy(m.cache.Page(page), from)
	m.mark(page, mark)
}
