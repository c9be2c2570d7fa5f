package model

// SKETCH of the API; its implementer replaces this file.

// Special tokens. All other tokens are bytes.
const (
	DocStart  = 0 // also the placeholder of a refused prompt
	User      = 1
	Assistant = 2
	EndOfTurn = 3
)

// Table is a page table: slot s of a sequence is slot s%pageSize of page Table[s/pageSize].
type Table []int32

// Cache is the KV memory of a node: fixed pages, never cleared.
type Cache struct{}

func NewCache(pages, pageSize int) *Cache                        { panic("sketch") }
func NewCacheOn(mem []byte, pages, pageSize int) (*Cache, error) { panic("sketch") } // over given memory (shared memory later)
func (c *Cache) Pages() int                                      { panic("sketch") }
func (c *Cache) PageSize() int                                   { panic("sketch") }
func (c *Cache) PageBytes() int                                  { panic("sketch") }
func (c *Cache) Page(i int32) []byte                             { panic("sketch") } // raw bytes of a page, for transfer
func (c *Cache) Zero(i int32)                                    { panic("sketch") }

// Model holds the weights; it is read-only and safe for concurrent use.
type Model struct{}

func New() *Model { panic("sketch") }

// Write computes and stores K and V of tokens at positions pos, pos+1, ...
func (m *Model) Write(c *Cache, t Table, pos int, tokens []byte) { panic("sketch") }

// Logits runs the last layer's attention for the token at position pos, which
// must have been written, over slots 0..pos of the table. workers splits the pages.
func (m *Model) Logits(c *Cache, t Table, pos int, token byte, workers int) Logits { panic("sketch") }

// Logits are the attention masses of the 256 next tokens.
type Logits [256]float32

func (l *Logits) Greedy() byte                                     { panic("sketch") }
func (l *Logits) Sample(temperature float64, uniform float64) byte { panic("sketch") } // uniform in [0,1)
