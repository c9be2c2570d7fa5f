package wire

import "testing"

// A count may lack what rounding takes, where all counts are multiples.
func TestRounding(t *testing.T) {
	for name, c := range map[string]struct {
		used []int
		want int
	}{
		"to 64":           {[]int{256, 320, 704, 2112}, 96},
		"to 256":          {[]int{512, 512, 256, 1024}, 384},
		"to 16":           {[]int{208, 656, 2064, 2080}, 24},
		"not rounded":     {[]int{256, 320, 704, 2113}, 0},
		"to 8":            {[]int{200, 648, 2056, 2072}, 0},
		"too few to tell": {[]int{256, 320, 704}, 0},
		"always the same": {[]int{64, 64, 64, 64}, 0},
	} {
		var all []Exchange
		for i, used := range c.used {
			all = append(all, counted(200+300*i, used, 0))
		}
		if got := NewBaseline(all).Rounding(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// What is put before one tenant's prompts is not missing from another's.
func TestCountsByTenant(t *testing.T) {
	add := func(all []Exchange, tenant string, exact bool, over int, sents ...int) []Exchange {
		for _, sent := range sents {
			e := counted(sent, sent+over, 0)
			e.Tenant, e.SentExact, e.SentBytes, e.Messages = tenant, exact, int64(4*sent), 3
			all = append(all, e)
		}
		return all
	}
	long := counted(5000, 5000, 0)
	long.Tenant, long.SentExact, long.SentBytes, long.Messages = "b", true, 20_000, 3
	exact := add(add(nil, "a", true, 700, 200, 400, 800, 1600, 3200), "b", true, 0, 900, 1700, 3300)
	if lost, ok := NewBaseline(exact).Lost(&long); ok {
		t.Errorf("%d tokens lost of a tenant without a hidden prompt", lost)
	}
	if lost, ok := NewBaseline(exact[:5]).Lost(&long); !ok || lost != 700 {
		t.Errorf("lost %d %v where nothing else is known of that tenant", lost, ok)
	}
	lengths := []int{150, 250, 350, 450, 550, 700, 900, 1200, 1600, 2100, 2800, 3700}
	learned := add(add(nil, "a", false, 700, lengths...), "b", false, 0, lengths...)
	long.SentExact = false
	if lost, ok := NewBaseline(learned).Lost(&long); ok {
		t.Errorf("%d tokens lost of what was learned from a tenant's own prompts", lost)
	}
	long.Answer.Usage.Prompt = 3000
	if lost, ok := NewBaseline(learned).Lost(&long); !ok || lost < 1500 {
		t.Errorf("lost %d %v of a prompt that was cut", lost, ok)
	}
}
