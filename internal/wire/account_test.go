package wire

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// counted is a served exchange of which the target counted some tokens.
func counted(sent, prompt, cached int) Exchange {
	return Exchange{SentTokens: sent, Asked: -1, Answer: &Answer{Status: 200, Usage: &Usage{Prompt: prompt, Cached: cached}}}
}

func TestUsedAddsCachedTokensBackOnlyWhereTheyAreMissing(t *testing.T) {
	for _, c := range []struct{ sent, prompt, cached, want int }{
		{1000, 1000, 0, 1000},
		{1000, 1000, 900, 1000}, // cached tokens are among the prompt's
		{1000, 100, 900, 1000},  // cached tokens are apart
		{1000, 500, 0, 500},
		{1000, 1, 3, 1}, // the placeholder's few tokens are no cache
		{1000, 950, 900, 950},
	} {
		e := counted(c.sent, c.prompt, c.cached)
		if got, ok := e.Used(); !ok || got != c.want {
			t.Errorf("%+v: used %d %v", c, got, ok)
		}
	}
	for _, e := range []Exchange{{}, {Answer: &Answer{}}, counted(100, 0, 50)} {
		if used, ok := e.Used(); ok {
			t.Errorf("%d tokens used where nothing was reported", used)
		}
	}
}

func TestCollapsed(t *testing.T) {
	for _, c := range []struct {
		sent, prompt int
		want         bool
	}{
		{10641, 1, true}, {10641, 64, true}, {10641, 106, true}, {10641, 107, false},
		{512, 64, true}, {512, 65, false}, {511, 1, false}, {681281, 6812, true},
	} {
		if e := counted(c.sent, c.prompt, 0); e.Collapsed() != c.want {
			t.Errorf("%d sent, %d counted: collapsed %v", c.sent, c.prompt, !c.want)
		}
	}
	refused := counted(10641, 1, 0)
	refused.Answer.Refusal = &Refusal{Kind: RefusedPool}
	if refused.Collapsed() {
		t.Error("a refusal has collapsed")
	}
}

func TestEchoes(t *testing.T) {
	answer := func(channel Channel, text, finish string) *Answer {
		return &Answer{Status: 200, Finish: finish, Pieces: []Piece{{channel, text}}}
	}
	for _, c := range []struct {
		name         string
		answer       *Answer
		echoes, lost bool
	}{
		{"content", answer(Content, "It is abcde-fghij.", "stop"), true, false},
		{"upper case", answer(Content, "ABCDE-FGHIJ", "stop"), true, false},
		{"reasoning", answer(Reasoning, "so abcde-fghij", "length"), true, false},
		{"header only", answer(Header, "X-Echo: abcde-fghij", "stop"), false, true},
		{"something else", answer(Content, "noted", "stop"), false, true},
		{"nothing", &Answer{Status: 200, Finish: "length"}, false, true},
		{"no room left by reasoning", answer(Reasoning, "let me think", "length"), false, false},
		{"refused", &Answer{Status: 400, Refusal: &Refusal{}}, false, false},
		{"none", nil, false, false},
	} {
		e := Exchange{Nonces: [3]string{"", "abcde-fghij", ""}, Asked: 1, Answer: c.answer}
		if e.Echoes(1) != c.echoes || e.EchoLost() != c.lost {
			t.Errorf("%s: echoes %v, lost %v", c.name, e.Echoes(1), e.EchoLost())
		}
		if e.Echoes(0) || e.Echoes(-1) || e.Echoes(3) {
			t.Errorf("%s: echoes a nonce that is not there", c.name)
		}
		if e.Asked = -1; e.EchoLost() {
			t.Errorf("%s: lost an echo that nobody asked for", c.name)
		}
	}
}

// Whatever factor and constant a target counts wrongly by, the line through
// its short prompts says what it reports for long ones.
func TestBaselineFollowsAnyLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		factor := rapid.Float64Range(0.3, 3).Draw(t, "factor")
		constant := rapid.IntRange(0, 2000).Draw(t, "constant")
		report := func(sent int) int { return constant + int(factor*float64(sent)) }
		var all []Exchange
		for _, sent := range []int{10624, 192, 640, 2048, 10625} {
			all = append(all, counted(sent, report(sent), 0))
		}
		all = append(all, counted(10641, 1, 0)) // a collapse teaches nothing
		got, ok := NewBaseline(all).Expect(&Exchange{SentTokens: 100_000})
		if want := float64(report(100_000)); !ok || got < want*0.98-10 || got > want*1.02+10 {
			t.Fatalf("expects %.0f %v, want %.0f", got, ok, want)
		}
	})
}

func TestBaselineKnowsWhenCountsMeanNothing(t *testing.T) {
	constant := []Exchange{counted(192, 10, 0), counted(400, 10, 0), counted(640, 10, 0)}
	line := NewBaseline(constant)
	if used, ok := line.Expect(&Exchange{SentTokens: 10_000}); ok || !line.Known() {
		t.Errorf("expects %.0f of a target that always counts 10", used)
	}
	none := NewBaseline([]Exchange{{SentTokens: 100, Answer: &Answer{Status: 200}}, {}})
	if _, ok := none.Expect(&Exchange{SentTokens: 100}); ok || none.Known() {
		t.Error("knows a line without a count")
	}
	// The second shortest prompt was shortened already: the steeper line holds.
	shortened := NewBaseline([]Exchange{counted(192, 192, 0), counted(640, 640, 0), counted(2048, 1024, 0)})
	if used, ok := shortened.Expect(&Exchange{SentTokens: 4096}); !ok || used < 4000 {
		t.Errorf("expects %.0f of 4096 tokens", used)
	}
}

func TestLostNeedsCountsOnBothSides(t *testing.T) {
	exactly := func(sent, prompt int) Exchange {
		e := counted(sent, prompt, 0)
		e.SentExact = true
		return e
	}
	short := []Exchange{exactly(192, 195), exactly(640, 643), exactly(2048, 2051)}
	long := exactly(10641, 10633)
	if lost, ok := NewBaseline(short).Lost(&long); !ok || lost != 11 {
		t.Errorf("lost %d %v, want 11 of what was sent and the 3 that are always added", lost, ok)
	}
	whole := exactly(10641, 10644)
	if lost, ok := NewBaseline(short).Lost(&whole); !ok || lost != 0 {
		t.Errorf("lost %d %v of a prompt that was read whole", lost, ok)
	}
	estimated := counted(10641, 10633, 0)
	cached := exactly(10641, 10633)
	cached.Answer.Usage.Cached = 8
	for name, e := range map[string]Exchange{"estimated": estimated, "cached": cached} {
		if lost, ok := NewBaseline(short).Lost(&e); ok {
			t.Errorf("%s: %d tokens lost", name, lost)
		}
	}
	for name, line := range map[string][]Exchange{
		"one prompt":  short[:1],
		"unsteady":    {exactly(192, 195), exactly(640, 640), exactly(2048, 2051)},
		"estimated":   {counted(192, 195, 0), exactly(640, 643)},
		"no prompts":  nil,
		"all shorter": {exactly(192, 100), exactly(640, 500)},
	} {
		if lost, ok := NewBaseline(line).Lost(&long); ok {
			t.Errorf("%s: %d tokens lost", name, lost)
		}
	}
}

// estimated is a served exchange whose length could not be counted beforehand.
func estimated(o observation) Exchange {
	e := counted(int(o.bytes/4), o.tokens, 0)
	e.SentBytes, e.Messages = o.bytes, o.messages
	return e
}

// What prompts were estimated to have, each with what was known at its time,
// makes no line; their bytes and messages do.
func TestBaselineOfEstimatedPrompts(t *testing.T) {
	var all []Exchange
	for i, bytes := range []int64{737, 548, 723, 1039, 1570, 3383, 3500} {
		o := observation{bytes, int(bytes/160) + 1, int(bytes)/2 + 9*(int(bytes/160)+1)}
		e := estimated(o)
		if i > 0 {
			e.SentTokens = o.tokens - 5 // after the first it was known better
		}
		all = append(all, e)
	}
	long := estimated(observation{3600, 23, 2007 - 170})
	if expect, ok := NewBaseline(all).Expect(&long); !ok || math.Abs(expect-2007) > 20 {
		t.Errorf("expects %.0f %v, want 2007", expect, ok)
	}
	if lost, ok := NewBaseline(append(all, long)).Lost(&long); !ok || lost < 150 || lost > 190 {
		t.Errorf("lost %d %v, want 170", lost, ok)
	}
	var constant []Exchange
	for _, bytes := range []int64{82, 80, 300, 600, 1200, 2400, 80, 81, 82} {
		constant = append(constant, estimated(observation{bytes, 1, 10}))
	}
	if _, ok := NewBaseline(constant).Expect(&long); ok {
		t.Error("expects something of a target that always counts 10")
	}
	if lost, ok := NewBaseline(constant).Lost(&constant[5]); ok {
		t.Errorf("%d tokens lost where counts mean nothing", lost)
	}
}

// A prompt that was sent again has as many tokens as then, and its padding.
func TestLostOfAPromptSentAgain(t *testing.T) {
	seq := 3
	for _, c := range []struct {
		name         string
		exact        bool
		prompt, read int // and from a cache
		lost         int
		ok           bool
	}{
		{"whole, padding not seen before", false, 1008, 0, 0, false},
		{"less than without padding", false, 990, 0, 18, true},
		{"less, padding seen before", true, 1004, 0, 4, true},
		{"whole, from a cache that is counted in", true, 1008, 1000, 0, true},
		{"whole, from a cache that is counted apart", true, 8, 1000, 0, true},
	} {
		e := counted(1008, c.prompt, c.read)
		e.Again, e.Pad, e.SentExact = &seq, 8, c.exact
		if lost, ok := NewBaseline([]Exchange{counted(1000, 1000, 0)}).Lost(&e); lost != c.lost || ok != c.ok {
			t.Errorf("%s: lost %d %v", c.name, lost, ok)
		}
	}
}

// An answer that was all reasoning had no room for a nonce, by whatever name its
// end goes; one that ended of its own accord, or had nothing to reason, had.
func TestReasonedAway(t *testing.T) {
	reasoning := []Piece{{Reasoning, "hm"}}
	for _, c := range []struct {
		name   string
		pieces []Piece
		finish string
		usage  *Usage
		want   bool
	}{
		{"chat completions", reasoning, "length", nil, true},
		{"messages", reasoning, "max_tokens", &Usage{Prompt: 900, Completion: 48}, true},
		{"responses", reasoning, "max_output_tokens", nil, true},
		{"responses of engines", reasoning, "completed", &Usage{Prompt: 900, Completion: 48}, true},
		{"counted and not shown", nil, "length", &Usage{Prompt: 900, Completion: 48, Reasoning: 48}, true},
		{"stopped while reasoning", reasoning, "stop", &Usage{Prompt: 900, Completion: 9}, false},
		{"nothing at all", nil, "length", &Usage{Prompt: 900, Completion: 48}, false},
		{"text besides", append(reasoning, Piece{Content, "so"}), "length", nil, false},
		{"a tool call", append(reasoning, Piece{ToolCalls, "f"}), "length", nil, false},
		{"blank text", append(reasoning, Piece{Content, " \n"}), "length", nil, true},
	} {
		e := Exchange{Asked: 0, Nonces: [3]string{"aaaaa-bbbbb"}, MaxTokens: 48, Answer: &Answer{Status: 200, Pieces: c.pieces, Finish: c.finish, Usage: c.usage}}
		if e.ReasonedAway() != c.want || e.EchoLost() == c.want {
			t.Errorf("%s: reasoned away %v, echo lost %v", c.name, e.ReasonedAway(), e.EchoLost())
		}
		e.Answer.Refusal = &Refusal{Kind: RefusedContext}
		if e.ReasonedAway() {
			t.Errorf("%s: a refusal was reasoned away", c.name)
		}
	}
}
