package canary

// finding is a hit with its ends as places.
type finding struct {
	id         ID
	form       Form
	word       int
	words      int
	start, end place
}

// run follows list words in a row and reports the canaries among them. Words
// belong to one canary as long as each follows from the six before it.
type run struct {
	chain *chain
	emit  func(finding)

	count  int // list words in a row, counted up to MinWords
	state  state
	starts [MinWords]place // where the last words begin, by pos
	pos    int
	last   int64 // where the last word ends
	good   int   // words in a row that followed from the six before, counted up to 2

	// Of two words in a row only the second is checked, and the first only if
	// the second follows: where one does not, no canary holds both.
	skipped bool
	before  state // the state before the skipped word

	known bool // the words under way are known to be of canary id
	id    ID
	word  int // offset of the first of them in the canary
	words int
	start place
	end   place
}

// push takes the next list word.
func (r *run) push(w uint64, start, end place) {
	r.pos = (r.pos + 1) % MinWords
	r.starts[r.pos], r.last = start, end.off
	now := r.state
	r.state = now.push(w)
	if r.count < seedWords {
		r.count++
		return
	}
	r.count = min(r.count+1, MinWords)
	if r.good == 0 && !r.skipped {
		r.skipped, r.before = true, now
		return
	}
	if r.chain.next(now) != w {
		r.finish()
		return
	}
	r.good++
	if r.skipped && r.chain.next(r.before) == now.tail&wordMask {
		r.good++
	}
	r.skipped = false
	switch {
	case r.known:
		r.words++
		r.end = end
	case r.good == MinWords-seedWords:
		r.identify(end)
	case r.good > MinWords-seedWords:
		// The words before may have followed by chance, or from before the
		// beginning: the canary may begin here.
		r.good = MinWords - seedWords
		if id, ok := r.chain.open(r.state); ok {
			r.begin(id, 0, seedWords, end)
		}
	}
}

// identify asks whose the last eight words are.
func (r *run) identify(end place) {
	id, at, ok := r.chain.locate(r.state)
	if !ok {
		return
	}
	// The state is six words; up to two more before them belong to the canary.
	before := min(at, MinWords-seedWords)
	r.begin(id, at-before, seedWords+before, end)
}

func (r *run) begin(id ID, word, words int, end place) {
	r.known, r.id, r.word, r.words = true, id, word, words
	r.start = r.starts[(r.pos+1+MinWords-words)%MinWords]
	r.end = end
}

// finish ends what is under way, and reports it if it is long enough.
func (r *run) finish() {
	if r.known && r.words >= MinWords {
		r.emit(finding{r.id, WordChain, r.word, r.words, r.start, r.end})
	}
	r.known, r.good, r.skipped = false, 0, false
}

// stop takes a word that is not in the list.
func (r *run) stop() {
	if r.count > 0 {
		r.finish()
		r.count = 0
	}
}
