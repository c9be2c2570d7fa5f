package oracle

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// shownWords is how much of a leaked run is quoted, words.
const shownWords = 20

// judgeLeak scans every channel of every answer. A canary that the exchange was
// sent is no finding, whoever quotes it; any other is proof, also if it belongs
// to an earlier run of the same key.
func judgeLeak(ctx context.Context, c Case) Judgement {
	var j Judgement
	controls := make(map[canary.ID]bool, len(c.Controls))
	for _, id := range c.Controls {
		controls[id] = true
	}
	senders, prompts := bySender(c.run()), promptsOf(c.run())
	r := &reader{ctx: ctx, coder: c.Coder}
	for i := range c.Exchanges {
		e := &c.Exchanges[i]
		if e.Answer == nil {
			continue
		}
		for _, s := range foreign(r, c, e, prompts.sent(e)) {
			if controls[s.hit.ID] {
				j.ControlHits++
				continue
			}
			prompts.sighted[e.Seq] = append(prompts.sighted[e.Seq], s.hit.ID)
			j.Findings = append(j.Findings, s.finding(c, e, senders[s.hit.ID]))
		}
	}
	j.Unsure = r.stopped()
	return j
}

// sighting is the longest run of one canary in one channel.
type sighting struct {
	channel wire.Channel
	hit     canary.Hit
}

// foreign returns what an answer carries of canaries that it was not sent: one
// sighting for each canary and channel, in the order in which they stand. What
// is only put together from pieces, and the raw bytes, count for canaries that
// no decoded channel shows.
func foreign(r *reader, c Case, e *wire.Exchange, sent map[canary.ID]bool) []sighting {
	r.decode = decodeMost
	var all []sighting
	shown := map[canary.ID]bool{}
	for _, p := range e.Answer.Pieces {
		for _, h := range r.longestEach(p.Text, sent) {
			all = append(all, sighting{p.Channel, h})
			shown[h.ID] = true
		}
	}
	for _, s := range joined(r, e, sent) {
		if !shown[s.hit.ID] {
			all = append(all, s)
			shown[s.hit.ID] = true
		}
	}
	if c.RawBytes == nil {
		return all
	}
	for _, h := range r.longestEach(string(c.RawBytes(e)), sent) {
		if !shown[h.ID] {
			all = append(all, sighting{wire.Raw, h})
		}
	}
	return all
}

// joined returns what the texts of an answer show when they are put together by
// where they stood, with and without space between the pieces: of each canary
// the longest run, and first the one whose place has a name.
func joined(r *reader, e *wire.Exchange, sent map[canary.ID]bool) []sighting {
	var all []sighting
	for _, s := range e.Answer.Joined {
		texts := []string{s.Text}
		if len(s.Cuts) > 0 {
			texts = append(texts, s.Spaced())
		}
		for _, text := range texts {
			for _, h := range r.longestEach(text, sent) {
				all = append(all, sighting{s.Channel, h})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b sighting) int {
		if raw := cmp.Compare(rank(a.channel), rank(b.channel)); raw != 0 {
			return raw
		}
		return cmp.Compare(b.hit.Words, a.hit.Words)
	})
	return all
}

// rank puts places that have no name last.
func rank(c wire.Channel) int {
	if c == wire.Raw {
		return 1
	}
	return 0
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
	f.Evidence.PageHint = pageHint(c, s.hit, from)
	what := "the short canary"
	if s.hit.Form == canary.WordChain {
		what = fmt.Sprintf("%d canary words in a row, from word %d,", s.hit.Words, s.hit.Word)
	}
	if s.hit.View != "" {
		what += " (" + s.hit.View + "-encoded)"
	}
	f.Explain = fmt.Sprintf("the answer to exchange %d of %s carries %s of %s", e.Seq, e.Tenant, what, f.nameSender(c, s.hit.ID, e, from)) + oneName(e, from)
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

// pageHint is the page of its prompt's KV-cache that a run of words was in,
// counted from 0: where the page size is known and the target has counted the
// prompt. The words before it are taken for all that stands before it, and the
// tokens of the prompt for even, so it may be some pages low.
func pageHint(c Case, h canary.Hit, from *wire.Exchange) string {
	if c.PageSize <= 0 || h.Form != canary.WordChain || from == nil || from.SentBytes <= 0 || from.SentTokens <= 0 {
		return ""
	}
	before, err := io.Copy(io.Discard, c.Coder.Words(h.ID, 0, h.Word))
	if err != nil {
		panic("kvcanary: internal error: canary words cannot be made: " + err.Error())
	}
	tokens := float64(before) * float64(from.SentTokens) / float64(from.SentBytes)
	return strconv.Itoa(int(tokens) / c.PageSize)
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
