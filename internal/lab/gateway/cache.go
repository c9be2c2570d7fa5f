package gateway

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// keptAnswers is how many answers a cache holds; the oldest makes way.
const keptAnswers = 1024

// cache keeps answers for those who ask the same again, or nearly the same.
type cache struct {
	set    lab.GatewaySettings
	tenant bool // answers are for the tenant who has asked
	whole  bool // the prompts are compared whole

	mu   sync.Mutex
	kept []entry // the oldest first
}

type entry struct {
	key    key
	answer kept
}

// key is what answers are found by.
type key struct {
	scope  [sha256.Size]byte // all of the request but its prompt
	prompt [sha256.Size]byte // and the prompt
	sketch *sketch           // where likeness is enough
}

// kept is an answer that was given once.
type kept struct {
	tokens []byte
	done   lab.Done
}

// newCache makes the cache that the settings want; nil for none.
func newCache(set lab.GatewaySettings) *cache {
	if set.Cache == "" {
		return nil
	}
	on := set.On()
	return &cache{
		set: set, tenant: on.Any(lab.TenantKey), whole: set.Cache == lab.CacheExact || on.Any(lab.CompareTokens),
	}
}

// key is what a request's answer is kept under. Two requests share answers only
// if all that decides about the answer is equal; what the request is called
// does not, and neither does a seed that nobody asked for.
func (c *cache) key(r lab.Request) key {
	var k key
	tokens, tenant := r.Tokens, r.Tenant
	r.ID, r.Name, r.Tokens = "", "", nil
	if r.Drawn {
		r.Seed = 0
	}
	if !c.tenant {
		r.Tenant = ""
	}
	scope, err := json.Marshal(r)
	if err != nil {
		panic("kvcanary: internal error: a request is not to be marshalled: " + err.Error())
	}
	k.scope, k.prompt = sha256.Sum256(scope), sha256.Sum256(tokens)
	if c.set.Cache == lab.CacheSemantic {
		k.sketch = newSketch(tokens)
		if c.set.Faults.Any(lab.SoftTenant) {
			k.sketch.add("tenant", tenant)
		}
	}
	return k
}

// get finds the answer to the prompt, or to the one that is most like it.
func (c *cache) get(k key) (kept, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	best, likeness := -1, alike
	for i, e := range c.kept {
		if e.key.scope != k.scope {
			continue
		}
		switch same := e.key.prompt == k.prompt; {
		case same && (c.whole || !c.set.Faults.Any(lab.SoftTenant)):
			return e.answer, true
		case c.whole:
			continue
		}
		if l := k.sketch.likeness(e.key.sketch); l >= likeness {
			best, likeness = i, l
		}
	}
	if best < 0 {
		return kept{}, false
	}
	return c.kept[best].answer, true
}

func (c *cache) put(k key, a kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) == keptAnswers {
		c.kept = slices.Delete(c.kept, 0, 1)
	}
	c.kept = append(c.kept, entry{k, a})
}

// replay gives the answer again.
func (k kept) replay(a *answer) {
	for _, token := range k.tokens {
		if a.send(lab.Event{Token: token}) != nil {
			a.fail(clientGone)
			return
		}
	}
	done := k.done
	a.end(lab.Event{Done: &done})
}
