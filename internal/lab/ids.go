package lab

import (
	"hash/fnv"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// IDSettings say what requests are told apart by.
type IDSettings struct {
	// Traces has the client's trace id be the request's, in place of its request id.
	Traces bool
	// Clock has answers find their clients by the second that they have come in.
	Clock  bool
	Unique bool // defence: by a number that does not come twice, whatever else
}

// name is a number for what the client calls a request, for an engine with
// fault IDReuse; others number requests themselves.
func (e *Engine) name(r Request) handoff.Room {
	name := r.Name
	if e.on.IDs.Traces {
		name = r.Trace
	}
	if name == "" {
		e.unnamed++
		return handoff.Room(1<<62 + e.unnamed)
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	return handoff.Room(h.Sum64()>>2 | 1)
}

// clock is the engine's clock for ids, if it is one that they come from.
func (s IDSettings) clock(now func() time.Time) func() handoff.Room {
	if !s.Clock || s.Unique {
		return nil
	}
	if now == nil {
		now = time.Now
	}
	return func() handoff.Room { return handoff.Room(now().Unix()) }
}
