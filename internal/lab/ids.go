package lab

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// IDSettings say what requests are told apart by.
type IDSettings struct {
	// Traces has the client's trace id be the request's, in place of its request id.
	Traces bool
	// Clock has answers find their clients by the second that they have come in.
	Clock bool
	// Outbox has what decode yields wait for a while on its way to the clients.
	Outbox bool
	Unique bool // defence: by a number that does not come twice, whatever else
	Refuse bool // defence: a request does not wait for one of its name that is under way
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

// How long a request waits for one of the same name to end, where names count,
// and how often it looks.
const (
	nameWait = 150 * time.Millisecond
	nameLook = time.Millisecond
)

var idInUse = &Error{Status: 400, Type: "BadRequestError", Message: "Another request with this id is under way."}

// queue has a request wait until its name is free.
func (e *Engine) queue(ctx context.Context, c *call, r Request, name handoff.Room) {
	look := time.NewTicker(nameLook)
	defer look.Stop()
	late := time.NewTimer(nameWait)
	defer late.Stop()
	for {
		select {
		case <-look.C:
			if e.retry(ctx, c, r, name) {
				return
			}
		case <-late.C:
			c.refuse(idInUse)
			return
		case <-ctx.Done():
			c.refuse(clientGone)
			return
		case <-e.closing:
			c.refuse(e.whyClosed())
			return
		}
	}
}

// retry lets a request in that has waited for its name.
func (e *Engine) retry(ctx context.Context, c *call, r Request, name handoff.Room) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.why.Reason == handoff.Served && e.open(ctx, c, r, name)
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
