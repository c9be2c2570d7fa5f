package receipt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Entry is what the log holds of a receipt: its digest and what it is, short
// enough for a bundle. The receipt itself stands beside what it is about.
type Entry struct {
	Kind   string    `json:"kind"`   // "plan", "result", "preflight", "decision" or "finding"
	SHA256 string    `json:"sha256"` // of the envelope, in hexadecimal
	Time   time.Time `json:"time"`
	Words  string    `json:"words,omitempty"` // one line for people
	// Of is the digest of the plan's envelope that a result is of: whoever has
	// the plan and the log knows of every result.
	Of string `json:"of,omitempty"`
}

// format is the bytes of an entry: the only ones that it has.
func (e Entry) format() []byte {
	p, err := json.Marshal(e)
	if err != nil {
		panic("kvcanary: internal error: " + err.Error())
	}
	return p
}

// ParseEntry reads an entry, written as format writes it.
func ParseEntry(p []byte) (Entry, error) {
	var e Entry
	if err := json.Unmarshal(p, &e); err != nil {
		return e, fmt.Errorf("this is no entry: %w", err)
	}
	if !bytes.Equal(e.format(), p) {
		return e, errors.New("this is no entry as this version of kvcanary writes it")
	}
	return e, nil
}
