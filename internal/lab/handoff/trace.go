package handoff

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// Record is one line of a trace: how the engine is set up, what a request is
// called, that a node's process has begun, or one step of one machine.
type Record struct {
	Config *Config  `json:"config,omitempty"` // first line of a trace
	Start  bool     `json:"start,omitempty"`  // a process has begun: its machine knows nothing
	Name   string   `json:"name,omitempty"`   // what the API calls the room of In
	By     Role     `json:"by,omitempty"`     // whose step
	In     *Event   `json:"in,omitempty"`
	Out    []Action `json:"out,omitempty"`
}

// AppendLine appends the record as one line of JSON.
func (r Record) AppendLine(b []byte) []byte {
	line, err := json.Marshal(r)
	if err != nil {
		broken("trace record: %v", err)
	}
	return append(append(b, line...), '\n')
}

// maxLine is the longest line of a trace, bytes: a page table of a million
// pages takes less.
const maxLine = 16 << 20

// ReadTrace calls f for every line of a trace. A line that is not a whole
// record is an error that names it.
func ReadTrace(r io.Reader, f func(Record) error) error {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	n := 0
	for in.Scan() {
		n++
		var rec Record
		if err := json.Unmarshal(in.Bytes(), &rec); err != nil {
			return fmt.Errorf("trace line %d: %w", n, err)
		}
		if err := f(rec); err != nil {
			return fmt.Errorf("trace line %d: %w", n, err)
		}
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("trace line %d: %w", n+1, err)
	}
	return nil
}

// MarshalText writes the kind's name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a kind's name.
func (k *Kind) UnmarshalText(b []byte) error {
	return unmarshalName((*uint8)(k), kindNames[:], "kind", b)
}

// MarshalText writes the role's name.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a role's name.
func (r *Role) UnmarshalText(b []byte) error {
	return unmarshalName((*uint8)(r), roleNames[:], "role", b)
}

func unmarshalName(to *uint8, names []string, what string, b []byte) error {
	i := slices.Index(names, string(b))
	if i < 0 {
		return fmt.Errorf("unknown %s %q", what, b)
	}
	*to = uint8(i)
	return nil
}
