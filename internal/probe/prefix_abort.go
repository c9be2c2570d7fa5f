package probe

import (
	"fmt"

	"github.com/kvcanary/kvcanary/internal/wire"
)

const (
	// abortTries is how many prompts are given up and sent again.
	abortTries = 4
	// abortTokens is their length: prefill has to be under way when they are.
	abortTokens = 3072
	// seeds of each tenant are sent before, so that what a cache gives out next
	// has held text that says whose it is.
	abortSeeds = 2
)

// aborts gives prompts up in the middle of their prefill and sends them again,
// all thirds asked for in turn: what a cache has published of them must be what
// they say. The control are prompts that were not given up.
func (p *prefixes) aborts() {
	group := 0
	p.add(func() []Send {
		p.group++
		group = p.group
		return nil
	})
	for i := range abortSeeds {
		p.add(func() []Send {
			var batch []Send
			for t := range p.env.Tenants {
				batch = append(batch, p.session(wire.Plant, fmt.Sprintf("seed %d", i+1), t, abortTokens))
			}
			return batch
		})
	}
	for i := range abortTries {
		p.abort(i, &group)
	}
}

func (p *prefixes) abort(i int, group *int) {
	tenant := i % p.env.Tenants
	var whole, given Send
	var wholeSeq, givenSeq int
	p.add(func() []Send {
		whole = p.session(wire.Plant, "sent whole", tenant, prefixTokens)
		return []Send{whole}
	})
	p.add(func() []Send {
		seq, ok := p.served()
		if wholeSeq = seq; !ok {
			return nil
		}
		s := whole.after(wholeSeq, tenant, i).arm(wire.ArmNull, *group)
		s.Purpose, s.Label = wire.Unrelated, "again"
		return []Send{s}
	})
	p.add(func() []Send {
		given = p.session(wire.Churn, "given up once sent", tenant, abortTokens-p.env.page()*i)
		given.Hangup = wire.Hangup{Sent: true}
		return []Send{given}
	})
	p.add(func() []Send {
		if len(p.last) != 1 {
			return nil
		}
		givenSeq = p.last[0].Seq
		return p.retry(given, givenSeq, tenant, i, *group)
	})
	p.add(func() []Send {
		if p.env.Tenants < 2 {
			return nil
		}
		return p.retry(given, givenSeq, (tenant+1)%p.env.Tenants, i+1, *group)
	})
}

// retry asks for what a prompt says that was given up.
func (p *prefixes) retry(given Send, seq, tenant, place, group int) []Send {
	s := given.after(seq, tenant, place).arm(wire.ArmLoad, group)
	s.Purpose, s.Label, s.Hangup, s.MaxTokens = wire.Unrelated, "sent again", wire.Hangup{}, p.env.MaxAnswer
	return []Send{s}
}
