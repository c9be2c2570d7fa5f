package oracle

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// shownWords is how much of a leaked run is quoted, words.
const shownWords = 20

// judgeLeak scans every channel of every answer. A canary of the exchange
// itself is no finding, whoever quotes it; one of any other exchange is proof,
// also if that exchange belongs to an earlier run of the same key.
func judgeLeak(c Case) Judgement {
	var j Judgement
	controls := make(map[canary.ID]bool, len(c.Controls))
	for _, id := range c.Controls {
		controls[id] = true
	}
	senders := bySender(c.run())
	for i := range c.Exchanges {
		e := &c.Exchanges[i]
		if e.Answer == nil {
			continue
		}
		for _, s := range foreign(c, e) {
			if controls[s.hit.ID] {
				j.ControlHits++
				continue
			}
			j.Findings = append(j.Findings, s.finding(c, e, senders[s.hit.ID]))
		}
	}
	return j
}

// sighting is the longest run of one canary in one channel.
type sighting struct {
	channel wire.Channel
	hit     canary.Hit
}

// foreign returns what an answer carries of other exchanges' canaries: one
// sighting for each canary and channel, in the order in which they stand. The
// raw bytes count only for canaries that no decoded channel shows.
func foreign(c Case, e *wire.Exchange) []sighting {
	var all []sighting
	decoded := map[canary.ID]bool{}
	for _, p := range e.Answer.Pieces {
		for _, h := range longestEach(c.Coder, []byte(p.Text), canary.ID(e.ID)) {
			all = append(all, sighting{p.Channel, h})
			decoded[h.ID] = true
		}
	}
	if c.RawBytes == nil {
		return all
	}
	for _, h := range longestEach(c.Coder, c.RawBytes(e), canary.ID(e.ID)) {
		if !decoded[h.ID] {
			all = append(all, sighting{wire.Raw, h})
		}
	}
	return all
}

// decodeMost is how long a text may be whose encoded runs are looked into as
// well, bytes: a hostile answer could make that take minutes.
const decodeMost = 4 << 20

// longestEach scans a text and keeps the longest run of each canary but own.
// A run of words says more than a token: it has a place in the prompt.
func longestEach(coder *canary.Coder, text []byte, own canary.ID) []canary.Hit {
	var hits []canary.Hit
	scanner := coder.NewScanner(canary.ScanOptions{Decode: len(text) <= decodeMost}, func(h canary.Hit) {
		if h.ID != own {
			hits = append(hits, h)
		}
	})
	// A scanner takes any bytes and has nowhere to fail.
	_, _ = scanner.Write(text)
	_ = scanner.Close()
	slices.SortStableFunc(hits, func(a, b canary.Hit) int { return cmp.Compare(a.Start, b.Start) })

	var best []canary.Hit
	for _, h := range hits {
		i := slices.IndexFunc(best, func(b canary.Hit) bool { return b.ID == h.ID })
		switch {
		case i < 0:
			best = append(best, h)
		case h.Words > best[i].Words:
			best[i] = h
		}
	}
	return best
}

func (s sighting) finding(c Case, e, from *wire.Exchange) Finding {
	f := Finding{
		Kind:     Leak,
		Protocol: e.Protocol,
		Exchange: e.Seq,
		Tenant:   e.Tenant,
		Channel:  s.channel,
		Evidence: Evidence{Text: quote(c.Coder, s.hit), Words: s.hit.Words, Offset: s.hit.Word},
	}
	what := "the short canary"
	if s.hit.Form == canary.WordChain {
		what = fmt.Sprintf("%d canary words in a row, from word %d,", s.hit.Words, s.hit.Word)
	}
	if s.hit.View != "" {
		what += " (" + s.hit.View + "-encoded)"
	}
	f.Explain = fmt.Sprintf("the answer to exchange %d of %s carries %s of %s", e.Seq, e.Tenant, what, f.nameSender(c, s.hit.ID, e, from))
	return f
}

// nameSender fills in whose text it is and says it in words.
func (f *Finding) nameSender(c Case, id canary.ID, e, from *wire.Exchange) string {
	if from != nil && !sentAfter(from, e) {
		seq := from.Seq
		f.FromExchange, f.FromTenant = &seq, from.Tenant
		return fmt.Sprintf("exchange %d of %s", seq, from.Tenant)
	}
	run := id.Run()
	f.Evidence.FromRun = &run
	if run == c.Run {
		return fmt.Sprintf("exchange %d of an earlier run with the same key and seed", id.Seq())
	}
	return fmt.Sprintf("exchange %d of run %d, an earlier run with the same key", id.Seq(), run)
}

// sentAfter reports whether an exchange began only after the answer to another
// had ended: what that answer carries is then not its text, but that of an
// earlier run with the same seed.
func sentAfter(from, e *wire.Exchange) bool {
	return from.Answer != nil && e.Answer != nil && !e.Answer.End.IsZero() && from.Answer.Start.After(e.Answer.End)
}

// quote makes the leaked words again from the key: what is shown is always
// text of our own, never what else an answer holds.
func quote(coder *canary.Coder, h canary.Hit) string {
	if h.Form == canary.ShortToken {
		return coder.Token(h.ID)
	}
	words, err := io.ReadAll(coder.Words(h.ID, h.Word, min(h.Words, shownWords)))
	if err != nil {
		panic("kvcanary: internal error: canary words cannot be made: " + err.Error())
	}
	return string(words)
}

// bySender finds exchanges by the canary that they plant; of a prompt that is
// sent again, the first.
func bySender(exchanges []wire.Exchange) map[canary.ID]*wire.Exchange {
	senders := make(map[canary.ID]*wire.Exchange, len(exchanges))
	for i := range exchanges {
		if id := canary.ID(exchanges[i].ID); senders[id] == nil {
			senders[id] = &exchanges[i]
		}
	}
	return senders
}
