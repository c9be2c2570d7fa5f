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
	on      Defences
	router  *Router
	prefill *Prefill
	decode  *Decode

	links  [len(linkOrder)][]message
	outbox []Action                              // of prefill, for decode: not on the link, or not begun to be written, yet
	flying []write                               // one-sided writes that have begun
	slow   int                                   // how many of them, from the first, once leaves alone
	job    *Event                                // prefill's forward pass under way
	steps  []Event                               // decode's
	before func(to Role, e Event) func([]Action) // called before a machine's step; what it returns after it
	work   message                               // what the event being handled carries
	ppages []mem                                 // what each page of prefill's pool holds
	dpages []mem
	sums   map[Room][]mem // prefill's checksums: the pages themselves
	names  map[Room]Room  // number of the request that a room stands for; the same unless ids are used again
	pnames map[Room]Room  // likewise, as the nodes know it
	dnames map[Room]Room
	opens  Room             // requests opened
	down   map[Role]bool    // processes that are dead
	news   map[Role][]Event // what their peers have not been told yet

	opened map[Room]bool
	ended  map[Room]Event // the event that ended it for its client
	logs   bool           // whether to fill log
	log    []string
	trace  []Record // likewise
	stale  []string // reads of slots that their reader did not write
	alien  int      // those of them that somebody else wrote
}

// mem is what a page holds: the writer of each slot, 0 for nobody, and a tag.
type mem struct {
	slots []Room
	tag   tag
}

type tag struct {
	room  Room
	index int
	gen   uint64
}

func (m mem) clone() mem { return mem{slices.Clone(m.slots), m.tag} }

func (m *mem) clear() { clear(m.slots); m.tag = tag{} }

// write is a one-sided write that has begun: it reads from when it lands.
type write struct {
	Event
	from *mem
}

type message struct {
	Event
	name Room  // of Submit: which request it is
	data mem   // of Page: the page as it was when it was sent
	sum  []mem // of Meta: the checksum
}

type link struct{ from, to Role }

// linkOrder lists the links in the order in which a quiet world delivers.
var linkOrder = [...]link{
	{ToRouter, ToDecode}, {ToRouter, ToPrefill}, {ToPrefill, ToDecode}, {ToDecode, ToPrefill},
	{ToPrefill, ToRouter}, {ToDecode, ToRouter},
}

func newWorld(cfg Config) *world {
	w := &world{
		cfg: cfg, on: cfg.Switches.On(), router: NewRouter(cfg), prefill: NewPrefill(cfg), decode: NewDecode(cfg),
		opened: map[Room]bool{}, ended: map[Room]Event{}, sums: map[Room][]mem{},
		names: map[Room]Room{}, pnames: map[Room]Room{}, dnames: map[Room]Room{},
		down: map[Role]bool{}, news: map[Role][]Event{},
		ppages: memory(cfg, cfg.PrefillPages), dpages: memory(cfg, cfg.DecodePages),
	}
	return w
}

func memory(cfg Config, pages int) []mem {
	out := make([]mem, pages)
	for i := range out {
		out[i].slots = make([]Room, cfg.PageSize)
	}
	return out
}

func (w *world) open(client Room, tokens, maxNew int) {
	room, ok := w.router.Mint(client)
	if !ok {
		return // another request of that name is under way
	}
	w.opens++
	w.opened[room], w.names[room] = true, w.opens
	delete(w.ended, room)
	w.handle(ToClient, ToRouter, message{Event: Event{Kind: Open, Room: room, Tokens: tokens, MaxNew: maxNew}})
}

func (w *world) cancel(room Room) {
	if _, over := w.ended[room]; over {
		return
	}
	w.ended[room] = Event{Kind: Cancel, Room: room}
	w.handle(ToClient, ToRouter, message{Event: Event{Kind: Cancel, Room: room}})
}

func (w *world) expire(room Room) {
	if _, over := w.ended[room]; !over && w.opened[room] {
		w.handle(ToClient, ToRouter, message{Event: Event{Kind: Expire, Room: room}})
	}
}

// handle gives a role an event and carries out what it answers.
func (w *world) handle(from, to Role, m message) {
	w.logf("%v <- %v %v", to, from, m.Event)
	w.work = m
	var actions []Action
	var after func([]Action)
	if w.before != nil {
		after = w.before(to, m.Event)
	}
	switch to {
	case ToRouter:
		actions = w.router.Step(m.Event)
	case ToPrefill:
		if m.Kind == Submit {
			w.pnames[m.Room] = m.name
		}
		actions = w.prefill.Step(m.Event)
	case ToDecode:
		if m.Kind == Submit {
			w.dnames[m.Room] = m.name
		}
		actions = w.decode.Step(m.Event)
	}
	if after != nil {
		after(actions)
	}
	if w.logs {
		w.trace = append(w.trace, Record{By: to, In: &m.Event, Out: actions})
	}
	var then []message
	for _, a := range actions {
		w.logf("    %v %v", a.To, a.Event)
		switch {
		case a.To == ToClient:
			w.client(a.Event)
		case a.To == Self && to == ToPrefill:
			then = append(then, w.prefillDoes(a)...)
		case a.To == Self:
			then = append(then, w.decodeDoes(a)...)
		case to == ToPrefill && a.To == ToDecode:
			w.outbox = append(w.outbox, a)
		default:
			w.push(to, a.To, message{Event: a.Event, name: w.names[a.Room]})
		}
	}
	for _, m := range then {
		w.handle(Self, to, m)
	}
}

// push sends a message, unless one of the ends is dead.
func (w *world) push(from, to Role, m message) {
	if w.down[from] || w.down[to] {
		return
	}
	i := slices.Index(linkOrder[:], link{from, to})
	w.links[i] = append(w.links[i], m)
}

func (w *world) client(e Event) {
	if e.Kind == Token {
		if _, over := w.ended[e.Room]; over {
			panic(fmt.Sprintf("token for room %d after its end", e.Room))
		}
		if own := w.names[e.Room]; e.Token != byte(own) {
			w.stale = append(w.stale, fmt.Sprintf("request %d is answered with a token of request %d", own, e.Token))
			w.alien++
		}
		return
	}
	if before, over := w.ended[e.Room]; over {
		panic(fmt.Sprintf("room %d ends twice: %v, %v", e.Room, before, e))
	}
	w.ended[e.Room] = e
}

func (w *world) prefillDoes(a Action) (then []message) {
	switch a.Kind {
	case Zero:
		w.ppages[a.Event.To].clear()
	case Run:
		w.job = &a.Event
	case Halt:
		if w.job != nil && w.job.Room == a.Room {
			w.job = nil
		}
		w.outbox = slices.DeleteFunc(w.outbox, func(u Action) bool {
			if u.Room != a.Room || u.Kind != Page {
				return false
			}
			then = append(then, over(u.Event, false))
			return true
		})
	case Forget:
		delete(w.sums, a.Room)
	}
	return then
}

// over is what prefill is told of a write.
func over(page Event, done bool) message {
	return message{Event: Event{Kind: Put, Room: page.Room, Index: page.Index, To: page.To, Gen: page.Gen, OK: done}}
}

func (w *world) decodeDoes(a Action) (then []message) {
	switch a.Kind {
	case Zero:
		w.dpages[a.Event.To].clear()
	case Stamp:
		w.dpages[a.Event.To].tag = tag{a.Room, a.Index, a.Gen}
	case Write:
		w.store(&w.dpages[a.Event.To], w.work.data)
	case Verify:
		return []message{{Event: Event{Kind: Verified, Room: a.Room, OK: w.verify(a.Event)}}}
	case Step:
		w.steps = append(w.steps, a.Event)
	case Forget:
		w.steps = slices.DeleteFunc(w.steps, func(s Event) bool { return s.Room == a.Room })
	}
	return nil
}

// store writes a page, and its tag where writers write tags.
func (w *world) store(to *mem, from mem) {
	copy(to.slots, from.slots)
	if w.on.Any(TagsByWriter) {
		to.tag = from.tag
	}
}

// verify compares tags and checksum, as far as they are on.
func (w *world) verify(e Event) bool {
	if !w.owns(e.Room, w.cfg.pages(e.Tokens)) {
		return false
	}
	if !e.Summed {
		return true
	}
	table := w.decode.Table(e.Room)
	if !w.on.Any(ChecksumReceiver) {
		table = table[:w.cfg.pages(e.Sent)]
	}
	return slices.EqualFunc(table, w.work.sum, func(page int32, m mem) bool {
		return slices.Equal(w.dpages[page].slots, m.slots)
	})
}

// owns compares the tags of a room's first pages, as far as they are on.
func (w *world) owns(room Room, pages int) bool {
	if !w.on.Any(tags) {
		return true
	}
	for i, page := range w.decode.Table(room)[:pages] {
		if w.dpages[page].tag != (tag{room, i, w.decode.Lease(room)}) {
			return false
		}
	}
	return true
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

// send puts what prefill has for decode on the link, or begins to write it. A
// page that is a message is copied now.
func (w *world) send() bool {
	if len(w.outbox) == 0 {
		return false
	}
	m := message{Event: w.outbox[0].Event}
	w.outbox = w.outbox[1:]
	switch {
	case m.Kind == Page && w.cfg.OneSided:
		w.flying = append(w.flying, write{m.Event, &w.ppages[m.From]})
		return true
	case m.Kind == Page:
		m.data = w.ppages[m.From].clone()
		w.push(ToPrefill, ToDecode, m)
		w.handle(Self, ToPrefill, over(m.Event, true))
		return true
	case m.Kind == Meta:
		m.sum = w.sums[m.Room]
	}
	w.push(ToPrefill, ToDecode, m)
	return true
}

// land ends one of the writes that have begun.
func (w *world) land(i int) bool {
	if i >= len(w.flying) {
		return false
	}
	f := w.flying[i]
	w.flying = slices.Delete(w.flying, i, i+1)
	w.logf("page %d of decode is written for room %d", f.To, f.Room)
	w.store(&w.dpages[f.To], *f.from)
	if !w.down[ToPrefill] {
		w.handle(Self, ToPrefill, over(f.Event, true))
	}
	return true
}

func (w *world) compute(stop bool) bool {
	if w.job == nil {
		return false
	}
	job := *w.job
	w.job = nil
	table := w.prefill.Table(job.Room)
	w.sums[job.Room] = nil
	for s := range job.Tokens {
		w.ppages[table[s/w.cfg.PageSize]].slots[s%w.cfg.PageSize] = w.pnames[job.Room]
	}
	for i, page := range table {
		w.ppages[page].tag = tag{job.Room, i, w.prefill.Lease(job.Room)}
		w.sums[job.Room] = append(w.sums[job.Room], w.ppages[page].clone())
	}
	w.handle(Self, ToPrefill, message{Event: Event{Kind: Ran, Room: job.Room, Token: byte(w.pnames[job.Room]), Stop: stop}})
	return true
}

func (w *world) step(stop bool) bool {
	if len(w.steps) == 0 {
		return false
	}
	s := w.steps[0]
	w.steps = w.steps[1:]
	table := w.decode.Table(s.Room)
	at, slot := s.Pos/w.cfg.PageSize, s.Pos%w.cfg.PageSize
	before := at // pages that tell whose they are before this step writes
	if slot > 0 {
		before++
	}
	if !w.owns(s.Room, before) {
		w.handle(Self, ToDecode, message{Event: Event{Kind: Mismatch, Room: s.Room}})
		return true
	}
	w.dpages[table[at]].slots[slot] = w.dnames[s.Room]
	if slot == 0 && w.on.Any(TagsByWriter) {
		w.dpages[table[at]].tag = tag{s.Room, at, w.decode.Lease(s.Room)}
	}
	w.read(s, table)
	w.handle(Self, ToDecode, message{Event: Event{Kind: Stepped, Room: s.Room, Token: byte(w.dnames[s.Room]), Stop: stop}})
	return true
}

// read notes which slots an answer is made from that are not its own.
func (w *world) read(s Event, table []int32) {
	for slot := range s.Pos {
		page := table[slot/w.cfg.PageSize]
		writer := w.dpages[page].slots[slot%w.cfg.PageSize]
		if writer == w.dnames[s.Room] {
			continue
		}
		w.stale = append(w.stale, fmt.Sprintf("room %d reads slot %d of page %d, written by room %d",
			w.dnames[s.Room], slot, page, writer))
		if writer != 0 {
			w.alien++
		}
	}
}

// crash kills a node. What it had begun to write may still land until it is
// known to be dead and started again.
func (w *world) crash(role Role) bool {
	if w.down[role] || len(w.news[ToRouter]) > 0 {
		return false
	}
	w.down[role] = true
	peer, why := ToDecode, PrefillGone
	if role == ToDecode {
		peer, why = ToPrefill, DecodeGone
	}
	lost := Event{Kind: PeerLost, Refusal: Refusal{Reason: why}}
	w.news[peer] = append(w.news[peer], lost)
	w.news[ToRouter] = append(w.news[ToRouter], lost)
	delete(w.news, role)
	for i, l := range linkOrder {
		if l.from == role || l.to == role {
			w.links[i] = nil
		}
	}
	if role == ToPrefill {
		w.outbox, w.job = nil, nil
	} else {
		w.steps = nil
	}
	return true
}

// tell brings a role the news of a node that died.
func (w *world) tell(role Role) bool {
	if len(w.news[role]) == 0 {
		return false
	}
	e := w.news[role][0]
	w.news[role] = w.news[role][1:]
	if role == ToRouter {
		w.handle(Nobody, role, message{Event: e})
		return true
	}
	w.handle(Nobody, role, message{Event: Event{Kind: e.Kind}})
	if role == ToPrefill { // its connection is gone, so no write of it lands any more
		var pages []Event
		for _, a := range w.outbox {
			if a.Kind == Page {
				pages = append(pages, a.Event)
			}
		}
		for _, f := range w.flying {
			pages = append(pages, f.Event)
		}
		w.outbox, w.flying = nil, nil
		for _, page := range pages {
			w.handle(Self, role, over(page, false))
		}
	}
	return true
}

// restart starts a node anew, once everybody has heard that it died.
func (w *world) restart(role Role) bool {
	if !w.down[role] || len(w.news[ToRouter])+len(w.news[ToPrefill])+len(w.news[ToDecode]) > 0 {
		return false
	}
	w.down[role] = false
	reset := Event{Kind: Reset, Refusal: Refusal{Reason: PrefillGone}}
	peer := ToDecode
	if role == ToPrefill {
		w.prefill, w.ppages, w.flying = NewPrefill(w.cfg), memory(w.cfg, w.cfg.PrefillPages), nil
	} else {
		w.decode, w.dpages = NewDecode(w.cfg), memory(w.cfg, w.cfg.DecodePages)
		reset.Refusal.Reason, peer = DecodeGone, ToPrefill
	}
	if !w.down[peer] {
		w.handle(Nobody, peer, message{Event: Event{Kind: Reset}})
	}
	w.handle(Nobody, ToRouter, message{Event: reset})
	return true
}

// between are the links that may lose, repeat and reorder.
var between = [...]int{2, 3}

func (w *world) lose(i int) bool {
	if len(w.links[i]) == 0 {
		return false
	}
	w.logf("lost: %v", w.links[i][0].Event)
	w.links[i] = w.links[i][1:]
	return true
}

func (w *world) repeat(i int) bool {
	if len(w.links[i]) == 0 {
		return false
	}
	w.links[i] = append(w.links[i], w.links[i][0])
	return true
}

func (w *world) overtake(i, from int) bool {
	if from >= len(w.links[i]) {
		return false
	}
	m := w.links[i][from]
	w.links[i] = slices.Insert(slices.Delete(w.links[i], from, from+1), 0, m)
	return true
}

// once does the first thing that can be done.
func (w *world) once() bool {
	for i := range linkOrder {
		if w.deliver(i) {
			return true
		}
	}
	return w.tell(ToRouter) || w.tell(ToPrefill) || w.tell(ToDecode) ||
		w.send() || w.land(w.slow) || w.compute(false) || w.step(false)
}

// nextIs reports whether the next thing to be done is the delivery of a kind.
func (w *world) nextIs(kind Kind) bool {
	for i := range linkOrder {
		if len(w.links[i]) > 0 {
			return w.links[i][0].Kind == kind
		}
	}
	for _, news := range w.news {
		if len(news) > 0 {
			return false
		}
	}
	switch {
	case len(w.outbox) > 0:
		return w.cfg.OneSided && w.outbox[0].Kind == Page && kind == Page
	case len(w.flying) > w.slow:
		return kind == Put
	case w.job != nil:
		return kind == Run
	}
	return len(w.steps) > 0 && kind == Step
}

func (w *world) logf(format string, args ...any) {
	if w.logs {
		w.log = append(w.log, fmt.Sprintf(format, args...))
	}
}

// check panics unless the pools and the machines agree about every page.
func (w *world) check() {
	if w.cfg.Switches.Has(DoubleOwner) {
		return // they do not
	}
	held := map[Room][]int32{}
	for _, e := range w.prefill.rooms {
		if e.val.owned {
			held[e.room] = append(held[e.room], e.val.local...)
		}
	}
	for _, s := range w.prefill.stopping {
		held[s.room] = append(held[s.room], s.local...)
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
	for _, q := range w.decode.draining {
		held[Draining] = append(held[Draining], q.lease.pages...)
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
	if p.Used()+p.Free() != p.Pages() || len(slices.Compact(free)) != p.Free() {
		panic(fmt.Sprintf("%s: a page is free twice", name))
	}
}

// picture draws the pages of a pool: owner, then the writer of each slot.
func picture(p *Pool, pages []mem) string {
	var b strings.Builder
	for i, m := range pages {
		owner := "free"
		switch r := p.Owner(int32(i)); r {
		case 0:
		case Draining:
			owner = "  --"
		default:
			owner = fmt.Sprintf("%4d", r)
		}
		fmt.Fprintf(&b, "P%d %s |", i, owner)
		for _, writer := range m.slots {
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
