package oracle

import (
	"context"
	"fmt"
	"io"
	"math/bits"
	"slices"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// fragmentLetters is how many letters in a row of another's canary are a
// fragment: four or five words. Each letter of a canary holds more than two
// bits, so those of one are not met in another by chance, but an accusation
// rests on no fewer than [canary.MinWords] words.
const fragmentLetters = 22

// Bounds of what is looked at, bytes: answers that are longer than any was asked
// for would fill the memory. Runs of words that are a proof are found in all of them.
const (
	fragmentsOfOne = 64 << 10
	fragmentsOfAll = 4 << 20
)

// judgeFragments looks for what is too little for [judgeLeak], or put too oddly:
// fewer words of a canary than prove whose they are, words run together or cut
// into letters, or from the end to the beginning. It goes by letters alone, and
// only by prompts of this run. It finds nothing, for one fragment is no proof,
// but where there is one an answer is not clean.
func judgeFragments(ctx context.Context, c Case) Judgement {
	var j Judgement
	spots := newFragments(c)
	if len(spots.at) == 0 {
		return j
	}
	all := c.run()
	buf := make([]byte, 1<<14)
	for i := range all {
		from := &all[i]
		if from.SentBytes <= 0 {
			continue
		}
		words := c.Coder.Words(canary.ID(from.ID), 0, int(min(from.SentBytes, canary.MaxWords)))
		e := spots.in(ctx, canary.ID(from.ID), io.LimitReader(words, from.SentBytes), buf)
		if ctx.Err() != nil {
			j.Unsure = (&reader{ctx: ctx}).stopped()
			return j
		}
		if e != nil && !sentAfter(from, e) {
			j.Unsure = fmt.Sprintf("the answer to exchange %d of %s has %d letters in a row in common with the canary of exchange %d of %s: too few words for a proof",
				e.Seq, e.Tenant, fragmentLetters, from.Seq, from.Tenant)
			return j
		}
	}
	return j
}

// fragments are all windows of fragmentLetters letters in answers.
type fragments struct {
	at   map[uint64][]spot
	may  []uint64 // a bit for hashes that may be in at: most of what is asked is not
	sent []map[canary.ID]bool
}

// spot is a window of an answer.
type spot struct {
	answer  *wire.Exchange
	sent    int // index into sent
	letters []byte
}

func newFragments(c Case) fragments {
	f := fragments{at: map[uint64][]spot{}, may: make([]uint64, 1<<14)}
	known := promptsOf(c.run())
	all := fragmentsOfAll
	for i := range c.Exchanges {
		e := &c.Exchanges[i]
		if e.Answer == nil {
			continue
		}
		f.sent = append(f.sent, known.sent(e))
		room := min(fragmentsOfOne, all)
		take := func(text string) {
			n := min(len(text), room)
			room, all = room-n, all-n
			letters := lettersOf(text[:n])
			f.add(e, letters)
			back := slices.Clone(letters)
			slices.Reverse(back)
			f.add(e, back)
		}
		for _, p := range e.Answer.Pieces {
			take(p.Text)
		}
		for _, s := range e.Answer.Joined {
			take(s.Text)
		}
	}
	return f
}

// add notes all windows of a text of letters.
func (f *fragments) add(e *wire.Exchange, letters []byte) {
	var r roll
	for i, c := range letters {
		h, full := r.push(c)
		if !full {
			continue
		}
		f.may[h>>44>>6] |= 1 << (h >> 44 & 63)
		f.at[h] = append(f.at[h], spot{e, len(f.sent) - 1, letters[i+1-fragmentLetters : i+1]})
	}
}

// in returns the answer that holds a fragment of a canary that it was not sent,
// nil if none does.
func (f *fragments) in(ctx context.Context, id canary.ID, text io.Reader, buf []byte) *wire.Exchange {
	var r roll
	for ctx.Err() == nil {
		n, err := text.Read(buf)
		for _, c := range lettersOf(string(buf[:n])) {
			h, full := r.push(c)
			if !full || f.may[h>>44>>6]>>(h>>44&63)&1 == 0 {
				continue
			}
			for _, s := range f.at[h] {
				if !f.sent[s.sent][id] && r.holds(s.letters) {
					return s.answer
				}
			}
		}
		if err != nil {
			break // its end: words are made and cannot fail
		}
	}
	return nil
}

// lettersOf is a text without all that is no letter of words, in lower case.
func lettersOf(text string) []byte {
	out := make([]byte, 0, len(text))
	for i := range len(text) {
		if c := text[i] | 0x20; c >= 'a' && c <= 'z' {
			out = append(out, c)
		}
	}
	return out
}

// roll is a rolling hash over the last fragmentLetters letters: each is turned
// by its age, and leaves after a full turn of them (buzhash).
type roll struct {
	last [fragmentLetters]byte
	n    int
	sum  uint64
}

func (r *roll) push(c byte) (hash uint64, full bool) {
	at := r.n % fragmentLetters
	r.sum = bits.RotateLeft64(r.sum, 1) ^ mixed(c)
	if r.n >= fragmentLetters {
		r.sum ^= bits.RotateLeft64(mixed(r.last[at]), fragmentLetters)
	}
	r.last[at] = c
	r.n++
	return r.sum * 0x9e3779b97f4a7c15, r.n >= fragmentLetters
}

// mixed spreads a letter over 64 bits (the finalizer of SplitMix64).
func mixed(c byte) uint64 {
	z := uint64(c) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// holds reports whether the last letters are these.
func (r *roll) holds(letters []byte) bool {
	for i, c := range letters {
		if r.last[(r.n+i)%fragmentLetters] != c {
			return false
		}
	}
	return true
}
