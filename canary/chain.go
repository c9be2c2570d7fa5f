package canary

// MaxWords is the longest canary in words, about 14 MB of text. It bounds how
// far a fragment is followed back to the beginning of its canary.
const MaxWords = 1 << 21

const (
	wordBits = 12
	wordMask = 1<<wordBits - 1
	tailBits = 5 * wordBits
	tailMask = 1<<tailBits - 1
	// seedWords is how many words the register holds.
	seedWords = 6
	// MinWords is how many words in a row a fragment needs to be found: six
	// that fill the register and two that confirm it.
	MinWords = 8
)

// state is six words in a row: the first of them, and the other five packed
// with the newest in the low bits.
type state struct{ first, tail uint64 }

// chain is the keyed word register. Each word is the one six before it, XOR
// the low bits of a keyed function of the five between, so the register runs
// both ways. The five last words of the seed are the sealed id; the first is
// taken from other bits of the same function value that a step computes
// anyway, so that walking back tests every state for a seed at no extra cost
// and only one in 4,096 needs the permutation.
type chain struct {
	f     prf
	id    perm
	marks waymarks
}

func newChain(k *Key) chain {
	return chain{f: newPRF(k, "chain"), id: perm{f: newPRF(k, "seed"), half: 1 << (tailBits / 2)}}
}

// seed is the first state of a canary.
func (c *chain) seed(id ID) state {
	l, r := c.id.seal(id)
	tail := l<<(tailBits/2) | r
	return state{c.f.sum(tail) >> wordBits & wordMask, tail}
}

// next is the word that follows a state.
func (c *chain) next(s state) uint64 { return (s.first ^ c.f.sum(s.tail)) & wordMask }

// push is the state after word w.
func (s state) push(w uint64) state {
	return state{s.tail >> (tailBits - wordBits), (s.tail<<wordBits | w) & tailMask}
}

// open returns the id of the canary that begins with s, if one does.
func (c *chain) open(s state) (ID, bool) {
	if c.f.sum(s.tail)>>wordBits&wordMask != s.first {
		return 0, false
	}
	return c.id.open(s.tail>>(tailBits/2), s.tail&(1<<(tailBits/2)-1))
}

// locate walks back from s to the beginning of its canary. It returns the id
// and how many words lie between, or false if there is none within MaxWords.
// Where an earlier walk has passed, it ends early.
func (c *chain) locate(s state) (id ID, at int, ok bool) {
	if id, ok := c.open(s); ok {
		return id, 0, true
	}
	var passed []waymark
	for steps := 1; steps <= MaxWords-seedWords; steps++ {
		before := s.first<<(tailBits-wordBits) | s.tail>>wordBits
		g := c.f.sum(before)
		s = state{(s.tail ^ g) & wordMask, before}
		if g>>wordBits&wordMask == s.first {
			if id, ok := c.id.open(s.tail>>(tailBits/2), s.tail&(1<<(tailBits/2)-1)); ok {
				c.marks.put(passed, id, steps)
				return id, steps, true
			}
		}
		if g>>(2*wordBits)%markEvery == 0 {
			if id, at, ok := c.marks.get(s); ok {
				c.marks.put(passed, id, steps+at)
				return id, steps + at, true
			}
			passed = append(passed, waymark{state: s, at: steps})
		}
	}
	return 0, 0, false
}
