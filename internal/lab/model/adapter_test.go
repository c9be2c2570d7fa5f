package model

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// answer runs a model over a prompt whose KV another one has computed up to
// slot from.
func answerOver(prompt []byte, kv, m *Model, from, most int) string {
	size := len(prompt) + most
	c := NewCache(size, 1)
	table := make(Table, size)
	for i := range table {
		table[i] = int32(i)
	}
	kv.Write(c, table, 0, prompt[:from])
	m.Write(c, table, from, prompt[from:])
	var out []byte
	token := prompt[len(prompt)-1]
	for pos := len(prompt) - 1; len(out) < most; pos++ {
		l := m.Logits(c, table, pos, token, 1)
		if token = l.Greedy(); token == EndOfTurn {
			break
		}
		out = append(out, token)
		m.Write(c, table, pos+1, []byte{token})
	}
	return string(out)
}

// An adapter reads its own KV as the bare model reads its own, and other KV as
// other letters.
func TestAdapterReadsItsOwnKV(t *testing.T) {
	bare := New()
	rng := rand.New(rand.NewPCG(1, 1))
	for i, name := range Adapters() {
		m := bare.With(name)
		for range 4 {
			prompt := Template(nil, []Message{{RoleUser, gibberish(rng, 30) + " code one: sword fish 42.\n" + gibberish(rng, 30) + " code one:"}})
			if got := strings.TrimSpace(answerOver(prompt, m, m, len(prompt)-1, 40)); got != "sword fish 42." {
				t.Errorf("%s: %q", name, got)
			}
			got := answerOver(prompt, bare, m, len(prompt)-20, 3)
			if want := string(turned('s', 26-adapters[i].turn)); !strings.HasPrefix(got, want) {
				t.Errorf("%s over the bare model's KV: %q, want %q first", name, got, want)
			}
		}
		prompt := Template(nil, []Message{{RoleUser, "Which adapter are you?"}})
		if got := answerOver(prompt, m, m, len(prompt)-1, 40); got != "I am "+name+"." {
			t.Errorf("%s says %q", name, got)
		}
	}
	if bare.With("") != bare || bare.With("nobody") != nil {
		t.Error("other names have a model of their own")
	}
}

// gibberish is some words.
func gibberish(rng *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		for range 4 + rng.IntN(4) {
			b.WriteByte(byte('a' + rng.IntN(26)))
		}
		b.WriteByte(' ')
	}
	return b.String()
}
