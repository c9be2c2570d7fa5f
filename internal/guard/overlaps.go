package guard

import (
	"fmt"

	"github.com/kvcanary/kvcanary/internal/guard/overlap"
	"github.com/kvcanary/kvcanary/internal/guard/watch"
)

// remember is who remembers what the request says, nil for nobody.
func (t *trip) remember() *overlap.Prompt {
	x := t.s.Overlap
	if x == nil {
		return nil
	}
	return x.Prompt(x.Tenant(t.tenant.Name), t.rec.Start)
}

// compare begins to compare an answer with what others have sent, and returns
// what the watch is to have its texts read by. Alternatives of tokens are no
// text.
func (t *trip) compare() func(watch.Channel) func([]byte) {
	x := t.s.Overlap
	if x == nil {
		return nil
	}
	t.overlap = x.Answer(x.Tenant(t.tenant.Name), t.rec.Start)
	return func(c watch.Channel) func([]byte) {
		if c == watch.Logprobs {
			return nil
		}
		return t.overlap.Strand(string(c)).Write
	}
}

// overlaps records what the answer has of what others have sent.
func (t *trip) overlaps() {
	if t.overlap == nil {
		return
	}
	for _, r := range t.overlap.Found() {
		t.rec.Findings = append(t.rec.Findings, Finding{Kind: overlap.Kind, Channel: r.Channel, Explain: fmt.Sprintf(
			"%d letters, in a stretch of at most twice as many, that %s has sent and nobody else: a suspicion, no proof", r.Letters, t.s.nameOf(r.From))})
	}
}

// nameOf is what the configuration calls a tenant. Of those that it does not
// name nothing is kept to tell it by.
func (s *setup) nameOf(who overlap.Tenant) string {
	for _, t := range s.Tenants.Keys {
		if s.Overlap.Tenant(t.Name) == who {
			return "tenant " + t.Name
		}
	}
	return "another tenant"
}
