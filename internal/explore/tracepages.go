package explore

import (
	"fmt"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// about is what is known of a room besides.
type about struct {
	req  int
	long bool // it must be refused
}

// source is what prefill's node has under way.
type source struct {
	rooms  map[handoff.Room]about
	job    handoff.Room
	writes map[writeKey]underWay
	read   map[int32]int // prefill's pages that writes under way read, and how many do

	// What prefill knows of decode's life: a process may begin before or after
	// the trace says so, as each writes its own lines.
	met      bool // there is a decode that it writes to
	void     bool // and it has died
	unheard  int  // decodes that have begun since prefill met one
	untraced int  // decodes that it has met and that have not begun yet
}

type writeKey struct {
	room  handoff.Room
	gen   uint64
	index int
}

// underWay is a write that is not over.
type underWay struct {
	halted bool  // it may be dropped
	void   bool  // the memory that it was for is gone
	dead   bool  // decode has been told that who does it is dead
	from   int32 // prefill's page
}

func (s *source) restart() {
	*s = source{rooms: map[handoff.Room]about{}, writes: map[writeKey]underWay{}, read: map[int32]int{}, met: true}
}

// decodeStarts takes note of a decode that has taken the place of another.
func (s *source) decodeStarts() {
	if s.untraced > 0 {
		s.untraced--
		return
	}
	s.unheard++
	s.void = s.met
	for k, w := range s.writes {
		w.void = true
		s.writes[k] = w
	}
}

// hears takes note of what prefill knows of decode. Once it has lost it, no
// write of its own lands there any more.
func (s *source) hears(k handoff.Kind) {
	s.met, s.void = k == handoff.Reset, false
	switch {
	case k == handoff.PeerLost:
		for key, w := range s.writes {
			w.halted, w.void = true, true
			s.writes[key] = w
		}
	case s.unheard > 0:
		s.unheard = 0
	default:
		s.untraced++
	}
}

func (s *source) held(room handoff.Room, req int, long bool) { s.rooms[room] = about{req, long} }

func key(e handoff.Event) writeKey { return writeKey{e.Room, e.Gen, e.Index} }

func (s *source) start(e handoff.Event) {
	s.writes[key(e)] = underWay{void: s.void, from: e.From}
	s.read[e.From]++
}

// died takes note that decode was told that the prefill before is dead: what was
// under way then lands no more.
func (s *source) died() {
	for k, w := range s.writes {
		w.dead = true
		s.writes[k] = w
	}
}

func (s *source) finish(e handoff.Event) underWay {
	w, ok := s.writes[key(e)]
	if ok {
		delete(s.writes, key(e))
		if s.read[w.from]--; s.read[w.from] == 0 {
			delete(s.read, w.from)
		}
	}
	return w
}

// allows reports whether the node was asked for what it tells its machine.
func (s *source) allows(e handoff.Event) bool {
	switch e.Kind {
	case handoff.Ran:
		ok := s.job == e.Room && e.Room != 0
		s.job = 0
		return ok
	case handoff.Put:
		w, ok := s.writes[key(e)]
		return ok && (e.OK || w.halted)
	}
	return false
}

func (s *source) do(e handoff.Event) {
	switch e.Kind {
	case handoff.Run:
		s.job = e.Room
	case handoff.Halt:
		if s.job == e.Room {
			s.job = 0
		}
		for k, w := range s.writes {
			if k.room == e.Room {
				w.halted = true
				s.writes[k] = w
			}
		}
	case handoff.Forget:
		delete(s.rooms, e.Room)
	}
}

// fill has a prompt be computed in pages that nothing else may read or own.
func (s *source) fill(room handoff.Room, table []int32) error {
	for _, page := range table {
		if s.read[page] > 0 {
			return fmt.Errorf("%v: page %d of prefill is given to room %d while a write still reads it for another", I3, page, room)
		}
	}
	return nil
}

func (s *source) idle() bool { return s.job == 0 && len(s.writes) == 0 }

// holding is who holds which page of decode's pool, and who wrote it last.
type holding struct {
	size   int
	rooms  map[handoff.Room]about
	tables map[handoff.Room]*pageTable
	owner  []handoff.Origin // by page: whose table it is in, and where
	writer []handoff.Origin // by page
	work   map[handoff.Room]bool
	steps  int
}

// pageTable is a room's page table.
type pageTable struct {
	pages []int32
	wrong int // pages whose last writer is not the room, at that index
}

func newHolding(cfg handoff.Config) holding {
	return holding{
		size: cfg.PageSize, rooms: map[handoff.Room]about{}, tables: map[handoff.Room]*pageTable{}, work: map[handoff.Room]bool{},
		owner: make([]handoff.Origin, cfg.DecodePages), writer: make([]handoff.Origin, cfg.DecodePages),
	}
}

func (h *holding) held(room handoff.Room, req int, long bool) { h.rooms[room] = about{req, long} }

// waits numbers the two things that a room's machine can wait for.
func (h *holding) waits(k handoff.Kind) handoff.Room {
	if k == handoff.Verify || k == handoff.Verified {
		return 1
	}
	return 0
}

func (h *holding) allows(e handoff.Event) bool {
	switch e.Kind {
	case handoff.Verified, handoff.Stepped, handoff.Mismatch:
		return h.work[e.Room*2+h.waits(e.Kind)]
	}
	return false
}

func (h *holding) do(d *handoff.Decode, a *handoff.Action) error {
	e := &a.Event
	switch a.Kind {
	case handoff.Reserved:
		if h.rooms[e.Room].long {
			return fmt.Errorf("%v: room %d must be refused and owns pages of decode", I2, e.Room)
		}
		h.tables[e.Room] = &pageTable{}
		for _, page := range e.Pages {
			if err := h.hold(page, e.Room); err != nil {
				return err
			}
		}
	case handoff.Write:
		if o := h.owner[e.To]; o != (handoff.Origin{Room: e.Room, Index: e.Index}) {
			return fmt.Errorf("%v: a page of room %d is stored in page %d, which is room %d's", I7, e.Room, e.To, o.Room)
		}
		h.write(e.To, handoff.Origin{Room: e.Room, Index: e.Index})
	case handoff.Zero:
		h.write(e.To, handoff.Origin{})
	case handoff.Verify:
		h.work[e.Room*2+1] = true
	case handoff.Step:
		h.work[e.Room*2] = true
		return h.grow(d, e)
	case handoff.Forget:
		h.forget(e.Room)
	}
	return nil
}

// hold puts a page at the end of a room's table.
func (h *holding) hold(page int32, room handoff.Room) error {
	t := h.tables[room]
	if o := h.owner[page]; o.Room != 0 {
		return fmt.Errorf("%v: page %d of decode is in the tables of rooms %d and %d", I3, page, o.Room, room)
	}
	o := handoff.Origin{Room: room, Index: len(t.pages)}
	h.owner[page] = o
	t.pages = append(t.pages, page)
	if h.writer[page] != o {
		t.wrong++
	}
	return nil
}

// write takes note of who wrote a page last.
func (h *holding) write(page int32, by handoff.Origin) {
	o := h.owner[page]
	if t := h.tables[o.Room]; t != nil {
		if h.writer[page] == o {
			t.wrong++
		}
		if by == o {
			t.wrong--
		}
	}
	h.writer[page] = by
}

// land takes note of a one-sided write that is over.
func (h *holding) land(d *handoff.Decode, e handoff.Event) error {
	owner := d.Pool().Owner(e.To)
	if d.Pool().Gen(e.To) != e.Gen || owner != e.Room && owner != handoff.Draining {
		return fmt.Errorf("%v: a page of room %d lands in page %d, which is not leased to it any more", I7, e.Room, e.To)
	}
	h.write(e.To, handoff.Origin{Room: e.Room, Index: e.Index})
	return nil
}

// grow has a step store its token: in a page that begins with it nobody else's
// are left to be read.
func (h *holding) grow(d *handoff.Decode, e *handoff.Event) error {
	t := h.tables[e.Room]
	index := e.Pos / h.size
	if t == nil {
		return fmt.Errorf("%v: room %d computes a token and has no pages", I1, e.Room)
	}
	if index == len(t.pages) {
		if err := h.hold(d.Table(e.Room)[index], e.Room); err != nil {
			return err
		}
	}
	if e.Pos%h.size == 0 {
		h.write(t.pages[index], handoff.Origin{Room: e.Room, Index: index})
	}
	return nil
}

// read has an answer's next token be computed from all of its pages.
func (h *holding) read(room handoff.Room) error {
	t := h.tables[room]
	if t == nil || t.wrong == 0 {
		return nil
	}
	for i, page := range t.pages {
		if o := h.writer[page]; o != (handoff.Origin{Room: room, Index: i}) {
			return fmt.Errorf("%v: room %d reads page %d, which room %d has written last (0 is nobody)", I1, room, page, o.Room)
		}
	}
	return nil
}

func (h *holding) forget(room handoff.Room) {
	if t := h.tables[room]; t != nil {
		for _, page := range t.pages {
			h.owner[page] = handoff.Origin{}
		}
		delete(h.tables, room)
	}
	delete(h.rooms, room)
	delete(h.work, room*2)
	delete(h.work, room*2+1)
}

// audit counts decode's pages now and then: it takes time.
func (h *holding) audit(d *handoff.Decode) error {
	if h.steps++; h.steps%4096 != 0 {
		return nil
	}
	if all := checkTables(d); all != nil {
		return fmt.Errorf("%v: %s", all[0].Invariant, all[0].Text)
	}
	if pool := d.Pool(); pool.Free()+pool.Used() != pool.Pages() {
		return fmt.Errorf("%v: of decode's %d pages %d are free and %d owned or draining", I4, pool.Pages(), pool.Free(), pool.Used())
	}
	return nil
}
