package probe

import (
	"fmt"
	"time"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// Interleave has many streams under way at once that are read at different
// speeds, so that what is ready piles up behind the slow ones. Each may carry
// nothing but its own text.
func Interleave() Protocol {
	return Protocol{
		Name:  "interleave",
		Does:  "reads many streams at once at different speeds; each must carry only its own text",
		Start: func(e Env) Plan { return &interleave{env: e} },
	}
}

const (
	interleaveRounds = 6
	// alone is how many streams are read with nothing beside them, first.
	alone = 10
	// streams are under way together, if the campaign lets so many.
	streams = 8
	// slowest is the longest pause before a piece of an answer is read.
	slowest = 6 * time.Millisecond
)

type interleave struct {
	env   Env
	round int
	tally
}

func (s *interleave) Next(done []wire.Exchange) []Send {
	for i := range done {
		s.count(&done[i])
	}
	s.round++
	switch {
	case s.round <= alone:
		one := s.stream(s.round-1).arm(wire.ArmNull, 1)
		one.Label = "alone"
		return []Send{one}
	case s.round > alone+interleaveRounds:
		return nil
	}
	var batch []Send
	for i := range streams {
		batch = append(batch, s.stream(i).arm(wire.ArmLoad, 1))
	}
	return batch
}

// stream asks for a whole line of canary that begins with its nonce: long, and
// whatever stands in it that is not of the line is somebody's.
func (s *interleave) stream(i int) Send {
	tokens := capped(s.env, 320+40*((i*3+s.round)%streams))
	out := ownLine(fmt.Sprintf("round %d, stream %d", s.round-alone, i+1), i%s.env.Tenants, tokens, s.env.MaxAnswer, tails[(i+s.round)%len(tails)])
	out.Stream, out.Pace = true, slowest*time.Duration(i%4)/3
	return out
}

func (s *interleave) Missing() string {
	if want := interleaveRounds*streams + alone; s.served < want {
		return fmt.Sprintf("%d of %d streams were answered%s", s.served, want, s.why())
	}
	return ""
}
