package oracle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// judgeMisroute looks for other exchanges' nonces. One of an exchange that was
// under way at the same time is an answer gone to the wrong place; one of an
// exchange that was over is a leak like any other canary text.
func judgeMisroute(c Case) Judgement {
	var j Judgement
	known := nonces(c.run())
	for i := range c.Exchanges {
		e := &c.Exchanges[i]
		if e.Answer == nil {
			continue
		}
		reported := map[int]bool{}
		for _, p := range e.Answer.Pieces {
			for _, s := range known.in(p.Text) {
				if s.owner.ID == e.ID || reported[s.owner.Seq] {
					continue
				}
				reported[s.owner.Seq] = true
				j.Findings = append(j.Findings, foreignNonce(e, s, p.Channel))
			}
		}
	}
	return j
}

func foreignNonce(e *wire.Exchange, s stray, channel wire.Channel) Finding {
	kind, when := Leak, "an earlier exchange"
	if e.Overlaps(s.owner) {
		kind, when = Misroute, "an exchange under way at the same time"
	}
	seq := s.owner.Seq
	return Finding{
		Kind:         kind,
		Protocol:     e.Protocol,
		Exchange:     e.Seq,
		Tenant:       e.Tenant,
		FromExchange: &seq,
		FromTenant:   s.owner.Tenant,
		Channel:      channel,
		Evidence:     Evidence{Text: s.nonce},
		Explain: fmt.Sprintf("the answer to exchange %d of %s carries the nonce of exchange %d of %s, %s",
			e.Seq, e.Tenant, seq, s.owner.Tenant, when),
	}
}

// nonceBook finds known nonces in a text. Nonces are of few lengths, so a text
// costs one look-up a byte and length, however many nonces there are.
type nonceBook struct {
	owners  map[string]*wire.Exchange
	lengths []int
}

// stray is a nonce found in a text.
type stray struct {
	nonce string
	owner *wire.Exchange
}

func nonces(exchanges []wire.Exchange) nonceBook {
	b := nonceBook{owners: map[string]*wire.Exchange{}}
	for i := range exchanges {
		for _, n := range exchanges[i].Nonces {
			if n == "" {
				continue
			}
			if b.owners[n] == nil { // a prompt may be sent again: it is the first that brought it
				b.owners[n] = &exchanges[i]
			}
			if !slices.Contains(b.lengths, len(n)) {
				b.lengths = append(b.lengths, len(n))
			}
		}
	}
	return b
}

// in returns the nonces in a text, in order, whatever their case. What stands
// around one does not matter: a nonce is long enough not to come about by
// chance inside something else.
func (b nonceBook) in(text string) []stray {
	var found []stray
	text = strings.ToLower(text)
	for i := range len(text) {
		for _, l := range b.lengths {
			if i+l > len(text) {
				continue
			}
			if owner := b.owners[text[i:i+l]]; owner != nil {
				found = append(found, stray{text[i : i+l], owner})
			}
		}
	}
	return found
}
