package handoff

import (
	"fmt"
	"slices"
	"strings"
)

// world runs the three machines with links that keep order and pages that
// remember who wrote each slot, which the machines themselves do not know.
type world struct {
	cfg     Config
	router  *Router
	prefill *Prefill
	decode  *Decode

	links  [len(linkOrder)][]message
	outbox []Action // of prefill, for decode: not on the link yet
	job    *Event   // prefill's forward pass under way
	steps  []Event  // decode's
	work   message  // what the event being handled carries
	ppages [][]Room // writer of each slot, 0 for nobody
	dpages [][]Room

	opened map[Room]bool
	ended  map[Room]Event // the event that ended it for its client
	logs   bool           // whether to fill log
	log    []string
	trace  []Record // likewise
	stale  []string // reads of slots that their reader did not write
	alien  int      // those of them that somebody else wrote
}

type message struct {
	Event
	data []Room // of Page: the page as it was when it was sent
}

type link struct{ from, to Role }

// linkOrder lists the links in the order in which a quiet world delivers.
var linkOrder = [...]link{
	{ToRouter, ToDecode}, {ToRouter, ToPrefill}, {ToPrefill, ToDecode}, {ToDecode, ToPrefill},
	{ToPrefill, ToRouter}, {ToDecode, ToRouter},
}

func newWorld(cfg Config) *world {
	w := &world{
		cfg: cfg, router: NewRouter(cfg), prefill: NewPrefill(cfg), decode: NewDecode(cfg),
		opened: map[Room]bool{}, ended: map[Room]Event{},
		ppages: make([][]Room, cfg.PrefillPages), dpages: make([][]Room, cfg.DecodePages),
	}
	for _, pages := range [][][]Room{w.ppages, w.dpages} {
		for i := range pages {
			pages[i] = make([]Room, cfg.PageSize)
		}
	}
	return w
}

func (w *world) open(room Room, tokens, maxNew int) {
	w.opened[room] = true
	w.handle(ToClient, ToRouter, message{Event: Event{Kind: Open, Room: room, Tokens: tokens, MaxNew: maxNew}})
}

func (w *world) cancel(room Room) {
	if _, over := w.ended[room]; over {
		return
	}
	w.ended[room] = Event{Kind: Cancel, Room: room}
	w.handle(ToClient, ToRouter, message{Event: Event{Kind: Cancel, Room: room}})
}

// handle gives a role an event and carries out what it answers.
func (w *world) handle(from, to Role, m message) {
	w.logf("%v <- %v %v", to, from, m.Event)
	w.work = m
	var actions []Action
	switch to {
	case ToRouter:
		actions = w.router.Step(m.Event)
	case ToPrefill:
		actions = w.prefill.Step(m.Event)
	case ToDecode:
		actions = w.decode.Step(m.Event)
	}
	if w.logs {
		w.trace = append(w.trace, Record{By: to, In: &m.Event, Out: actions})
	}
	for _, a := range actions {
		w.logf("    %v %v", a.To, a.Event)
		switch {
		case a.To == ToClient:
			w.client(a.Event)
		case a.To == Self && to == ToPrefill:
			w.prefillDoes(a)
		case a.To == Self:
			w.decodeDoes(a)
		case to == ToPrefill && a.To == ToDecode:
			w.outbox = append(w.outbox, a)
		default:
			w.push(to, a.To, message{Event: a.Event})
		}
	}
}

func (w *world) push(from, to Role, m message) {
	i := slices.Index(linkOrder[:], link{from, to})
	w.links[i] = append(w.links[i], m)
}

func (w *world) client(e Event) {
	if e.Kind == Token {
		if _, over := w.ended[e.Room]; over {
			panic(fmt.Sprintf("token for room %d after its end", e.Room))
		}
		return
	}
	if before, over := w.ended[e.Room]; over {
		panic(fmt.Sprintf("room %d ends twice: %v, %v", e.Room, before, e))
	}
	w.ended[e.Room] = e
}

func (w *world) prefillDoes(a Action) {
	switch a.Kind {
	case Zero:
		clear(w.ppages[a.Event.To])
	case Run:
		w.job = &a.Event
	case Halt:
		if w.job != nil && w.job.Room == a.Room {
			w.job = nil
		}
		w.outbox = slices.DeleteFunc(w.outbox, func(u Action) bool {
			return u.Room == a.Room && (u.Kind == Page || u.Kind == Meta)
		})
	}
}

func (w *world) decodeDoes(a Action) {
	switch a.Kind {
	case Zero:
		clear(w.dpages[a.Event.To])
	case Write:
		copy(w.dpages[a.Event.To], w.work.data)
	case Step:
		w.steps = append(w.steps, a.Event)
	case Forget:
		w.steps = slices.DeleteFunc(w.steps, func(s Event) bool { return s.Room == a.Room })
	}
}

// Each of the following does one thing if it can and says whether it did.

func (w *world) deliver(i int) bool {
	if len(w.links[i]) == 0 {
		return false
	}
	m := w.links[i][0]
	w.links[i] = w.links[i][1:]
	w.handle(linkOrder[i].from, linkOrder[i].to, m)
	return true
}

// send puts what prefill has for decode on the link; a page is copied now.
func (w *world) send() bool {
	if len(w.outbox) == 0 {
		return false
	}
	m := message{Event: w.outbox[0].Event}
	if m.Kind == Page {
		m.data = slices.Clone(w.ppages[m.From])
	}
	w.outbox = w.outbox[1:]
	w.push(ToPrefill, ToDecode, m)
	return true
}

func (w *world) compute(stop bool) bool {
	if w.job == nil {
		return false
	}
	job := *w.job
	w.job = nil
	table := w.prefill.Table(job.Room)
	for s := range job.Tokens {
		w.ppages[table[s/w.cfg.PageSize]][s%w.cfg.PageSize] = job.Room
	}
	w.handle(Self, ToPrefill, message{Event: Event{Kind: Ran, Room: job.Room, Token: byte(job.Room), Stop: stop}})
	return true
}

func (w *world) step(stop bool) bool {
	if len(w.steps) == 0 {
		return false
	}
	s := w.steps[0]
	w.steps = w.steps[1:]
	table := w.decode.Table(s.Room)
	w.dpages[table[s.Pos/w.cfg.PageSize]][s.Pos%w.cfg.PageSize] = s.Room
	for slot := range s.Pos {
		page := table[slot/w.cfg.PageSize]
		if writer := w.dpages[page][slot%w.cfg.PageSize]; writer != s.Room {
			w.stale = append(w.stale, fmt.Sprintf("room %d reads slot %d of page %d, written by room %d",
				s.Room, slot, page, writer))
			if writer != 0 {
				w.alien++
			}
		}
	}
	w.handle(Self, ToDecode, message{Event: Event{Kind: Stepped, Room: s.Room, Token: byte(s.Room), Stop: stop}})
	return true
}

// once does the first thing that can be done.
func (w *world) once() bool {
	for i := range linkOrder {
		if w.deliver(i) {
			return true
		}
	}
	return w.send() || w.compute(false) || w.step(false)
}

// nextIs reports whether the next thing to be done is the delivery of a kind.
func (w *world) nextIs(kind Kind) bool {
	for i := range linkOrder {
		if len(w.links[i]) > 0 {
			return w.links[i][0].Kind == kind
		}
	}
	return len(w.outbox) == 0 && (w.job != nil && kind == Run || w.job == nil && len(w.steps) > 0 && kind == Step)
}

func (w *world) logf(format string, args ...any) {
	if w.logs {
		w.log = append(w.log, fmt.Sprintf(format, args...))
	}
}

// check panics unless the pools and the machines agree about every page.
func (w *world) check() {
	held := map[Room][]int32{}
	for _, e := range w.prefill.rooms {
		held[e.room] = e.val.local
	}
	checkPool("prefill", &w.prefill.pool, held)
	held = map[Room][]int32{}
	promised := 0
	for _, e := range w.decode.rooms {
		held[e.room] = e.val.pages
		if len(e.val.pages) > 0 {
			promised += e.val.total - len(e.val.pages)
		}
	}
	checkPool("decode", &w.decode.pool, held)
	if promised != w.decode.promised || promised > w.decode.pool.Free() {
		panic(fmt.Sprintf("%d pages promised, %d noted, %d free", promised, w.decode.promised, w.decode.pool.Free()))
	}
}

func checkPool(name string, p *Pool, held map[Room][]int32) {
	owned := make([]Room, p.Pages())
	for room, pages := range held {
		for _, page := range pages {
			if owned[page] != 0 {
				panic(fmt.Sprintf("%s page %d has two owners: rooms %d and %d", name, page, owned[page], room))
			}
			owned[page] = room
		}
	}
	free := slices.Concat(p.front, p.apart)
	slices.Sort(free)
	for page, room := range owned {
		_, isFree := slices.BinarySearch(free, int32(page))
		if p.Owner(int32(page)) != room || isFree != (room == 0) {
			panic(fmt.Sprintf("%s page %d: held by room %d, owner %d, free %v", name, page, room, p.Owner(int32(page)), isFree))
		}
	}
	if len(slices.Compact(free)) != p.Free() {
		panic(fmt.Sprintf("%s: a page is free twice", name))
	}
}

// picture draws the pages of a pool: owner, then the writer of each slot.
func picture(p *Pool, pages [][]Room) string {
	var b strings.Builder
	for i, slots := range pages {
		owner := "free"
		if r := p.Owner(int32(i)); r != 0 {
			owner = fmt.Sprintf("%4d", r)
		}
		fmt.Fprintf(&b, "P%d %s |", i, owner)
		for _, writer := range slots {
			if writer == 0 {
				b.WriteString(" .")
			} else {
				fmt.Fprintf(&b, " %d", writer)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
