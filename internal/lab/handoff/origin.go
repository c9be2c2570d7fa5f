package handoff

import (
	"reflect"
	"slices"
)

// Origin says whose bytes a page of decode's pool holds: those of page Index
// of a room's prompt and answer. Room 0: nobody has written it.
type Origin struct {
	Room  Room
	Index int
}

// Origins follows a trace and knows who has written each page of decode's pool
// last. It runs decode's machine over again, and looks only at what the trace
// says: the engine itself keeps no such account.
type Origins struct {
	decode *Decode
	cfg    Config
	last   []Origin
	// OnCommit is called when a room's answer begins, with its page table and
	// whose bytes each page holds at that moment; index i of both is page i of
	// the room's prompt.
	OnCommit func(room Room, table []int32, origins []Origin)
}

// NewOrigins starts with an engine that nobody has used yet.
func NewOrigins(cfg Config) *Origins {
	return &Origins{decode: NewDecode(cfg), cfg: cfg, last: make([]Origin, cfg.DecodePages)}
}

// Step takes the next record. It reports false if the machine would not have
// acted as the record says.
func (o *Origins) Step(r Record) bool {
	if r.Start && r.By == ToDecode {
		o.decode, o.last = NewDecode(o.cfg), make([]Origin, o.cfg.DecodePages)
	}
	if r.In != nil && r.By == ToPrefill && r.In.Kind == Put && r.In.OK && o.cfg.OneSided {
		o.last[r.In.To] = Origin{r.In.Room, r.In.Index}
	}
	if r.By != ToDecode || r.In == nil {
		return true
	}
	var prompt []int32
	if r.In.Kind == Meta || r.In.Kind == Verified {
		prompt = slices.Clone(o.decode.Table(r.In.Room)) // the answer may grow it in the same step
	}
	out := o.decode.Step(*r.In)
	if len(out) != len(r.Out) || len(out) > 0 && !reflect.DeepEqual(out, r.Out) {
		return false
	}
	if len(out) > 0 && out[0].Kind == Ack && o.OnCommit != nil {
		origins := make([]Origin, len(prompt))
		for i, page := range prompt {
			origins[i] = o.last[page]
		}
		o.OnCommit(r.In.Room, prompt, origins)
	}
	for _, a := range out {
		switch a.Kind {
		case Write:
			o.last[a.Event.To] = Origin{a.Room, a.Index}
		case Step:
			index := a.Pos / o.cfg.PageSize
			o.last[o.decode.Table(a.Room)[index]] = Origin{a.Room, index}
		case Zero:
			o.last[a.Event.To] = Origin{}
		}
	}
	return true
}
