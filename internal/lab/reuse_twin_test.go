package lab

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/kvcanary/kvcanary/internal/lab/model"
)

// mixed is a request of one of a few tenants, that begins like others, on some
// adapter, with or without a picture.
func mixed(rng *rand.Rand, stems []string, pictures []model.Picture) Request {
	stem := stems[rng.IntN(len(stems))]
	text := stem[:rng.IntN(len(stem))]
	var images []Image
	if rng.IntN(2) == 0 {
		text += strings.Repeat(string([]byte{model.Image}), model.ImageTokens)
		images = []Image{{Picture: pictures[rng.IntN(len(pictures))]}}
	}
	text += [...]string{" ref for this session:", " The picture shows:", stem[:30], " Reply with OK."}[rng.IntN(4)]
	r := as([...]string{"a", "b", "c"}[rng.IntN(3)], text)
	for i := range images {
		images[i].At = bytes.IndexByte(r.Tokens, model.Image)
	}
	r.Images = images
	r.Adapter = [...]string{"", "ada", "ben"}[rng.IntN(3)]
	r.MaxTokens = 1 + rng.IntN(24)
	return r
}

// An engine with a prefix cache so small that all of it is used again and again,
// a second tier, adapters and pictures says, to the byte, what an engine without
// a cache says.
func TestCacheChangesNoAnswer(t *testing.T) {
	plain := startPipe(t, tiny())
	pictures := []model.Picture{pixel(t, 1), pixel(t, 2), pixel(t, 3)}
	hits, seeds := 0, uint64(4)
	if *sweep {
		seeds = 500
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 30))
		cfg := tiny()
		cfg.PrefixCache = [...]int{16, 256, 512, 2048}[seed%4]
		cfg.Tier = [...]int{0, 16, 1024, 4096}[rng.IntN(4)]
		cfg.Policy = [...]string{"lifo", "sort"}[rng.IntN(2)]
		cfg.OneSided = rng.IntN(2) == 0
		e := startPipe(t, cfg)
		stems := []string{words(rng, 300), "ref for this session: " + words(rng, 600)}
		stems = append(stems, stems[0][:150]+words(rng, 200))
		for range 12 {
			r := mixed(rng, stems, pictures)
			want, got := serve(t, plain, r), serve(t, e, r)
			if got.err != nil || want.err != nil {
				t.Fatalf("%+v, %+v", got.err, want.err)
			}
			hits += got.done.CachedTokens
			got.done.CachedTokens = 0
			if got.text != want.text || *got.done != *want.done {
				t.Fatalf("seed %d, %q of %d tokens on %q: %q, %+v, without a cache %q, %+v",
					seed, r.Tenant, len(r.Tokens), r.Adapter, got.text, got.done, want.text, want.done)
			}
		}
	}
	if hits == 0 {
		t.Error("nothing was ever used again")
	}
}

// Many at a time, some of which go away while they are computed or copied.
func TestCacheUnderLoad(t *testing.T) {
	cfg := tiny()
	cfg.PrefixCache, cfg.Tier = 1024, 2048
	plain, e := startPipe(t, tiny()), startPipe(t, cfg)
	pictures := []model.Picture{pixel(t, 1), pixel(t, 2)}
	stems := []string{words(rand.New(rand.NewPCG(1, 31)), 500), words(rand.New(rand.NewPCG(2, 31)), 500)}
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 32))
			for range 3 {
				r := mixed(rng, stems, pictures)
				if rng.IntN(3) == 0 {
					leave(t, e, r, rng.IntN(3))
					continue
				}
				want, got := collect(plain.Submit(t.Context(), r)), collect(e.Submit(t.Context(), r))
				if got.text != want.text || got.err != nil {
					t.Errorf("%q, %+v, without a cache %q", got.text, got.err, want.text)
				}
			}
		})
	}
	clients.Wait()
	idle(t, e)
}
