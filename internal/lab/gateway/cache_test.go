package gateway

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// ask has a tenant ask for something random, so that equal answers are one answer.
func ask(t *testing.T, g *Gateway, tenant, prompt string, seed uint64) string {
	t.Helper()
	got := collect(t, g.Submit(t.Context(), lab.Request{
		ID: tenant, Tenant: tenant, Tokens: chat(prompt), MaxTokens: 40, Temperature: 2, Seed: seed, Drawn: true,
	}))
	if got.err != nil {
		t.Fatal(got.err)
	}
	return got.text
}

// question is a prompt with many words to pick one from.
func question(rng *rand.Rand, words int) string {
	var b strings.Builder
	for range words {
		fmt.Fprintf(&b, "pick %s\n", strings.ToLower(phrase(rng, 10)))
	}
	return b.String() + "pick"
}

func TestWhoGetsAKeptAnswer(t *testing.T) {
	exact := func(c *lab.Config) { c.AnswerCache = "exact" }
	semantic := func(c *lab.Config) { c.AnswerCache = "semantic" }
	for _, c := range []struct {
		name   string
		change func(*lab.Config)
		// who gets the first tenant's answer
		again, like, other, otherLike bool
	}{
		{"none", nil, false, false, false, false},
		{"exact", exact, true, false, false, false},
		{"semantic", semantic, true, true, false, false},
		{"exact fault", with("answer_cache:exact", ""), true, false, true, false},
		{"semantic fault", with("answer_cache:semantic", ""), true, true, true, true},
		{"soft fault", with("answer_cache:soft", ""), true, true, true, true},
		{"exact fault, cured", with("answer_cache:exact", "tenant_key"), true, false, false, false},
		{"semantic fault, cured", with("answer_cache:semantic", "tenant_key"), true, true, false, false},
		{"soft fault, cured", with("answer_cache:soft", "tenant_key"), true, true, false, false},
		{"another fault", with("stream_desync", ""), false, false, false, false},
	} {
		g := start(t, c.change)
		rng := rand.New(rand.NewPCG(1, 7))
		q := question(rng, 120)
		like := strings.ToUpper(q[:200]) + q[200:] + " one, pick"
		first := ask(t, g, "a", q, 1)
		for i, q := range []struct {
			tenant, prompt, of string
			want               bool
		}{
			{"a", q, first, c.again}, {"a", like, first, c.like}, {"b", q, first, c.other}, {"b", like, first, c.otherLike},
			{"a", question(rng, 120), first, false},
		} {
			got := ask(t, g, q.tenant, q.prompt, uint64(100+i))
			if (got == q.of) != q.want {
				t.Errorf("%s: question %d by %s gets %q, the first answer is %q", c.name, i, q.tenant, got, q.of)
			}
		}
	}
}

// What the client asks for beside the prompt counts, and broken answers are not kept.
func TestWhatAKeptAnswerIsFoundBy(t *testing.T) {
	c := newCache(lab.GatewaySettings{Cache: lab.CacheExact})
	base := lab.Request{ID: "1", Tenant: "a", Tokens: []byte("x"), MaxTokens: 4, Seed: 1, Drawn: true}
	c.put(c.key(base), kept{tokens: []byte("y")})
	for name, change := range map[string]func(*lab.Request){
		"same": func(r *lab.Request) { r.ID, r.Name, r.Seed = "2", "n", 9 }, "max": func(r *lab.Request) { r.MaxTokens = 5 },
		"temperature": func(r *lab.Request) { r.Temperature = 1 }, "seed": func(r *lab.Request) { r.Drawn = false },
		"stop": func(r *lab.Request) { r.Stop = []string{"s"} }, "tenant": func(r *lab.Request) { r.Tenant = "b" },
		"prompt": func(r *lab.Request) { r.Tokens = []byte("z") },
	} {
		r := base
		change(&r)
		if _, hit := c.get(c.key(r)); hit != (name == "same") {
			t.Errorf("%s: hit %v", name, hit)
		}
	}
	soft := newCache(lab.GatewaySettings{Cache: lab.CacheSemantic, Faults: lab.SoftTenant, Faulty: true})
	for prompt, want := range map[string]bool{"hi there": false, question(rand.New(rand.NewPCG(1, 9)), 30): true} {
		a, b := lab.Request{Tenant: "a", Tokens: []byte(prompt)}, lab.Request{Tenant: "b", Tokens: []byte(prompt)}
		soft.put(soft.key(a), kept{})
		if _, hit := soft.get(soft.key(b)); hit != want {
			t.Errorf("%.20q: another tenant's answer is found %v", prompt, hit)
		}
	}
	for i := range 2 * keptAnswers {
		r := base
		r.MaxTokens = 10 + i
		c.put(c.key(r), kept{})
	}
	if _, hit := c.get(c.key(base)); hit || len(c.kept) != keptAnswers {
		t.Errorf("%d answers are kept, the oldest is there: %v", len(c.kept), hit)
	}
	g := start(t, func(c *lab.Config) { c.AnswerCache = "exact" })
	long := lab.Request{Tokens: chat(strings.Repeat("too long", 1000)), MaxTokens: 4}
	for range 2 {
		if got := collect(t, g.Submit(t.Context(), long)); got.err == nil || got.err.Status != 400 || len(g.cache.kept) != 0 {
			t.Errorf("%+v, %d kept", got.err, len(g.cache.kept))
		}
	}
}

func TestLikeness(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 8))
	q := question(rng, 400)
	for name, c := range map[string]struct {
		other    string
		min, max float64
	}{
		"itself": {q, 1, 1}, "other spacing": {strings.ReplaceAll(strings.ToUpper(q), " ", ",\n"), 1, 1},
		"a tenth more": {q + question(rng, 40), 0.8, 0.97}, "half": {q[:len(q)/2], 0.35, 0.65},
		"another": {question(rng, 400), 0, 0.05}, "nothing": {"", 0, 0},
	} {
		if l := newSketch([]byte(q)).likeness(newSketch([]byte(c.other))); l < c.min || l > c.max {
			t.Errorf("%s: %.3f, want from %.2f to %.2f", name, l, c.min, c.max)
		}
	}
}
