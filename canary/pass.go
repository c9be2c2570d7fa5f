package canary

// pass looks for canary words in one text, which it is given in blocks.
type pass struct {
	lx  *lexicon
	run run

	// The word under way. Key packs its letters, and rest those after the
	// first, for a word whose first letter belongs to an escape before it.
	letters   int
	key, rest uint64
	escaped   bool
	from      place
	fromRest  place
	to        place
	pending   bool // an escape came just before

	found [MinWords]seen // for stretch

	source
}

// block reads b, which begins at base, from i on and returns up to where it is done
// with. The rest is to be given again with what follows it.
func (p *pass) block(b []byte, i int, last bool) int {
	i, ok := p.careful(b, i, i, last)
	if ok {
		i = p.skim(b, i, last)
	}
	if last {
		p.endWord()
		p.run.stop()
		p.pending = false
	}
	return i
}

// careful reads b from i piece by piece, through stop and on to the first
// place between words. It returns where it stopped, and false if that is at a
// piece that is not complete.
func (p *pass) careful(b []byte, i, stop int, last bool) (int, bool) {
	for i < len(b) && (i < stop || p.letters > 0 || p.pending) {
		if p.letters == 0 && !p.pending {
			if j := p.quick(b, i); j > i {
				i = j
				continue
			}
		}
		kind, c, n := lex(b[i:], last)
		switch kind {
		case more:
			return i, false
		case letter:
			p.letter(c, i, i+n-1)
		case nothing:
		default:
			p.endWord()
			p.pending = kind == escape
		}
		i += n
	}
	return i, true
}

// quick takes the plain separators at i and the plain word behind them, if
// that is what is there, and returns where it ends.
func (p *pass) quick(b []byte, i int) int {
	for i+lookAhead < len(b) && kinds[b[i]]&(isLetter|isOdd) == 0 {
		i++
	}
	if i+lookAhead >= len(b) || kinds[b[i]]&isLetter == 0 {
		return i
	}
	e := letterEnd(b, i)
	if e+lookAhead >= len(b) || kinds[b[e]]&isOdd != 0 && goesOn(b[e:]) {
		return i
	}
	if w := p.find(b, i, e-i); w >= 0 {
		p.run.push(uint64(w), p.startOf(i), p.endOf(e-1))
	} else {
		p.run.stop()
	}
	return e
}

func (p *pass) letter(c byte, i, j int) {
	switch {
	case p.letters == 0:
		p.key, p.rest = uint64(c), 0
		p.from = p.startOf(i)
		p.escaped, p.pending = p.pending, false
	case p.letters <= maxLetters:
		if p.letters == 1 {
			p.fromRest = p.startOf(i)
		}
		if p.letters < maxLetters {
			p.key |= uint64(c) << (8 * p.letters)
		}
		p.rest |= uint64(c) << (8 * (p.letters - 1))
	}
	p.letters = min(p.letters+1, maxLetters+2)
	p.to = p.endOf(j)
}

// endWord takes the word under way, if there is one.
func (p *pass) endWord() {
	if p.letters == 0 {
		return
	}
	n := p.letters
	p.letters = 0
	if minLetters <= n && n <= maxLetters {
		if w := p.lx.find(p.key); w >= 0 {
			p.run.push(uint64(w), p.from, p.to)
			return
		}
	}
	if p.escaped && minLetters < n && n <= maxLetters+1 && isEscapeLetter(byte(p.key)) {
		if w := p.lx.find(p.rest); w >= 0 {
			p.run.push(uint64(w), p.fromRest, p.to)
			return
		}
	}
	p.run.stop()
}

func isEscapeLetter(c byte) bool {
	switch c {
	case 'b', 'f', 'n', 'r', 't', 'v':
		return true
	}
	return false
}
