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
		More:  fmt.Sprintf("up to %d exchanges more, where streams beside others lack their value more often than those alone", moreRounds*(alone+streams)),
		Start: func(e Env) Plan { return newInterleave(e) },
	}
}

const (
	interleaveRounds = 6
	// alone is how many streams are read with nothing beside them, before the
	// rounds and before each one that is made to be sure.
	alone = 10
	// moreRounds are made at most where streams beside others lack their value more
	// often than those alone, and too few were read to be sure of it.
	moreRounds = 10
	// streams are under way together, if the campaign lets so many.
	streams = 8
	// slowest is the longest pause before a piece of an answer is read.
	slowest = 6 * time.Millisecond
)

type interleave struct {
	env Env
	steps
	tally
	made   int // streams that were asked for, without those that make up for others
	round  int
	echoes echoes
}

func newInterleave(e Env) *interleave {
	s := &interleave{env: e}
	quiet := func(wanted func() bool) {
		for i := range alone {
			s.add(func() []Send {
				if !wanted() {
					return nil
				}
				return []Send{s.alone(i)}
			})
		}
	}
	quiet(func() bool { return true })
	for range interleaveRounds {
		s.add(s.together)
	}
	for range moreRounds {
		more := false
		s.add(func() []Send {
			more = s.echoes.doubtful()
			return nil
		})
		quiet(func() bool { return more })
		s.add(func() []Send {
			if !more {
				return nil
			}
			return s.together()
		})
	}
	for range catchUps {
		s.add(s.catchUp)
	}
	return s
}

// catchUp is one more round where streams were refused for those beside them.
func (s *interleave) catchUp() []Send {
	if s.crowded == 0 || s.served >= s.want() {
		return nil
	}
	s.made -= streams
	return s.together()
}

func (s *interleave) Next(done []wire.Exchange) []Send {
	for i := range done {
		s.count(&done[i])
		s.echoes.count(&done[i])
	}
	batch := s.next()
	s.made += len(batch)
	return batch
}

// alone is a stream with nothing beside it.
func (s *interleave) alone(i int) Send {
	one := s.stream(i, i+1).arm(wire.ArmNull, 1)
	one.Label = "alone"
	return one
}

// together are the streams of a round.
func (s *interleave) together() []Send {
	s.round++
	var batch []Send
	for i := range streams {
		one := s.stream(i, s.round+alone).arm(wire.ArmLoad, 1)
		one.Label = fmt.Sprintf("round %d, stream %d", s.round, i+1)
		batch = append(batch, one)
	}
	return batch
}

// stream asks for a whole line of canary that begins with its nonce: long, and
// whatever stands in it that is not of the line is somebody's.
func (s *interleave) stream(i, turn int) Send {
	tokens := capped(s.env, 320+40*((i*3+turn)%streams))
	out := ownLine("", i%s.env.Tenants, tokens, s.env.MaxAnswer, tails[(i+turn)%len(tails)])
	out.Stream, out.Pace = true, slowest*time.Duration(i%4)/3
	return out
}

func (s *interleave) Missing() string {
	if s.served < s.want() {
		return fmt.Sprintf("%d of %d streams were answered%s", s.served, s.want(), s.why())
	}
	return ""
}

// want is how many streams have to be answered.
func (s *interleave) want() int { return max(interleaveRounds*streams+alone, s.made) }
