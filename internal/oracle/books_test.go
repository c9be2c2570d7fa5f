package oracle_test

import (
	"math/bits"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// asked adds a prompt that is answered with its value and counted as used says.
func (w *world) asked(tenant, sent, used int, exact, echo bool) *wire.Exchange {
	e := w.sized(wire.Size, 0, sent, used, "noted")
	e.Tenant, e.SentBytes, e.Messages, e.SentExact = names[tenant], int64(bytesPerToken*sent), 3, exact
	return asking(e, len(w.all)%3, echo)
}

// Counts that vary for other reasons than length are no truncation, whatever the
// reason: hidden prompts that come and go or differ by tenant, replicas with
// other tokenizers, rounding to multiples. Where nothing makes sense of them the
// oracle is unsure, and never clean by mistake.
func TestCountsThatVaryAreNoTruncation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		exact := rapid.Bool().Draw(t, "exact")
		by := rapid.IntRange(33, 2000).Draw(t, "by")
		rare := rapid.IntRange(2, 20).Draw(t, "rare")
		how := rapid.SampledFrom([]string{"comes and goes", "by tenant", "another tokenizer", "multiples", "powers of two", "one", "ends"}).Draw(t, "how")
		n := rapid.IntRange(3, 40).Draw(t, "prompts")
		for i := range n {
			sent, tenant := rapid.IntRange(128, 6000).Draw(t, "sent"), i%3
			used := sent
			switch now := rapid.IntRange(0, rare-1).Draw(t, "now") == 0; {
			case how == "comes and goes" && now, how == "by tenant" && tenant == 1, how == "ends" && i < n/2:
				used += by
			case how == "another tokenizer" && now:
				used = used * 8 / 10
			case how == "multiples":
				used = (used + 10 + 63) / 64 * 64
			case how == "powers of two":
				used = 1 << bits.Len(uint(used-1))
			case how == "one" && now:
				used = 1
			}
			w.asked(tenant, sent, used, exact, true)
		}
		w.expect(w.judge("truncation"))
		w.expect(w.judge("fail_open"))
	})
}

// A target that counts the last chunk of 512 tokens of a prompt reads it whole all
// the same, as its answers show, even where it counts next to nothing.
func TestCountsOfTheLastChunk(t *testing.T) {
	w := newWorld(t)
	for i, sent := range []int{320, 448, 384, 576, 1343, 2366, 1088, 2497, 2391, 4096, 2049, 320} {
		w.asked(i%2, sent, (sent-1)%512+1, true, true)
	}
	for _, oracle := range []string{"fail_open", "truncation"} {
		j := w.judge(oracle)
		w.expect(j)
		if j.Unsure == "" {
			t.Errorf("%s is sure", oracle)
		}
	}
}

// What is cut from some length on is found all the same next to such counts, or
// at least not taken for whole: by all of a target, or by one of its replicas.
func TestCountsThatVaryHideNoCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		replicas := rapid.IntRange(1, 2).Draw(t, "replicas")
		hidden := rapid.SampledFrom([]int{0, 700}).Draw(t, "hidden")
		for i := range 60 {
			sent, kept := rapid.IntRange(128, 8000).Draw(t, "sent"), 8000
			if i%replicas == 0 {
				kept = 2000
			}
			used := min(sent, kept)
			if hidden > 0 && rapid.Bool().Draw(t, "now") {
				used += hidden
			}
			// The end is kept, and all that is asked for elsewhere is lost.
			e := w.asked(i%3, sent, used, true, true)
			if sent > kept && e.Asked < 2 {
				asking(e, e.Asked, false)
				e.Answer.Pieces[0].Text = "noted"
			}
		}
		w.asked(0, 7000, 2000, true, false)
		w.asked(0, 4000, 2000, true, false)
		j := w.judge("truncation")
		if len(j.Findings) == 0 && j.Unsure == "" {
			t.Fatal("clean")
		}
		if hidden == 0 && len(j.Findings) == 0 {
			t.Fatalf("not found: %s", j.Unsure)
		}
	})
}

// One prompt of which less was counted proves a cut where its value is gone, too,
// and nothing where it came back.
func TestOneShortCount(t *testing.T) {
	for name, c := range map[string]struct {
		echo bool
		want string
	}{"value gone": {false, "truncation 12/ada"}, "value there": {true, ""}} {
		w := newWorld(t)
		for i := range 12 {
			w.asked(0, 200+200*i, 200+200*i, true, true)
		}
		w.asked(0, 6000, 4000, true, c.echo)
		if w.all[12].Asked == 2 {
			t.Fatal("asks for the end")
		}
		j := w.judge("truncation")
		if c.want != "" {
			w.expect(j, c.want)
			continue
		}
		w.expect(j)
		if !strings.Contains(j.Unsure, name[:5]) {
			t.Errorf("%s: unsure %q", name, j.Unsure)
		}
	}
}

// A target that counts only what it has computed counts next to nothing of a
// prompt that it has in its cache. That is no cut and no prompt that was not
// read; of what only another tenant has sent it is sharing.
func TestCountsOfWhatWasComputed(t *testing.T) {
	for _, owner := range []int{0, 1} {
		w := newWorld(t)
		for i := range 4 {
			w.asked(0, 600+300*i, 600+300*i, true, true)
		}
		first := w.asked(owner, 1536, 1536, true, true)
		first.SentSHA256 = "same"
		e := w.asked(0, 1536, 17, true, true)
		e.Holds, e.SentSHA256, e.Arm, e.Group = []int{4}, "same", wire.ArmOwn, 1
		if owner == 1 {
			e.Arm = wire.ArmHit
		}
		w.expect(w.judge("truncation"))
		w.expect(w.judge("fail_open"))
		j := w.judge("sharing")
		if found := len(j.Findings) == 1; found != (owner == 1) {
			t.Errorf("owner %d: %+v", owner, j)
		}
	}
}
