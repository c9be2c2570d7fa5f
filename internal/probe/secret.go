package probe

import (
	"fmt"
	"math/rand/v2"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// SecretStraddle is the published second script: one secret of 16 characters
// planted in a short prompt, prompts of hex just under and just over the limit,
// a little churn between them. It is no row of [All]: it is there to measure
// how much more a prompt finds that is canary throughout.
func SecretStraddle() Protocol {
	return Protocol{
		Name:  "secret-straddle",
		Does:  "straddles the limit with hex padding and one planted secret, as the published second script does",
		Start: func(e Env) Plan { return newSecret(e) },
	}
}

// hexCalibration are lengths of padding from which tokens per character are
// learned, characters.
var hexCalibration = [2]int{256, 2048}

type secret struct {
	env   Env
	rand  *rand.Rand
	limit int
	pairs int
	queue []func() []Send
	// tokens = offset + slope * characters of padding; slope 0 until known.
	offset, slope float64
	chars         int // of padding in the prompt under way
	points        [][2]float64
	judged        int
}

func newSecret(e Env) *secret {
	s := &secret{env: e, rand: rand.New(rand.NewPCG(e.Seed, 0x736563726574)), pairs: e.Pairs}
	if s.pairs == 0 {
		s.pairs = defaultPairs
	}
	for _, l := range []int{e.Pool, e.Found.AcceptedMax, e.Context} {
		if l > 0 && (s.limit == 0 || l < s.limit) {
			s.limit = l
		}
	}
	if s.limit == 0 {
		return s
	}
	for _, n := range hexCalibration {
		s.queue = append(s.queue, func() []Send { return s.padded(wire.Size, "calibration", n) })
	}
	for range s.pairs {
		s.queue = append(s.queue,
			func() []Send { return []Send{classicSend(wire.Plant, "plant", classicPlant())} },
			func() []Send { return s.arm(wire.Under, s.limit-underMargin) },
			s.churn,
			func() []Send { return s.arm(wire.Over, s.limit+1) })
	}
	return s
}

func (s *secret) Next(done []wire.Exchange) []Send {
	for i := range done {
		s.observe(&done[i])
	}
	if len(s.queue) == 0 {
		return nil
	}
	next := s.queue[0]
	s.queue = s.queue[1:]
	return next()
}

// observe corrects tokens per character from what the target has counted.
func (s *secret) observe(e *wire.Exchange) {
	if e.Purpose == wire.Over && (e.Answer.Served() || e.Answer.Refusal.TooLong()) {
		s.judged++
	}
	used, ok := e.Used()
	if !ok || !e.Answer.Served() || e.Collapsed() || e.Purpose != wire.Size && e.Purpose != wire.Under {
		return
	}
	s.points = append(s.points, [2]float64{float64(s.chars), float64(used)})
	if n := len(s.points); n >= 2 {
		a, b := s.points[0], s.points[n-1]
		if b[0] > a[0] {
			s.slope = (b[1] - a[1]) / (b[0] - a[0])
			s.offset = a[1] - s.slope*a[0]
		}
	}
}

func (s *secret) arm(p wire.Purpose, tokens int) []Send {
	chars := tokens
	if s.slope > 0 {
		chars = int((float64(tokens) - s.offset) / s.slope)
	}
	out := s.padded(p, fmt.Sprintf("limit%+d", tokens-s.limit), max(chars, 1))
	out[0].Limit = s.limit
	return out
}

func (s *secret) padded(p wire.Purpose, label string, chars int) []Send {
	s.chars = chars
	ask := "\nReply with ACK only."
	return []Send{{Purpose: p, Label: label, Turns: []Turn{{"user", []Part{text(s.hex(chars)), text(ask)}}}, Asked: -1, MaxTokens: s.env.MaxAnswer}}
}

func (s *secret) hex(n int) string {
	const digits = "0123456789abcdef"
	b := make([]byte, n)
	for i := range b {
		b[i] = digits[s.rand.IntN(16)]
	}
	return string(b)
}

func (s *secret) churn() []Send {
	var batch []Send
	for i := range churnPrompts {
		ask := fmt.Sprintf("Write a two-sentence haiku about packet #%d.", i+1)
		batch = append(batch, classicSend(wire.Churn, "churn", []Part{text(ask)}))
	}
	return batch
}

func (s *secret) Missing() string {
	switch {
	case s.limit == 0:
		return "no limit is known to straddle"
	case s.judged < s.pairs:
		return fmt.Sprintf("%d of %d pairs were made", s.judged, s.pairs)
	}
	return ""
}
