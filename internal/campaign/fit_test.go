package campaign

import (
	"context"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

func render(p prompt) string {
	var b strings.Builder
	for _, m := range p.messages {
		b.WriteString(m.Role + ": ")
		if _, err := io.Copy(&b, m.Text.Open()); err != nil {
			panic(err)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestFitIsExactWhereTokensAreBytes(t *testing.T) {
	coder := canary.New(testKey())
	rapid.Check(t, func(t *rapid.T) {
		f := &fakeTarget{counts: true}
		fit := newFitter(f, coder, "fake")
		target := rapid.IntRange(250, 40000).Draw(t, "tokens")
		p := fit.fit(context.Background(), "", fillerSend(target), canary.MakeID(1, 0, 3), prefix{})
		if !p.exact || p.tokens != target {
			t.Fatalf("wanted %d tokens, got %d, exact %v, after %d counts", target, p.tokens, p.exact, f.asked)
		}
		if n, _ := f.size(p.messages); n != target {
			t.Fatalf("says %d tokens, has %d", target, n)
		}
		if f.asked > wordCounts+padCounts {
			t.Fatalf("asked the tokenizer %d times", f.asked)
		}
	})
}

func TestFitIsNeverOverWithLearnedPieces(t *testing.T) {
	coder := canary.New(testKey())
	exact, all := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		f := &fakeTarget{counts: true, tokenize: wordTokens}
		fit := newFitter(f, coder, "fake")
		target := rapid.IntRange(60, 20000).Draw(t, "tokens")
		p := fit.fit(context.Background(), "", fillerSend(target), canary.MakeID(1, 0, 3), prefix{})
		n, _ := f.size(p.messages)
		if !p.exact || p.tokens != n || n > target || n < target-2 {
			t.Fatalf("wanted %d tokens, says %d (exact %v), has %d", target, p.tokens, p.exact, n)
		}
		if all++; n == target {
			exact++
		}
	})
	if exact < all*9/10 {
		t.Errorf("only %d of %d prompts have exactly their length", exact, all)
	}
}

func TestFitByEstimate(t *testing.T) {
	coder := canary.New(testKey())
	for name, tokenize := range map[string]func([]string) int{"bytes": byteTokens, "pieces": wordTokens} {
		t.Run(name, func(t *testing.T) {
			f := &fakeTarget{tokenize: tokenize}
			fit := newFitter(f, coder, "fake")
			for i, target := range []int{500, 1000, 2000, 50000, 100000} {
				p := fit.fit(context.Background(), "", fillerSend(target), canary.MakeID(1, 0, i), prefix{})
				n, _ := f.size(p.messages)
				if p.exact {
					t.Fatal("says exact without a tokenizer to ask")
				}
				// The fourth is much longer than all before it.
				perMille := []int{4000, 100, 20, 10, 2}[i]
				if abs(n-target)*1000 > target*perMille {
					t.Errorf("after %d exchanges wanted %d tokens, got %d", i, target, n)
				}
				fit.learn(observation{p.bytes, len(p.messages), n})
			}
		})
	}
}

func TestFitKeepsWhatTheProtocolWrote(t *testing.T) {
	coder := canary.New(testKey())
	id := canary.MakeID(1, 2, 3)
	fit := newFitter(&fakeTarget{counts: true}, coder, "fake")
	s := fillerSend(2000)
	p := fit.fit(context.Background(), "", s, id, prefix{})
	got := render(p)
	for _, want := range []string{
		"user: Start code: " + coder.Nonce(id, 0) + "\nRef: ",
		"\n" + coder.Token(id) + "\nEnd code: " + coder.Nonce(id, 2) + "\nSay the end code.\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("prompt lacks %q:\n%s", want, got)
		}
	}
	if p.nonces != [3]string{coder.Nonce(id, 0), "", coder.Nonce(id, 2)} || p.token != coder.Token(id) || !p.planted {
		t.Errorf("nonces %q, token %q, planted %v", p.nonces, p.token, p.planted)
	}
	// The fillers are one canary from its start, cut by weight.
	words := func(text string) []string {
		text = strings.TrimRight(text[strings.Index(text, ":")+2:], ". ")
		return strings.Fields(strings.ReplaceAll(text, "Ref: ", ""))
	}
	var all []string
	for i, m := range p.messages {
		b, _ := io.ReadAll(m.Text.Open())
		text := string(b)
		if i == 0 {
			text = text[strings.Index(text, "\n")+1:]
		}
		if i == 2 {
			text = text[:strings.Index(text, "\n")]
		}
		all = append(all, words("x: "+text)...)
	}
	want, _ := io.ReadAll(coder.Words(id, 0, len(all)))
	if strings.Join(all, " ") != string(want) {
		t.Errorf("fillers are not one canary:\n%q\n%q", all, want)
	}
}

func TestFitWithoutLength(t *testing.T) {
	coder := canary.New(testKey())
	fit := newFitter(&fakeTarget{counts: true}, coder, "fake")
	plain := probe.Send{Asked: -1, Turns: []probe.Turn{{Role: "user", Parts: []probe.Part{{Kind: probe.Literal, Text: "Write a haiku."}}}}}
	p := fit.fit(context.Background(), "", plain, canary.MakeID(1, 0, 0), prefix{})
	if render(p) != "user: Write a haiku.\n" || !p.exact || p.tokens != 18 || p.planted {
		t.Errorf("got %q, %d tokens, exact %v, planted %v", render(p), p.tokens, p.exact, p.planted)
	}
	words := probe.Send{Asked: -1, Turns: []probe.Turn{{Role: "user", Parts: []probe.Part{{Kind: probe.Filler, N: 12}}}}}
	p = fit.fit(context.Background(), "", words, canary.MakeID(1, 0, 0), prefix{})
	if n := len(strings.Fields(render(p))) - 1; n != 12 {
		t.Errorf("%d words, want 12", n)
	}
	short := fillerSend(20) // what is written out is longer than that
	p = fit.fit(context.Background(), "", short, canary.MakeID(1, 0, 0), prefix{})
	if p.tokens <= 20 || !strings.Contains(render(p), "Say the end code.") {
		t.Errorf("%d tokens: %q", p.tokens, render(p))
	}
}

func TestPromptsStayOutOfMemory(t *testing.T) {
	coder := canary.New(testKey())
	fit := newFitter(&fakeTarget{}, coder, "fake")
	p := fit.fit(context.Background(), "", fillerSend(1_000_000), canary.MakeID(1, 0, 0), prefix{})
	held := 0
	for _, m := range p.messages {
		for _, s := range m.Text.(*text).segments {
			held += len(s.literal)
		}
	}
	if p.bytes < 2_000_000 || held > 1000 {
		t.Errorf("a prompt of %d bytes holds %d in memory", p.bytes, held)
	}
	var n int64
	for _, m := range p.messages {
		c, err := io.Copy(io.Discard, m.Text.Open())
		if err != nil {
			t.Fatal(err)
		}
		n += c
	}
	if n != p.bytes {
		t.Errorf("promises %d bytes, yields %d", p.bytes, n)
	}
}

func abs(n int) int { return max(n, -n) }

// The client is told how long a prompt is within JSON before it is made.
func TestTextKnowsItsJSONSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		turns := []probe.Turn{{Role: "user", Parts: []probe.Part{
			{Kind: probe.Literal, Text: rapid.String().Draw(t, "literal")}, {Kind: probe.Filler, N: 1}, {Kind: probe.Filler, N: 2},
			{Kind: probe.Token}, {Kind: probe.Literal, Text: "\n\"\t\\"}, {Kind: probe.Nonce, N: 2},
		}}}
		coder := canary.New(testKey())
		m := newTemplate(coder, canary.MakeID(1, 0, 1), probe.Send{Turns: turns}, prefix{}).build(rapid.IntRange(0, 200).Draw(t, "words"), " a")
		b, err := io.ReadAll(m[0].Text.Open())
		if err != nil {
			t.Fatal(err)
		}
		if got, want := m[0].Text.(wire.Sized).JSONSize(), wire.JSONSize(string(b)); got != want {
			t.Fatalf("%d, want %d for %q", got, want, b)
		}
	})
}
