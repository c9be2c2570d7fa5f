package explore

import (
	"fmt"
	"strings"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// party is a column of a sequence diagram.
type party string

// The parties.
const (
	client_  party = "clients"
	router_  party = "router"
	prefill_ party = "prefill"
	decode_  party = "decode"
	pages_   party = "pages" // decode's memory
)

var partyOf = map[slot]party{
	slotRouter: router_, slotPrefill: prefill_, slotDecode: decode_, slotPages: pages_, slotSource: prefill_,
}

// Arrow is what a step looks like in a sequence diagram. From and To are the
// same for what a party does by itself.
type Arrow struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Label string `json:"label"`
	Lost  bool   `json:"lost,omitempty"`
}

// tell puts a choice and what followed from it into words.
func (m *Model) tell(world [parts]part, f free, all []happened) Step {
	var s Step
	switch first := all[0]; first.slot {
	case slotRouter:
		s = m.tellClient(world[slotRouter].(*front), f)
	case slotPrefill:
		e := all[0].out.in
		s = step(prefill_, prefill_, "Run", e, "prefill computes %s", prompt(e))
	case slotDecode:
		s = tellLook(all)
	case slotWrites:
		s = tellWrite(all)
	case slotPower:
		s = tellPower(first.op)
	default:
		s = tellDelivery(all)
	}
	for _, h := range all {
		if did := whatItDid(h); did != "" {
			s.Text += "; " + did
		}
	}
	return s
}

func step(from, to party, kind string, e handoff.Event, format string, args ...any) Step {
	label := kind
	if e.Room != 0 {
		label += fmt.Sprintf(" %d", e.Room)
	}
	return Step{fmt.Sprintf(format, args...), Arrow{From: string(from), To: string(to), Label: label}}
}

func (m *Model) tellClient(f *front, c free) Step {
	if c.op.kind == opOpen {
		shape, n := m.setup.Shapes[c.op.a], len(f.clients)
		e := handoff.Event{Room: f.clients[n-1].room}
		s := step(client_, router_, "Open", e, "tenant %s sends request %d: a prompt of %d tokens for an answer of at most %d",
			shape.Tenant, n, shape.Tokens, shape.MaxNew)
		if int(e.Room) != n {
			s.Text += fmt.Sprintf(", as room %d", e.Room)
		}
		return s
	}
	e := handoff.Event{Room: f.clients[c.op.a].room}
	switch {
	case c.op.kind == opCancel:
		return step(client_, router_, "Cancel", e, "the client of request %d goes away", c.op.a+1)
	case c.lull:
		return step(router_, router_, "Expire", e, "nothing else happens, and request %d has taken too long", c.op.a+1)
	}
	return step(router_, router_, "Expire", e, "request %d has taken too long", c.op.a+1)
}

// tellLook tells of pages that are compared or read.
func tellLook(all []happened) Step {
	e := all[0].out.effects[0].op.msg.ev
	for _, h := range all[1:] {
		if h.slot != slotDecode {
			continue
		}
		switch r := h.op.msg.ev; {
		case r.Kind == handoff.Verified && r.OK:
			return step(pages_, decode_, "Verify", e, "decode compares %s of %s: they are its own", list(e.Pages), room(e))
		case r.Kind == handoff.Verified:
			return step(pages_, decode_, "Verify", e, "decode compares %s of %s: they are not all its own", list(e.Pages), room(e))
		case r.Kind == handoff.Mismatch:
			return step(pages_, decode_, "Step", e, "decode looks at the tags of %s before a step of %s: they are not all its own",
				list(e.Pages), room(e))
		}
	}
	return step(pages_, decode_, "Step", e, "decode computes the next token of %s from %s", room(e), list(e.Pages))
}

func tellWrite(all []happened) Step {
	e := all[0].op.msg.ev
	for _, h := range all { // the write itself is in what it led to
		if h.op.msg.ev.Kind == handoff.Page || h.op.msg.ev.Kind == handoff.Put {
			e = h.op.msg.ev
			break
		}
	}
	where := fmt.Sprintf("page %d of %s", e.Index, room(e))
	holds := ""
	for _, h := range all {
		if c := h.op.msg.cell; (h.op.kind == opStore || h.op.kind == opHalf || h.op.kind == opPush) && c.req != 0 {
			holds = fmt.Sprintf(", with page %d of request %d in it", c.index, c.req)
		}
	}
	switch all[0].op.kind {
	case opTear:
		return step(prefill_, pages_, fmt.Sprintf("page %d := half of page %d of", e.To, e.Index), e, "half of the write of %s has landed in decode's page %d%s", where, e.To, holds)
	case opLand:
		if e.Kind == handoff.None {
			return step(prefill_, prefill_, "write", e, "a write ends in memory that nobody has any more")
		}
		return step(prefill_, pages_, fmt.Sprintf("page %d := page %d of", e.To, e.Index), e, "the write of %s lands in decode's page %d%s", where, e.To, holds)
	case opSend:
		return step(prefill_, prefill_, "send page", e, "prefill sends %s%s", where, holds)
	case opDrop:
		return step(prefill_, prefill_, "drop page", e, "the write of %s is dropped before it begins", where)
	}
	return step(prefill_, prefill_, "Put", e, "prefill learns that the write of %s is over", where)
}

func tellPower(o op) Step {
	who := partyOf[slot(o.a)]
	switch {
	case o.kind == opRestart:
		return step(who, who, "restart", handoff.Event{}, "%s is started again, with nothing in its memory", who)
	case o.msg.req != 0:
		return step(who, who, "crash", handoff.Event{}, "%s crashes, and what it had sent last is lost", who)
	}
	return step(who, who, "crash", handoff.Event{}, "%s crashes", who)
}

func tellDelivery(all []happened) Step {
	l := all[0].out.next.(*link)
	from, to := partyOf[l.from], partyOf[l.to]
	if all[0].op.kind == opLose {
		e := all[0].out.in
		s := step(from, to, e.Kind.String(), e, "%s for %s from %s is lost", e.Kind, room(e), from)
		s.Arrow.Lost = true
		return s
	}
	e := all[1].op.msg.ev
	again := ""
	if all[0].op.kind == opCopy {
		again = ", and will come again"
	}
	switch {
	case mark(all[1].op.msg) && e.Kind == handoff.PeerLost:
		return step(from, to, "PeerLost", e, "%s learns that %s is gone", to, from)
	case mark(all[1].op.msg):
		return step(from, to, "Reset", e, "%s learns that %s is there again", to, from)
	}
	return step(from, to, e.Kind.String(), e, "%s gets %s for %s from %s%s", to, e.Kind, room(e), from, again)
}

// whatItDid puts what a machine did into words.
func whatItDid(h happened) string {
	var did []string
	for _, a := range h.out.did {
		if text := deed(a); text != "" {
			did = append(did, text)
		}
	}
	return strings.Join(did, "; ")
}

func deed(a handoff.Action) string {
	e := a.Event
	switch e.Kind {
	case handoff.Token:
		if a.To == handoff.ToClient {
			return fmt.Sprintf("the client of %s gets a token of request %d%s", room(e), e.Token&ofRequest, madeFrom(e.Token))
		}
		return fmt.Sprintf("a token of %s is on its way", room(e))
	case handoff.Done:
		if a.To == handoff.ToClient {
			return fmt.Sprintf("the client of %s has its answer, HTTP 200", room(e))
		}
		return fmt.Sprintf("the answer of %s is complete", room(e))
	case handoff.Refused:
		if a.To == handoff.ToClient {
			return fmt.Sprintf("the client of %s gets HTTP %d: %s", room(e), e.Refusal.Status(), e.Refusal.Text())
		}
		return fmt.Sprintf("it refuses %s: %s", room(e), e.Refusal.Text())
	case handoff.Reserved:
		return fmt.Sprintf("it reserves %s for %s under lease %d", list(e.Pages), room(e), e.Gen)
	case handoff.Page:
		return fmt.Sprintf("page %d is to go from its page %d to decode's page %d", e.Index, e.From, e.To)
	case handoff.Zero:
		return fmt.Sprintf("page %d is cleared", e.To)
	case handoff.Stamp:
		return fmt.Sprintf("page %d is tagged as page %d of %s", e.To, e.Index, room(e))
	case handoff.Run:
		if e.Placeholder {
			return "a placeholder of one token is to be computed in its place"
		}
		return ""
	case handoff.Halt, handoff.Write, handoff.Verify, handoff.Step, handoff.Forget:
		return ""
	case handoff.Meta:
		return fmt.Sprintf("it tells %s that %d tokens are written", to(a), e.Sent)
	case handoff.Hello:
		return fmt.Sprintf("it tells %s that it has let in a prompt of %d tokens", to(a), e.Tokens)
	}
	return fmt.Sprintf("it sends %s to %s", e.Kind, to(a))
}

// madeFrom says what a token was computed from besides its own.
func madeFrom(token byte) string {
	switch {
	case token&mixed != 0:
		return " that was computed from what is another's"
	case token&spoilt != 0:
		return " that was computed from pages not written for it"
	}
	return ""
}

func to(a handoff.Action) string { return a.To.String() }

func room(e handoff.Event) string {
	if e.Room == 0 {
		return "all rooms"
	}
	return fmt.Sprintf("room %d", e.Room)
}

func prompt(e handoff.Event) string { return "the prompt of " + room(e) }

// list names pages.
func list(pages []int32) string {
	if len(pages) == 1 {
		return fmt.Sprintf("page %d", pages[0])
	}
	return "pages " + strings.ReplaceAll(strings.Trim(fmt.Sprint(pages), "[]"), " ", ", ")
}

// Story tells a counterexample in numbered lines.
func (c Counterexample) Story() string {
	var b strings.Builder
	for i, s := range c.Steps {
		fmt.Fprintf(&b, "%3d  %s.\n", i+1, strings.TrimSuffix(s.Text, "."))
	}
	for _, v := range c.Broken {
		fmt.Fprintf(&b, "     %v is broken: %s (%s).\n", v.Invariant, v.Text, Invariants[v.Invariant])
	}
	return b.String()
}
