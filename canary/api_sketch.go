package canary

// SKETCH of the public API; its implementer replaces this file.

import "io"

// ID names one exchange: 34 bits, 13 of run, 4 of tenant, 17 of sequence.
type ID uint64

func MakeID(run, tenant, seq int) ID { panic("sketch") }
func (id ID) Run() int               { panic("sketch") }
func (id ID) Tenant() int            { panic("sketch") }
func (id ID) Seq() int               { panic("sketch") }

// Key is the secret from which all canaries of its owner are made.
type Key [32]byte

// KeyID names a key without giving it away: 16 hex characters.
func (k Key) ID() string { panic("sketch") }

// LoadOrCreateKey reads a key file; it makes one (0600) if there is none.
func LoadOrCreateKey(path string, random io.Reader) (k Key, created bool, err error) {
	panic("sketch")
}

// Coder mints and scans canaries of one key. Safe for concurrent use.
type Coder struct{}

func New(k Key) *Coder { panic("sketch") }

// Words streams words from..from+n of the canary id, separated by single
// spaces, with neither leading nor trailing space.
func (c *Coder) Words(id ID, from, n int) io.Reader { panic("sketch") }

// WordsSize is the length in bytes of what Words yields.
func (c *Coder) WordsSize(id ID, from, n int) int64 { panic("sketch") }

// Token is the short form: CANARY- and 16 characters a-z0-9 that carry id, authenticated.
func (c *Coder) Token(id ID) string { panic("sketch") }

// Nonce returns a short word (10 characters a-z0-9 in two groups) for place 0, 1, 2 ... of an exchange.
func (c *Coder) Nonce(id ID, place int) string { panic("sketch") }

type Form string

const (
	WordChain  Form = "words"
	ShortToken Form = "token"
)

// Hit is a piece of canary found in a text.
type Hit struct {
	ID    ID
	Form  Form
	Word  int   // offset of its first word in the canary, words; 0 for a token
	Words int   // how many words in a row, at least 8; 0 for a token
	Start int64 // byte range in the scanned stream
	End   int64
	View  string // "" for the text itself, else the decoded view ("base64", "hex", "percent")
}

// Scan finds all canaries of the coder's key in p.
func (c *Coder) Scan(p []byte) []Hit { panic("sketch") }

// Scanner is the streaming form: the hits do not depend on how the bytes were cut.
type Scanner struct{}

type ScanOptions struct {
	Decode bool // also look into base64, hex and percent-encoded runs
}

func (c *Coder) NewScanner(o ScanOptions, found func(Hit)) *Scanner { panic("sketch") }
func (s *Scanner) Write(p []byte) (int, error)                      { panic("sketch") }
func (s *Scanner) Close() error                                     { panic("sketch") } // flushes
