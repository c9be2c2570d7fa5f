package probe_test

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// target is a scripted endpoint: it serves prompts of up to limit tokens and
// does with longer ones whatever over says. One byte is one token.
type target struct {
	limit   int    // longest prompt that is read whole, tokens
	over    string // refuse, refuse_plain, refuse_other, refuse_sent, refuse_output, server_error, truncate, drop, drop_refuse, placeholder, silent, foreign, broken
	usage   string // right, lying, none, factor, short, over, constant, circles
	mute    bool   // never echoes a nonce, as a weak model does
	counts  bool   // its tokenizer can be asked
	deaf    bool   // answers before anybody can go away
	extras  bool   // takes adapters and pictures
	quotes  bool   // answers hold some of their own prompt
	leaks   bool   // what is answered unread holds some of the prompt before
	failing map[int]bool
	blur    float64     // how far off estimates are, percent to either side; 0 for 0.05
	padCost float64     // tokens that a character of padding makes; 0 for 1
	padded  bool        // padding has been seen to count
	real    map[int]int // length of the prompts, by seq

	coder *canary.Coder
	seq   int
	clock time.Time
	sent  []wire.Exchange
	sends []probe.Send
	names []string // of the tenants
	noise *rand.Rand
}

const run = 7 // of the canary ids

func newTarget() *target {
	return &target{
		limit: 1 << 30, over: "refuse", usage: "right", counts: true,
		coder: canary.New(canary.Key{1}),
		clock: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC),
		names: []string{"ada", "bob", "cyd"}, noise: rand.New(rand.NewPCG(1, 2)),
	}
}

// batch makes the exchanges of a batch one after the other.
func (t *target) batch(protocol string, sends []probe.Send) []wire.Exchange {
	out := make([]wire.Exchange, len(sends))
	for i, s := range sends {
		out[i] = t.exchange(protocol, s)
	}
	t.sends = append(t.sends, sends...)
	t.sent = append(t.sent, out...)
	return out
}

func (t *target) exchange(protocol string, s probe.Send) wire.Exchange {
	e := wire.Exchange{
		Seq: t.seq, ID: uint64(canary.MakeID(run, s.Tenant, t.seq)), Protocol: protocol, Purpose: s.Purpose, Label: s.Label,
		Tenant: t.names[s.Tenant], Tail: s.Tail, Limit: s.Limit, Asked: s.Asked, MaxTokens: s.MaxTokens,
		SentTokens: s.Tokens, SentExact: t.counts, Arm: s.Arm, Group: s.Group, Adapter: s.Adapter,
	}
	text := t.render(&e, s)
	if s.Tokens == 0 {
		e.SentTokens = len(text)
	}
	if s.Prefix != nil {
		t.begin(&e, s)
	}
	e.SentBytes, e.Messages = int64(e.SentTokens), len(s.Turns)
	if s.Prefix != nil {
		e.Messages += t.sent[s.Prefix.Seq].Messages
	}
	real := e.SentTokens
	if !t.counts { // an estimate is off by up to 0.05 %, or by what blur says
		real += int(float64(real) * (t.noise.Float64() - 0.5) / 1000 * max(1, 20*t.blur))
	}
	if s.Again != nil {
		real = t.repeat(&e, s)
	}
	if t.real == nil {
		t.real = map[int]int{}
	}
	t.real[e.Seq] = real
	t.seq++
	e.Answer = t.answer(&e, real)
	if s.Hangup.Any() && !t.deaf && e.Answer.Served() {
		e.Left = true
		e.Answer = &wire.Answer{Failure: &wire.Failure{Kind: wire.FailedCanceled, Message: "stopped"}}
	}
	if s.Extra() && !t.extras {
		e.Answer = &wire.Answer{Status: 404, Refusal: &wire.Refusal{Kind: wire.RefusedModel, Status: 404}}
	}
	if s.Again != nil && e.Answer.Served() && e.Answer.Usage != nil && s.Pad >= 32 && e.Answer.Usage.Prompt == e.SentTokens {
		t.padded = true
	}
	e.Answer.Start = t.clock
	t.clock = t.clock.Add(time.Second)
	e.Answer.FirstToken, e.Answer.End = t.clock.Add(-time.Millisecond), t.clock
	return e
}

// repeat makes an exchange of an earlier one and says how long it really is.
func (t *target) repeat(e *wire.Exchange, s probe.Send) int {
	base := &t.sent[*s.Again]
	if base.Tenant != e.Tenant || base.Again != nil || s.Pad <= 0 {
		panic("a prompt cannot be sent again like that")
	}
	used, _ := base.Used()
	e.ID, e.Nonces, e.Token, e.Again, e.Pad = base.ID, base.Nonces, base.Token, s.Again, s.Pad
	e.SentTokens, e.SentExact, e.SentBytes = used+s.Pad, t.padded, base.SentBytes+2*int64(s.Pad)
	if t.padCost == 0 {
		return t.real[base.Seq] + s.Pad
	}
	return t.real[base.Seq] + int(float64(s.Pad)*t.padCost)
}

// begin puts a part of an earlier prompt before this one.
func (t *target) begin(e *wire.Exchange, s probe.Send) {
	base := &t.sent[s.Prefix.Seq]
	if s.Prefix.Turns > base.Messages || s.Prefix.Answer && !base.Answer.Served() {
		panic("a prompt cannot begin like that")
	}
	e.Holds = append(append(e.Holds, base.Holds...), base.Seq)
	for i, n := range base.Nonces {
		if e.Nonces[i] == "" {
			e.Nonces[i] = n
		}
	}
	if s.Tokens == 0 {
		e.SentTokens += base.SentTokens
	}
}

// render writes a prompt out without its filler and fills in what it carries.
func (t *target) render(e *wire.Exchange, s probe.Send) string {
	var b strings.Builder
	for _, turn := range s.Turns {
		for _, p := range turn.Parts {
			switch p.Kind {
			case probe.Literal:
				b.WriteString(p.Text)
			case probe.Nonce:
				e.Nonces[p.N] = t.coder.Nonce(canary.ID(e.ID), p.N)
				b.WriteString(e.Nonces[p.N])
			case probe.Token:
				e.Token = t.coder.Token(canary.ID(e.ID))
				b.WriteString(e.Token)
			}
		}
	}
	return b.String()
}

func (t *target) answer(e *wire.Exchange, real int) *wire.Answer {
	if t.failing[e.Seq] {
		return &wire.Answer{Failure: &wire.Failure{Kind: wire.FailedTimeout, Message: "no byte for 60 s"}}
	}
	if real <= t.limit && !(t.over == "refuse_output" && real+e.MaxTokens > t.limit) {
		return t.serve(e, real, true)
	}
	refuse := func(r wire.Refusal) *wire.Answer {
		r.Status = 400
		return &wire.Answer{Status: 400, Refusal: &r}
	}
	switch t.over {
	case "refuse":
		return refuse(wire.Refusal{Kind: wire.RefusedPool, Limit: t.limit + 1, Sent: real})
	case "refuse_plain":
		return refuse(wire.Refusal{Kind: wire.RefusedTooLong})
	case "refuse_other": // names a limit that it does not keep
		return refuse(wire.Refusal{Kind: wire.RefusedContext, Limit: t.limit + 777})
	case "refuse_sent":
		return refuse(wire.Refusal{Kind: wire.RefusedContext, Limit: real - 1})
	case "refuse_output":
		return refuse(wire.Refusal{Kind: wire.RefusedOutput, Limit: t.limit})
	case "server_error":
		return &wire.Answer{Status: 500, Refusal: &wire.Refusal{Kind: wire.RefusedServer, Status: 500}}
	case "truncate":
		return t.serve(e, t.limit, false)
	case "drop": // the oldest turns, as many as have to go
		read := real
		for n := 170; read > t.limit; n = 40 + 170 - n {
			read -= n
		}
		return t.serve(e, read, false)
	case "drop_refuse": // the same, but not of the last turn, which may still be too long
		read := real
		for n := 170; read > t.limit && read > real/2; n = 40 + 170 - n {
			read -= n
		}
		if read > t.limit || e.Pad > 0 && real > t.limit {
			return refuse(wire.Refusal{Kind: wire.RefusedContext, Limit: t.limit + 1, Sent: min(real, read+e.Pad)})
		}
		return t.serve(e, read, false)
	case "placeholder":
		a := t.serve(e, 1, false)
		a.Pieces[0].Text = "whatever stood there"
		if t.leaks {
			a.Pieces[0].Text = t.wordsOf(&t.sent[len(t.sent)-1])
		}
		return a
	case "silent":
		a := t.serve(e, real, false)
		a.Pieces, a.Finish = nil, "length"
		return a
	case "foreign": // counts right, answers with nothing of its own
		a := t.serve(e, real, false)
		a.Pieces[0].Text = "whatever stood there"
		return a
	}
	panic("no such behaviour: " + t.over)
}

// serve answers with the nonce asked for, if what was read holds it.
func (t *target) serve(e *wire.Exchange, read int, whole bool) *wire.Answer {
	text := "noted"
	if e.Asked >= 0 && !t.mute && (whole || e.Asked == 2) {
		text = e.Nonces[e.Asked]
	}
	if t.quotes {
		text += ", as in: " + e.Token + " " + t.wordsOf(e)
	}
	a := &wire.Answer{Status: 200, Finish: "stop", Pieces: []wire.Piece{{Channel: wire.Content, Text: text}}}
	switch t.usage {
	case "right":
		a.Usage = &wire.Usage{Prompt: read}
	case "lying": // what was sent, whatever was read
		a.Usage = &wire.Usage{Prompt: e.SentTokens}
	case "factor":
		a.Usage = &wire.Usage{Prompt: max(1, read*8/10)}
	case "short":
		a.Usage = &wire.Usage{Prompt: max(1, read-40)}
	case "over":
		a.Usage = &wire.Usage{Prompt: read + 500}
	case "constant":
		a.Usage = &wire.Usage{Prompt: 10}
	case "cached":
		a.Usage = &wire.Usage{Prompt: read - read/2, Cached: read / 2}
	case "none":
	case "circles": // every other answer breaks off after so many words that nothing is reported
		if a.Usage = (&wire.Usage{Prompt: read}); e.MaxTokens > 30 && e.Seq%2 == 1 {
			a.Usage, a.Finish = &wire.Usage{}, ""
		}
	default:
		panic("no such usage: " + t.usage)
	}
	return a
}

// drive runs a protocol to its end, and gives up if it has none.
func (t *target) drive(p probe.Protocol, env probe.Env) probe.Plan {
	plan := p.Start(env)
	var done []wire.Exchange
	for range 200 {
		sends := plan.Next(done)
		if len(sends) == 0 {
			return plan
		}
		done = t.batch(p.Name, sends)
	}
	panic("protocol " + p.Name + " does not end")
}
