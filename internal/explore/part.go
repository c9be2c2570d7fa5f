package explore

import (
	"encoding/binary"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// slot says which part of the world a value is of.
type slot uint8

// The parts of the world.
const (
	slotRouter  slot = iota // the router and its clients
	slotPrefill             // the prefill node
	slotDecode              // the decode node
	slotToDecode
	slotToPrefill
	slotFromPrefill
	slotFromDecode
	slotWrites // pages under way from prefill's memory to decode's
	slotPD     // messages from prefill to decode
	slotDP
	slotSource // prefill's pages
	slotPages  // decode's pages
	slotPower  // which processes run
	parts      = int(slotPower) + 1
)

func slotOf(i int) slot { return slot(i) }

// A part is a value of a part of the world. It never changes: what happens to
// it makes another value.
type part interface {
	// append packs it: values that will do the same from here on are equal byte for byte.
	append(b []byte) []byte
	// do says what an operation makes of it.
	do(m *Model, o op) outcome
	// choices lists what may happen next by itself, always in the same order.
	choices(m *Model) []free
	// check names the invariants that the value breaks by itself.
	check(m *Model) []Violation
	// rest tells whether anything is left here when nothing more happens.
	rest(m *Model) rest
}

// outcome is what an operation makes of a part.
type outcome struct {
	next    part
	effects []then
	broken  []Violation
	// in is what a machine was told and did what it made of it, for stories.
	in  handoff.Event
	did []handoff.Action
}

// then is an operation that follows on another part, before anything else happens.
type then struct {
	slot slot
	op   op
}

// free is an operation that may happen by itself.
type free struct {
	op   op
	cost budget // 0: it is bound to happen
	lull bool   // it happens only when nothing else is bound to
}

type opKind uint8

// The operations. Fields of op that they use are named.
const (
	_         opKind = iota
	opStep           // a machine takes msg; a: slot that it comes from
	opOpen           // a: shape
	opCancel         // a: client
	opExpire         // a: client
	opCompute        // prefill computes the prompt that it is at
	opVerify         // decode compares the pages of a room; a: which of those that wait
	opRead           // decode computes a token; a: which of those that wait
	opLeased         // decode is asked who may write; msg: the write

	opPush // msg
	opTake // a: message; it is delivered
	opCopy // a: message; it is delivered and stays
	opLose // a: message
	opCut  // the sender has crashed; msg is the last that comes
	opDown // all is lost, and what is pushed from now on too
	opUp

	opStart // msg: a page is to be written
	opHalt  // msg: writes of its room that have not begun may be dropped
	opTear  // a: write; it is half done
	opLand  // a: write; it is done
	opPut   // a: write; prefill is told
	opDrop  // a: write; it is not done, and prefill is told
	opSend  // a: write; it becomes a message
	opOrphan
	opVoid

	opFill  // msg: a prompt is computed; a: request
	opFetch // msg: a page is read to be written; a: how it goes on
	opStore // msg with cell
	opHalf  // msg with cell: half of it is stored
	opZero  // msg
	opStamp // msg
	opCheck // msg: compare before an answer begins; a: request
	opScan  // msg: read before a token is computed; a: request
	opWipe

	opCrash   // a: slot
	opRestart // a: slot
)

// op is one operation on one part.
type op struct {
	kind opKind
	a    uint8
	msg  msg
}

// msg is a message with what its receiver does not see.
type msg struct {
	ev   handoff.Event
	req  uint8 // the request that it is about, by number, from 1
	cell cell  // of Page: the page as it was when it was read
}

func (o op) append(b []byte) []byte { return o.msg.append(append(b, byte(o.kind), o.a)) }

func (m msg) append(b []byte) []byte { return appendEvent(m.cell.append(append(b, m.req)), m.ev) }

// appendEvent packs an event, all fields.
func appendEvent(b []byte, e handoff.Event) []byte {
	flags := bit(e.Stop) | bit(e.Placeholder)<<1 | bit(e.Summed)<<2 | bit(e.OK)<<3 | bit(e.Flawed)<<4
	b = append(b, byte(e.Kind), flags, e.Token, byte(e.Finish), byte(e.Refusal.Reason))
	for _, n := range [...]uint64{
		uint64(e.Room), uint64(e.Tokens), uint64(e.MaxNew), uint64(e.Sent), uint64(e.Prompt), uint64(e.Made), uint64(e.Pos),
		uint64(e.Index), uint64(e.From), uint64(e.To), e.Gen,
		uint64(e.Refusal.Have), uint64(e.Refusal.Extra), uint64(e.Refusal.Limit), uint64(len(e.Pages)),
	} {
		b = number(b, n)
	}
	for _, p := range e.Pages {
		b = number(b, uint64(p))
	}
	return b
}

// number appends a small number in a byte.
func number(b []byte, n uint64) []byte {
	if n < 0x80 {
		return append(b, byte(n))
	}
	return binary.AppendUvarint(b, n)
}

func bit(set bool) byte {
	if set {
		return 1
	}
	return 0
}

// rest is what a part says when nothing more happens.
type rest uint8

// Bits of rest.
const (
	restWaiting rest = 1 << iota // a client has no answer
	restOwned                    // a page is owned
	restDrain                    // a page is draining
	restHeld                     // a machine has not let go of a request
)
