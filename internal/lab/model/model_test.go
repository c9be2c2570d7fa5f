package model

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// session is a sequence in a cache of its own, with pages in random order.
type session struct {
	m     *Model
	c     *Cache
	table Table
	text  []byte
}

func newSession(m *Model, rng *rand.Rand, pageSize, room int) *session {
	pages := (room + pageSize - 1) / pageSize
	s := &session{m: m, c: NewCache(pages, pageSize)}
	for _, p := range rng.Perm(pages) {
		s.table = append(s.table, int32(p))
	}
	return s
}

func (s *session) write(tokens []byte) {
	s.m.Write(s.c, s.table, len(s.text), tokens)
	s.text = append(s.text, tokens...)
}

func (s *session) logits(workers int) Logits {
	last := len(s.text) - 1
	return s.m.Logits(s.c, s.table, last, s.text[last], workers)
}

// answer decodes greedily, at most limit tokens.
func (s *session) answer(limit int) string {
	var out []byte
	for len(out) < limit {
		l := s.logits(1)
		next := l.Greedy()
		if next == EndOfTurn {
			break
		}
		out = append(out, next)
		s.write([]byte{next})
	}
	return string(out)
}

func ask(m *Model, seed uint64, messages ...Message) string {
	rng := rand.New(rand.NewPCG(seed, 1))
	prompt := Template(nil, messages)
	s := newSession(m, rng, 16, len(prompt)+200)
	s.write(prompt)
	return s.answer(200)
}

func TestAnswersFromKnowledge(t *testing.T) {
	m := New()
	tests := []struct{ question, want string }{
		{"Reply with 'noted' only.", "noted"},
		{"Internal ref for this session: CANARY-gyn2p8zlm0bbcae8. Reply with 'noted' only.", "noted"},
		{"Write a two-sentence haiku about packet #1.", documents[2].answer},
		{"Write a two-sentence haiku about packet #2.", documents[3].answer},
		{"Reply with OK.", "OK"},
		{"Are you there?", "Yes, I am."},
	}
	for _, test := range tests {
		if got := ask(m, 1, Message{RoleUser, test.question}); got != test.want {
			t.Errorf("%q: %q, want %q", test.question, got, test.want)
		}
	}
	for n := range 30 {
		question := fmt.Sprintf("Write a two-sentence haiku about packet #%d.", n)
		got, known := ask(m, 1, Message{RoleUser, question}), false
		for _, d := range documents {
			known = known || strings.Contains(d.question, "haiku") && got == d.answer
		}
		if !known {
			t.Errorf("%q: %q is not one of the haikus", question, got)
		}
	}
}

func TestAnswersFromPrompt(t *testing.T) {
	got := ask(New(), 1, Message{RoleUser, "Internal ref for this session: VALUE-8812\nAnd so on and so forth.\nInternal ref for this session:"})
	if got != "VALUE-8812\n" {
		t.Errorf("got %q", got)
	}
}

func TestPlaceholderSpeaksAsUser(t *testing.T) {
	s := newSession(New(), rand.New(rand.NewPCG(1, 1)), 16, 16)
	s.write([]byte{DocStart})
	l := s.logits(1)
	if got := l.Greedy(); got != User {
		t.Fatalf("first token %d, want %d", got, User)
	}
}
