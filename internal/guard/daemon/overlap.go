package daemon

import (
	"fmt"
	"io"

	"github.com/kvcanary/kvcanary/internal/guard/overlap"
)

// newOverlap makes the memory of what tenants send, nil where the file asks for
// none. Its key is made anew for every start and written nowhere.
func newOverlap(s *Setup, o Options) (*overlap.Index, error) {
	c := s.Config.Overlap
	if c.Memory == 0 {
		return nil, nil
	}
	made := overlap.Options{Memory: c.Memory, Keep: c.Keep, Letters: c.Letters, Start: o.Now()}
	if _, err := io.ReadFull(o.Random, made.Key[:]); err != nil {
		return nil, fmt.Errorf("make a key for overlap: %w", err)
	}
	return overlap.New(made)
}
