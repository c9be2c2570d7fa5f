package handoff

import (
	"fmt"
	"strings"
)

// Room names one request inside the engine. Rooms are numbered by [Router.Mint]
// and never used twice; 0 is none.
type Room uint64

// Role is a party of the handoff.
type Role uint8

// The roles. Self is the node that a machine runs in: actions for it are work.
const (
	Nobody Role = iota
	ToClient
	ToRouter
	ToPrefill
	ToDecode
	Self
)

var roleNames = [...]string{"nobody", "client", "router", "prefill", "decode", "self"}

func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return fmt.Sprintf("role(%d)", uint8(r))
}

// Kind is what an event says.
type Kind uint8

// The kinds of event, with the fields that each one uses beside Room.
const (
	None Kind = iota

	// To the router, from the client and from its clock.
	Open   // Tokens, MaxNew, Flawed: a prompt arrives
	Cancel // the client is gone
	Expire // the request has taken too long

	// From the router to the nodes.
	Submit // Tokens, MaxNew, Flawed: a request to serve
	Abort  // let go of the request

	// Between prefill and decode.
	Hello    // Tokens: prefill has let the prompt in
	Reserved // Pages, Gen: where the prompt's KV goes, in order, and the lease to write there
	Page     // Index, From, To, Gen: page Index of the prompt, from a prefill page to a decode page
	Meta     // Token, Stop, Sent, Prompt, Gen, Summed: all pages are written
	Ack      // the transfer has ended well
	Quiesce  // Gen: write no more under this lease, and say when nothing is under way
	Gone     // Gen: nothing is under way

	// From the nodes through the router to the client.
	Token   // Token
	Done    // Finish, Prompt, Made
	Refused // Refusal

	// Work for the node itself.
	Zero   // To: clear this page
	Stamp  // Index, To, Gen: tag this page as the room's, whatever it holds
	Run    // Tokens, Placeholder: compute the KV of the prompt
	Halt   // stop computing and drop writes that have not begun
	Write  // Index, To, Gen: store the page that came with the Page event
	Verify // Tokens, Sent, Gen, Summed: compare tags and checksum, as far as they are on
	Step   // Pos, Token: store the token at slot Pos and compute the next
	Forget // nothing of the room is held here any more

	// What came of the work.
	Ran      // Token, Stop: the prompt's first answer token
	Put      // Index, To, Gen, OK: the write of a Page is over; OK: it was done, not dropped
	Verified // OK: all that was compared is the room's own
	Stepped  // Token, Stop: the next one
	Mismatch // a page that the next token would be read from is not the room's own

	// Room is 0: what becomes of the other end of a link.
	PeerLost // the other node is gone, nothing comes from it any more; Refusal, for the router: which
	Reset    // it is there again, with nothing in its memory; Refusal likewise
)

var kindNames = [...]string{
	"None", "Open", "Cancel", "Expire", "Submit", "Abort",
	"Hello", "Reserved", "Page", "Meta", "Ack", "Quiesce", "Gone", "Token", "Done", "Refused",
	"Zero", "Stamp", "Run", "Halt", "Write", "Verify", "Step", "Forget",
	"Ran", "Put", "Verified", "Stepped", "Mismatch", "PeerLost", "Reset",
}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Valid reports whether k is one of the kinds.
func (k Kind) Valid() bool { return k > None && int(k) < len(kindNames) }

// Finish says why an answer ended.
type Finish uint8

// The ways an answer ends.
const (
	Unfinished Finish = iota
	Stopped           // the model ended it
	Length            // it is as long as was asked for
)

func (f Finish) String() string { return [...]string{"", "stop", "length"}[f] }

// Valid reports whether f is one of the ways.
func (f Finish) Valid() bool { return f <= Length }

// Event is one thing that happens. Which fields are used depends on the kind;
// the others are zero. Lengths and positions are in tokens, pages are page
// numbers in the pool of the node that they belong to.
type Event struct {
	Kind Kind `json:"kind"`
	Room Room `json:"room"`

	Tokens int `json:"tokens,omitempty"`  // length of the prompt
	MaxNew int `json:"max_new,omitempty"` // longest answer
	Sent   int `json:"sent,omitempty"`    // tokens whose KV was sent
	Prompt int `json:"prompt,omitempty"`  // length of the prompt as the answer's usage reports it
	Made   int `json:"made,omitempty"`    // tokens of the answer
	Pos    int `json:"pos,omitempty"`     // slot of a token in its sequence
	Index  int `json:"index,omitempty"`   // which page of the prompt

	// Page in the prefill pool, page in the decode pool.
	From  int32   `json:"from,omitempty"`
	To    int32   `json:"to,omitempty"`
	Pages []int32 `json:"pages,omitempty"` // decode pages; nobody changes them
	Gen   uint64  `json:"gen,omitempty"`   // decode's lease of the room's pages

	Token       byte    `json:"token,omitempty"`
	Stop        bool    `json:"stop,omitempty"`        // Token ends the answer and is not part of it
	Placeholder bool    `json:"placeholder,omitempty"` // the prompt to compute is the single token 0
	Summed      bool    `json:"summed,omitempty"`      // a checksum comes with it
	OK          bool    `json:"ok,omitempty"`
	Flawed      bool    `json:"flawed,omitempty"` // prefill cannot take the prompt, whatever its length; the router does not look
	Finish      Finish  `json:"finish,omitempty"`
	Refusal     Refusal `json:"refusal,omitzero"`
}

// String shows the fields that are not zero.
func (e Event) String() string {
	var b strings.Builder
	b.WriteString(e.Kind.String())
	if e.Room != 0 {
		fmt.Fprintf(&b, " room=%d", e.Room)
	}
	for _, f := range []struct {
		name  string
		value int
	}{
		{"tokens", e.Tokens}, {"max", e.MaxNew}, {"sent", e.Sent}, {"prompt", e.Prompt}, {"made", e.Made}, {"pos", e.Pos},
	} {
		if f.value != 0 {
			fmt.Fprintf(&b, " %s=%d", f.name, f.value)
		}
	}
	switch e.Kind {
	case Page:
		fmt.Fprintf(&b, " index=%d from=%d to=%d", e.Index, e.From, e.To)
	case Write, Stamp, Put:
		fmt.Fprintf(&b, " index=%d to=%d", e.Index, e.To)
	case Zero:
		fmt.Fprintf(&b, " to=%d", e.To)
	case Reserved:
		fmt.Fprintf(&b, " pages=%v", e.Pages)
	case Token, Meta, Ran, Stepped, Step:
		fmt.Fprintf(&b, " token=%d", e.Token)
	case Done:
		fmt.Fprintf(&b, " finish=%v", e.Finish)
	case Refused, PeerLost, Reset:
		if e.Refusal.Reason == Served {
			break
		}
		fmt.Fprintf(&b, " status=%d %q", e.Refusal.Status(), e.Refusal.Text())
	}
	if e.Gen != 0 {
		fmt.Fprintf(&b, " gen=%d", e.Gen)
	}
	for _, f := range []struct {
		name string
		set  bool
	}{{"stop", e.Stop}, {"placeholder", e.Placeholder}, {"summed", e.Summed}, {"ok", e.OK}, {"flawed", e.Flawed}} {
		if f.set {
			b.WriteString(" " + f.name)
		}
	}
	return b.String()
}

// Action is an event that a machine wants delivered to a role.
type Action struct {
	To    Role `json:"to_role"`
	Event      // its To field is a page
}

func broken(format string, args ...any) {
	panic("kvcanary: internal error: " + fmt.Sprintf(format, args...))
}
