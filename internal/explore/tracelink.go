package explore

import (
	"bytes"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// pagesApart numbers the two links from one machine to another. Pages as
// messages have one of their own: while they wait to be sent, other messages may
// overtake them.
func pagesApart(k handoff.Kind) int {
	if k == handoff.Page {
		return 1
	}
	return 0
}

// mail is a message that has been sent and not yet received.
type mail struct {
	text []byte // members of the event
	kind handoff.Kind
	room handoff.Room
	req  int // the request that it is about
}

// post is a link of a live engine: messages arrive in order and once, until one
// of its ends is lost; then those in between may be lost, and those after are
// again in order.
type post struct {
	mail []mail
	lost bool // the receiver has lost the link since it received last
}

func (p *post) send(m mail) { p.mail = append(p.mail, m) }

// receive takes the next message, which has to be this one.
func (p *post) receive(text []byte) (mail, bool) {
	for i, m := range p.mail {
		if bytes.Equal(m.text, text) {
			p.mail, p.lost = p.mail[i+1:], false
			if len(p.mail) == 0 {
				p.mail = nil
			}
			return m, true
		}
		if !p.lost {
			break
		}
	}
	return mail{}, false
}

// drop takes back a page that was not sent.
func (p *post) drop(e handoff.Event) {
	for i, m := range p.mail {
		if m.kind == handoff.Page && m.room == e.Room && bytes.Contains(m.text, indexOf(e)) {
			p.mail = append(p.mail[:i:i], p.mail[i+1:]...)
			return
		}
	}
}

func indexOf(e handoff.Event) []byte {
	page := handoff.Event{Kind: handoff.Page, Room: e.Room, Index: e.Index}
	text := appendJSON(nil, &page)
	if e.Index == 0 {
		return text
	}
	return append(text, ',')
}

// senders says whom an event can be from: a machine, or what is around it.
func senders(by handoff.Role, k handoff.Kind) []handoff.Role {
	for _, from := range []handoff.Role{handoff.ToRouter, handoff.ToDecode, handoff.ToPrefill} {
		if !k.Travels(from, by) {
			continue
		}
		if by == handoff.ToRouter && k == handoff.Refused {
			return []handoff.Role{handoff.ToDecode, handoff.ToPrefill}
		}
		return []handoff.Role{from}
	}
	return nil
}
