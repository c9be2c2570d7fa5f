package model

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// ngram is the model's shortcut: token ids in place of codes, the weighted longest common
// suffix in place of both layers, no cache.
type ngram struct{ known [][]byte }

func newNgram(docs []document) ngram {
	var g ngram
	for _, d := range docs {
		g.known = append(g.known, AppendTurn(AppendTurn([]byte{DocStart}, RoleUser, d.question), RoleAssistant, d.answer))
	}
	return g
}

// similarity weighs the tokens that end a and b alike.
func (ngram) similarity(a, b []byte) float64 {
	sum, weight := 0.0, 1.0
	for k := 1; k <= min(depth, len(a), len(b)); k++ {
		if a[len(a)-k] == b[len(b)-k] {
			sum += weight
		}
		weight *= 0.8
	}
	return sum
}

func (g ngram) next(text []byte) byte {
	masses := map[byte]float64{}
	total := math.Exp(32 * 0.6)
	see := func(doc []byte, offset float64) {
		for j := range doc {
			w := math.Exp(32 * (g.similarity(text, doc[:j]) - offset))
			masses[doc[j]] += w
			total += w
		}
	}
	see(text, 0)
	for _, doc := range g.known {
		see(doc, 0.1)
	}
	var l Logits
	for v, w := range masses {
		l[v] = float32(w / total)
	}
	l[EndOfTurn] += noEvidence
	if text[len(text)-1] == '\n' {
		l[EndOfTurn] += endOfLine
	}
	return l.Greedy()
}

func (g ngram) answer(prompt []byte, limit int) string {
	text := append([]byte(nil), prompt...)
	for len(text) < len(prompt)+limit {
		next := g.next(text)
		if next == EndOfTurn {
			break
		}
		text = append(text, next)
	}
	return string(text[len(prompt):])
}

func TestAnswersAsTheNgramTwin(t *testing.T) {
	m, g := New(), newNgram(documents)
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		var prompt []byte
		if rapid.Bool().Draw(t, "recall") {
			prompt = newRecall(rng, 300).prompt
		} else {
			d := documents[rng.IntN(len(documents))]
			prompt = Template(nil, []Message{{RoleUser, string(prose(rng, rng.IntN(200))) + d.question}})
		}
		s := newSession(m, rng, 16, len(prompt)+100)
		s.write(prompt)
		got, want := s.answer(90), g.answer(prompt, 90)
		if got != want {
			t.Fatalf("%q: %q, n-gram twin %q", prompt, got, want)
		}
	})
}

// TestAnswersShareNoPieces, with prose or with each other: else a prompt or another answer
// that holds a piece of an answer by chance would take the answer over.
func TestAnswersShareNoPieces(t *testing.T) {
	seen := map[string]string{}
	for _, d := range documents {
		answer := string(rune(Assistant)) + d.answer
		for i := 0; i+depth-1 <= len(answer); i++ {
			piece := answer[i : i+depth-1]
			if !foreignToProse(piece) {
				t.Errorf("%q of %q may occur in words of 4 to 8 letters", piece, d.answer)
			}
			if other, twice := seen[piece]; twice {
				t.Errorf("%q is in %q and in %q", piece, d.answer, other)
			}
			seen[piece] = d.answer
		}
	}
}

// foreignToProse says whether text of lower-case words of 4 to 8 letters and single
// spaces cannot hold the piece.
func foreignToProse(piece string) bool {
	for _, r := range piece {
		if r != ' ' && (r < 'a' || r > 'z') {
			return true
		}
	}
	parts := strings.Split(piece, " ")
	for _, word := range parts[1:max(1, len(parts)-1)] {
		if len(word) < 4 || len(word) > 8 {
			return true
		}
	}
	return false
}
