package oracle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// judgeMisroute looks for other exchanges' nonces. One of an exchange that was
// under way at the same time is an answer gone to the wrong place; one of an
// exchange that was over is a leak like any other canary text.
func judgeMisroute(ctx context.Context, c Case) Judgement {
	var j Judgement
	known, prompts := nonces(c.run()), promptsOf(c.run())
	for i := range c.Exchanges {
		e := &c.Exchanges[i]
		if e.Answer == nil {
			continue
		}
		sent, reported := prompts.sent(e), map[int]bool{}
		look := func(channel wire.Channel, text string) {
			for _, s := range known.in(ctx, text) {
				if sent[canary.ID(s.owner.ID)] || reported[s.owner.Seq] {
					continue
				}
				reported[s.owner.Seq] = true
				j.Findings = append(j.Findings, foreignNonce(e, s, channel))
			}
		}
		for _, p := range e.Answer.Pieces {
			look(p.Channel, p.Text)
		}
		for _, s := range e.Answer.Joined {
			look(s.Channel, s.Text)
		}
	}
	if ctx.Err() != nil {
		j.Unsure = (&reader{ctx: ctx}).stopped()
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
			e.Seq, e.Tenant, seq, s.owner.Tenant, when) + oneName(e, s.owner),
	}
}

// nonceBook finds known nonces in a text. All nonces have a dash, most of them
// after the same number of letters, so a text costs a look-up for each dash in
// it, however many nonces there are.
type nonceBook struct {
	owners map[string]*wire.Exchange
	shapes []shape
}

// shape is the length of a nonce and where its dash is, bytes.
type shape struct{ dash, length int }

// stray is a nonce found in a text.
type stray struct {
	nonce string
	owner *wire.Exchange
}

func nonces(exchanges []wire.Exchange) nonceBook {
	b := nonceBook{owners: map[string]*wire.Exchange{}}
	for i := range exchanges {
		for _, n := range exchanges[i].Nonces {
			at := strings.IndexByte(n, '-')
			if at < 0 {
				continue
			}
			if b.owners[n] == nil { // a prompt may be sent again: it is the first that brought it
				b.owners[n] = &exchanges[i]
			}
			if s := (shape{at, len(n)}); !slices.Contains(b.shapes, s) {
				b.shapes = append(b.shapes, s)
			}
		}
	}
	return b
}

// in returns the nonces in a text, in order, whatever their case. What stands
// around one does not matter: a nonce is long enough not to come about by
// chance inside something else.
func (b nonceBook) in(ctx context.Context, text string) []stray {
	var found []stray
	for at, seen := 0, 0; ; at++ {
		next := strings.IndexByte(text[at:], '-')
		if next < 0 {
			return found
		}
		at += next
		if seen++; seen%4096 == 0 && ctx.Err() != nil {
			return found
		}
		for _, s := range b.shapes {
			from := at - s.dash
			if from < 0 || from+s.length > len(text) {
				continue
			}
			nonce := strings.ToLower(text[from : from+s.length])
			if owner := b.owners[nonce]; owner != nil {
				found = append(found, stray{nonce, owner})
			}
		}
	}
}
