package probe

import (
	"fmt"

	"github.com/kvcanary/kvcanary/internal/wire"
)

const (
	// repeatTries short prompts are sent twice; up to mostRepeats where the second
	// answers lack their value more often, until that is sure.
	repeatTries = 8
	mostRepeats = 24
	// leastRepeats have to be answered twice for anything to be tested.
	leastRepeats = repeatTries / 2
	// repeatTokens is their length, one or two pages more in turn: they are
	// computed in one go, so that a cache that copies too early has their beginning
	// and not their end.
	repeatTokens = 352
)

// repeats sends short prompts twice, by one tenant, with nothing between: the
// second time a cache has them, and the answer must not lack what the first has
// had. That one is the control: nobody had sent its prompt before. A value
// behind the middle of a prompt stands there once, so it is lost with the page
// that it is on.
func (p *prefixes) repeats() {
	for i := range mostRepeats {
		var first Send
		enough := false
		p.add(func() []Send {
			if i == 0 {
				p.group++
				p.repeated = p.group
			}
			if enough = i >= repeatTries && !p.echoes.doubtful(); enough {
				return nil
			}
			place := 2
			if i%4 == 3 {
				place = 1
			}
			tokens := repeatTokens + p.env.page()*(i%3)
			first = session(wire.Unrelated, fmt.Sprintf("sent once %d", i+1), i%p.env.Tenants, capped(p.env, tokens), place).arm(wire.ArmNull, p.repeated)
			first.MaxTokens, first.Stream = p.env.MaxAnswer, true
			return []Send{first}
		})
		p.add(func() []Send {
			seq, ok := p.served()
			if enough || !ok {
				return nil
			}
			again := repeated(first, seq).arm(wire.ArmLoad, p.repeated)
			again.Label = fmt.Sprintf("sent twice %d", i+1)
			return []Send{again}
		})
	}
}
