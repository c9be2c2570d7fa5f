package lab

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// visits are prompts of several tenants, some of which begin alike.
func visits(rng *rand.Rand, n int) (all []Request) {
	stem := words(rng, 200)
	for i := range n {
		text := words(rng, 100+rng.IntN(500))
		if i%3 == 2 {
			text = stem + text
		}
		prompt, _ := recall(rng, 100)
		r := Request{Tenant: string(rune('a' + rng.IntN(2))), Tokens: append(chat(text), prompt...), MaxTokens: 30}
		if i%5 == 4 {
			r.Tokens = append(append([]byte{}, all[i-1].Tokens...), prompt...)
			r.Tenant = all[i-1].Tenant
		}
		all = append(all, r)
	}
	return all
}

// Slots that keep prompts change no answer, and spare work.
func TestKeptPromptsChangeNothing(t *testing.T) {
	cfg := tiny()
	plain := startPipe(t, cfg)
	cfg.SlotCache = 500
	slotted := startPipe(t, cfg)
	spared := 0
	for i, r := range visits(rand.New(rand.NewPCG(1, 71)), 60) {
		want, got := serve(t, plain, r), serve(t, slotted, r)
		if got.text != want.text || want.err != nil || got.err != nil {
			t.Errorf("visit %d: got %q, %v, want %q, %v", i, got.text, got.err, want.text, want.err)
			continue
		}
		spared += got.done.CachedTokens
	}
	if spared < 500 {
		t.Errorf("only %d tokens were spared", spared)
	}
	idle(t, slotted)
}

// What a slot has kept comes out in somebody else's answer, with nothing said
// to have been cached.
func TestDirtyRestore(t *testing.T) {
	for defences, leaks := range map[string]bool{
		"": true, "slot_reset": false, "full_compare": false, "zero_on_alloc": true, "zero_on_alloc:all": false,
		"tags coverage generations checksum owner_audit": true,
	} {
		cfg := tiny()
		cfg.Faults, cfg.Defences = []string{"dirty_slot:lru"}, strings.Fields(defences)
		e := startPipe(t, cfg)
		rng := rand.New(rand.NewPCG(1, 72))
		worst, cached := "", 0
		var others []string
		for range 30 {
			secret := words(rng, 40)
			r := Request{Tenant: secret[:4], Tokens: chat(strings.Repeat(secret, 3+rng.IntN(20))), MaxTokens: 60}
			got := serve(t, e, r)
			if piece := foreign(got.text, secret, others); len(piece) > len(worst) {
				worst = piece
			}
			cached += got.done.CachedTokens
			others = append(others, secret)
		}
		if len(worst) >= 20 != leaks || cached > 0 {
			t.Errorf("%q: %q is somebody else's, %d tokens cached", defences, worst, cached)
		}
	}
}

// After a common beginning, a page goes on with what was there before.
func TestDirtyTail(t *testing.T) {
	for defences, leaks := range map[string]bool{
		"": true, "slot_reset": false, "full_compare": true, "zero_on_alloc": true, "zero_on_alloc:all": false,
	} {
		cfg := tiny()
		cfg.Faults, cfg.Defences = []string{"dirty_slot:tail"}, strings.Fields(defences)
		cfg.PageSize = 64
		e := startPipe(t, cfg)
		rng := rand.New(rand.NewPCG(1, 73))
		stem := words(rng, 64+10)
		leaked := 0
		var before string
		for i := range 20 {
			secret := strings.ToUpper(words(rng, 12))
			r := Request{Tenant: secret, Tokens: chat(stem + " code: " + secret + "\n" + words(rng, 100) + " code:"), MaxTokens: 12}
			got := serve(t, e, r)
			if i > 0 && strings.Contains(got.text, before[:8]) {
				leaked++
			}
			before = secret
		}
		if leaked > 0 != leaks {
			t.Errorf("%q: %d answers with what was there before", defences, leaked)
		}
	}
}
