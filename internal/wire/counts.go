package wire

import "math/bits"

// tenantLaw is the law of one tenant's prompts.
type tenantLaw struct {
	law     law
	longish int
}

// lawsOfOwn is how many prompts of a tenant make a law of its own: twice as many
// as make one that others can be held to.
const lawsOfOwn = 2 * settled

func tenantLaws(texts map[string][]observation) map[string]tenantLaw {
	if len(texts) < 2 {
		return nil
	}
	out := map[string]tenantLaw{}
	for tenant, own := range texts {
		if len(own) >= lawsOfOwn {
			l, longish := textLaw(own)
			out[tenant] = tenantLaw{l, longish}
		}
	}
	return out
}

// lawOf is the law that a prompt is held to: of its tenant, else of all.
func (b Baseline) lawOf(e *Exchange) *tenantLaw {
	if l, ok := b.tenants[e.Tenant]; ok {
		return &l
	}
	return &tenantLaw{b.text, b.longish}
}

// steadyTenants are the exact counts of each tenant: how many, and the most
// tokens by which one was over what was sent.
type steadyTenants map[string]struct{ n, most int }

func (s steadyTenants) add(tenant string, over int) {
	t, ok := s[tenant]
	if !ok || over > t.most {
		t.most = over
	}
	t.n++
	s[tenant] = t
}

// reach reports whether every tenant of whom more than one prompt was counted
// has been counted by so much over what it sent: where one never is, a target
// counts other things for it than for others.
func (s steadyTenants) reach(over int) bool {
	for _, t := range s {
		if t.n > 1 && t.most < over {
			return false
		}
	}
	return true
}

// Rounding is how many tokens a count may lack because the target rounds all of
// them to multiples: one and a half of those, for what was learned from rounded
// counts is off as well. It is 0 where they are not rounded.
func (b Baseline) Rounding() int {
	if b.grain <= 1 {
		return 0
	}
	return b.grain + b.grain/2
}

const (
	// grainCounts counts, not all the same, tell rounding from chance, and
	// leastGrain is the least that matters, tokens.
	grainCounts = 4
	leastGrain  = 16
)

func grainOf(points []point) int {
	seen, grain := map[int]bool{}, 0
	for _, p := range points {
		seen[p.used] = true
		for a := p.used; a > 0; {
			grain, a = a, grain%a
		}
	}
	if len(points) < grainCounts || len(seen) < 2 || grain < leastGrain {
		return 1
	}
	return grain
}

// Doubles reports whether a target counts in powers of two: prompts are padded to
// the next one, and half of a count may be padding.
func (b Baseline) Doubles() bool { return b.doubles }

func doubles(points []point) bool {
	seen := map[int]bool{}
	for _, p := range points {
		if bits.OnesCount(uint(p.used)) != 1 {
			return false
		}
		seen[p.used] = true
	}
	return len(points) >= grainCounts && len(seen) >= 3
}
