package oracle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// Under load some services answer in words of their own, and call it success. It
// is no contamination, and clean it is not either. What models say differs.
func TestStockPhrasesAreNoContamination(t *testing.T) {
	for name, c := range map[string]struct {
		said  string
		small bool
	}{
		"busy":            {"The service is busy right now. Please try again later.", false},
		"a question":      {"Repeat the value of that code, nothing else. code alpha:", true},
		"of the prompt":   {"Something else, that only %s can have been told by somebody", true},
		"less than words": {"There is none.", true},
	} {
		w := newWorld(t)
		for range 18 {
			w.onArm(0, wire.ArmNull, 1, true)
		}
		for i := range 36 {
			e := w.onArm(i%3, wire.ArmLoad, 1, i%2 == 0)
			if i%2 == 1 {
				says(e, c.said)
				if strings.Contains(c.said, "%d") {
					says(e, fmt.Sprintf(c.said, i))
				}
				if strings.Contains(c.said, "%s") {
					says(e, fmt.Sprintf(c.said, w.words(0, i, 0, 1)))
				}
			}
		}
		j := w.judge("contamination")
		if len(j.Tests) != 1 || j.Tests[0].P <= 1e-3 != c.small {
			t.Errorf("%s: tests %+v", name, j.Tests)
		}
		if told := strings.Contains(j.Unsure, "18 of all these say the same words"); told == c.small {
			t.Errorf("%s: unsure %q", name, j.Unsure)
		}
	}
}

// Replicas that word their answers otherwise are told by the words in which other
// prompts are answered with nothing between; other words than those are not.
func TestOtherWordsAroundTheSameValue(t *testing.T) {
	for name, c := range map[string]struct {
		styles []string
		tests  int // pairs that differ, of 14
	}{
		"two replicas":    {[]string{"%s", "The value is %s."}, 0},
		"words of others": {[]string{"%s", "%s and %d more that nobody has asked for"}, 7},
	} {
		w := newWorld(t)
		say := func(e *wire.Exchange, style string, n int) {
			e.Asked = 0
			text := strings.Replace(style, "%s", e.Nonces[0], 1)
			says(e, strings.Replace(text, "%d", fmt.Sprint(n), 1))
		}
		pair := func(group int, before, after, one, two string) {
			a := w.served(0, "content", "")
			a.Arm, a.Group, a.Asked = before, group, 0
			say(a, one, 2*group)
			seq, nonces := a.Seq, a.Nonces
			b := w.served(0, "content", "")
			b.Arm, b.Group, b.Asked, b.Holds, b.Nonces = after, group, 0, []int{seq}, nonces
			say(b, two, 2*group+1)
		}
		for i := range 14 {
			same := c.styles[0]
			if strings.Count(c.styles[1], "%d") == 0 {
				same = c.styles[i%2]
			}
			pair(i+1, wire.ArmNull, wire.ArmNull, same, same)
			pair(i+1, wire.ArmFirst, wire.ArmAgain, c.styles[0], c.styles[i%2])
		}
		j := w.judge("replay")
		if want := fmt.Sprintf("%d of ", c.tests); len(j.Tests) != 1 || !strings.HasPrefix(j.Tests[0].Finding.Explain, want) || j.Unsure == "" {
			t.Errorf("%s: %+v", name, j)
		}
	}
}

// A value that is missing from the answer to a prompt over a limit says nothing
// where the model forgets within it, too, or where such prompts are read.
func TestModelsThatForgetAreNotFailOpen(t *testing.T) {
	for name, more := range map[string]func(w *world){
		"forgets within the limit": func(w *world) { asking(w.sized(wire.Size, 0, 900, 900, "noted"), 0, false) },
		"reads one as long":        func(w *world) { asking(w.sized(wire.Over, 10640, 10700, 10700, ""), 0, true) },
		"":                         func(*world) {},
	} {
		w := newWorld(t)
		w.honest(right)
		asking(w.sized(wire.Under, 10640, 10593, 10593, ""), 0, true)
		asking(w.sized(wire.Over, 10640, 10641, 10641, "noted"), 1, false)
		more(w)
		j := w.judge("fail_open")
		if name == "" {
			w.expect(j, "fail_open 4/ada")
			continue
		}
		w.expect(j)
		if j.Unsure == "" {
			t.Errorf("%s: clean", name)
		}
	}
}

// An answer that the target says it has kept, to the same tenant, is no leak; one
// to another tenant is, and so is one of which it says nothing.
func TestAnswersKeptForTheirOwnTenant(t *testing.T) {
	for name, c := range map[string]struct {
		tenant int
		header string
		want   []string
	}{
		"its own":       {0, "X-Cache: semantic HIT", nil},
		"another's":     {1, "X-Cache: semantic HIT", []string{"leak 1/bob from 0/ada in content, 0 words at 0"}},
		"not said":      {0, "X-Cache: MISS", []string{"leak 1/ada from 0/ada in content, 0 words at 0"}},
		"nothing of it": {0, "X-Served-By: hit", []string{"leak 1/ada from 0/ada in content, 0 words at 0"}},
	} {
		w := newWorld(t)
		first := w.served(0, "content", "")
		says(first, echo(first))
		said := echo(first)
		w.served(c.tenant, "content", said, string(wire.Header), c.header)
		j := w.judge("misroute")
		w.expect(j, c.want...)
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// What a target puts before one tenant's prompts is cached of them as of any
// other of its prompts.
func TestHeadsOfTenants(t *testing.T) {
	for name, c := range map[string]struct {
		cached [][2]int // tenant, and tokens of a prompt of 1,000
		found  bool
	}{
		"one for each":      {[][2]int{{0, 0}, {1, 0}, {0, 300}, {1, 0}, {1, 640}, {0, 0}, {0, 300}, {1, 640}, {0, 300}}, false},
		"other each time":   {[][2]int{{0, 0}, {1, 0}, {0, 300}, {1, 0}, {1, 640}, {0, 0}, {0, 420}, {1, 500}, {0, 0}}, true},
		"mostly other ones": {[][2]int{{0, 0}, {0, 0}, {0, 300}, {0, 0}, {0, 300}, {0, 420}, {0, 512}, {0, 0}, {1, 0}}, true},
	} {
		w := newWorld(t)
		for _, k := range c.cached {
			w.served(k[0], "content", "noted").Answer.Usage = &wire.Usage{Prompt: 1000, Cached: k[1]}
		}
		if found := len(w.judge("sharing").Findings) > 0; found != c.found {
			t.Errorf("%s: found %v", name, found)
		}
	}
}

// A prompt that a gateway has sent upstream twice is reported as cached, by itself
// among others and later than new ones. What several show, or time, is sharing.
func TestPromptsThatAGatewaySentTwice(t *testing.T) {
	for name, c := range map[string]struct {
		cached [3]int
		slower time.Duration
		found  int
	}{
		"one, later":       {[3]int{0, 992, 0}, time.Second, 0},
		"one, sooner":      {[3]int{0, 992, 0}, -time.Second / 2, 1},
		"one, half of it":  {[3]int{0, 496, 0}, time.Second, 1},
		"two, later":       {[3]int{992, 992, 0}, time.Second, 2},
		"none of any kind": {[3]int{}, time.Second, 0},
	} {
		w := newWorld(t)
		for i, n := range c.cached {
			w.served(0, "content", "noted").Answer.Usage = &wire.Usage{Prompt: 1000}
			planted := len(w.all) - 1
			miss := w.served(1, "content", "noted")
			miss.Arm, miss.Group, miss.Answer.Usage = wire.ArmMiss, i+1, &wire.Usage{Prompt: 1000}
			hit := w.served(1, "content", "noted")
			hit.Arm, hit.Group, hit.Holds, hit.Answer.Usage = wire.ArmHit, i+1, []int{planted}, &wire.Usage{Prompt: 1000, Cached: n}
			if n > 0 {
				hit.Answer.End = hit.Answer.End.Add(c.slower)
			}
		}
		j := w.judge("sharing")
		if len(j.Findings) != c.found {
			t.Errorf("%s: %+v", name, j)
		}
		if lone := strings.Contains(j.Unsure, "sent it twice"); lone != (name == "one, later") {
			t.Errorf("%s: unsure %q", name, j.Unsure)
		}
	}
}

// A model that says its last answer again whenever a conversation goes on does so
// alone, too: nothing was asked of it alone that went on.
func TestModelsThatSayTheirLastAnswerAgain(t *testing.T) {
	for name, kept := range map[string]int{"always": 0, "once not": 1} {
		w := newWorld(t)
		for i := range 16 {
			first := w.onArm(i%3, wire.ArmNull, 1, true)
			first.Messages = 7
			seq, said := first.Seq, first.Answer.Text(wire.Content)
			e := w.onArm(i%3, wire.ArmLoad, 1, i < kept)
			e.Holds, e.Messages = []int{seq}, 9
			if i >= kept {
				says(e, said)
			}
		}
		j := w.judge("contamination")
		if len(j.Tests) != kept || j.Unsure == "" {
			t.Errorf("%s: %+v", name, j)
		}
	}
}
