package overlap

import (
	"bytes"
	"time"
)

// Prompt remembers what one request says. It is not safe for concurrent use.
type Prompt struct {
	x      *Index
	who    Tenant
	now    uint32
	inside bool // of a string
	sieve  sieve
}

// Prompt begins a request of a tenant's.
func (x *Index) Prompt(who Tenant, now time.Time) *Prompt {
	return &Prompt{x: x, who: who, now: x.at(now), sieve: sieve{r: &x.roller}}
}

// Write takes the next bytes of the request's body, a JSON document. What it
// says in strings of [Sure] letters or more is remembered at once: it must be
// written before the engine has it, or an answer could come first.
func (p *Prompt) Write(b []byte) {
	for len(b) > 0 {
		if !p.inside {
			i := bytes.IndexByte(b, '"')
			if i < 0 {
				break
			}
			p.inside = true
			p.sieve.restart()
			b = b[i+1:]
			continue
		}
		n, closed := p.sieve.write(b[:min(len(b), atOnce)])
		p.inside = !closed
		b = b[n:]
		p.remember()
	}
}

// atOnce bounds what is read before others may use the index, bytes.
const atOnce = 16 << 10

// remember puts the fingerprints that have been chosen into the index.
func (p *Prompt) remember() {
	s := &p.sieve
	if len(s.chosen) == 0 {
		return
	}
	for i, c := range s.chosen {
		s.chosen[i].hash = p.x.secret(s, c.hash)
	}
	p.x.mu.Lock()
	defer p.x.mu.Unlock()
	for _, c := range s.chosen {
		p.x.table.send(c.hash, p.who, p.now)
	}
	s.chosen = s.chosen[:0]
}
