package canary

import "bytes"

const (
	// markupBack is how much before its first mark a stretch of marked-up text is
	// looked at: room for the words that the mark cuts off.
	markupBack = 128
	// markupQuiet is how many bytes without a mark end a stretch.
	markupQuiet = 1024
	// longestTag and longestControl bound what is taken for a mark, bytes.
	longestTag     = 512
	longestControl = 64
)

// markup leaves out of a text what is not shown of it: tags (HTML, XML), control
// sequences of terminals (ECMA-48: colours), and the NULs that every other byte
// of plain text in UTF-16 is. A tag separates words, the others do not.
type markup struct {
	out    *decoded
	back   []byte // what stood before the first mark, at most markupBack bytes
	active bool
	quiet  int
	held   []byte // what may be the beginning of a mark
}

func (v *markup) write(p []byte, off int64) {
	for i := 0; i < len(p); {
		if !v.active && len(v.held) == 0 {
			n := bytes.IndexAny(p[i:], "<\x1b\x00")
			if n < 0 {
				n = len(p) - i
			}
			v.remember(p[i : i+n])
			if i += n; i == len(p) {
				break
			}
		}
		v.next(p[i], off+int64(i))
		i++
	}
	if v.active {
		v.out.scan(false)
	}
}

func (v *markup) remember(p []byte) {
	p = p[max(0, len(p)-markupBack):]
	if over := len(v.back) + len(p) - markupBack; over > 0 {
		v.back = v.back[:copy(v.back, v.back[over:])]
	}
	v.back = append(v.back, p...)
}

// next takes a byte in a stretch, or at its first mark.
func (v *markup) next(c byte, at int64) {
	if len(v.held) > 0 {
		v.held = append(v.held, c)
		switch markOf(v.held) {
		case mark:
			v.drop(at)
		case noMark:
			held := v.held[:len(v.held)-1]
			for k, h := range held {
				v.plain(h, at-int64(len(held)-k))
			}
			v.held = v.held[:0]
			v.next(c, at)
		}
		return
	}
	switch c {
	case '<', 0x1b:
		v.held = append(v.held, c)
	case 0:
		v.held = append(v.held, c)
		v.drop(at)
	default:
		v.plain(c, at)
	}
}

type markState uint8

const (
	openMark markState = iota // may become one
	mark
	noMark
)

// markOf says what the bytes are, the last of which has just come.
func markOf(b []byte) markState {
	c := b[len(b)-1]
	if b[0] == '<' {
		switch {
		case c == '>' && len(b) > 2:
			return mark
		case c == '<', len(b) > longestTag:
			return noMark
		case len(b) == 2 && kinds[c]&isLetter == 0 && c != '/' && c != '!':
			return noMark
		}
		return openMark
	}
	switch {
	case len(b) == 2 && c != '[':
		return noMark
	case len(b) > longestControl, c < 0x20, c > 0x7e:
		return noMark
	case len(b) > 2 && c >= 0x40:
		return mark
	}
	return openMark
}

func (v *markup) plain(c byte, at int64) {
	if !v.active {
		v.remember([]byte{c})
		return
	}
	v.add(c, at, at+1)
	if v.quiet++; v.quiet > markupQuiet {
		v.end()
	}
}

// drop takes the mark whose last byte stands at the given offset.
func (v *markup) drop(at int64) {
	if !v.active {
		v.active = true
		first := at + 1 - int64(len(v.held))
		for k, c := range v.back {
			v.add(c, first+int64(k-len(v.back)), first+int64(k-len(v.back))+1)
		}
		v.back = v.back[:0]
	}
	v.quiet = 0
	v.out.sig++
	if v.held[0] == '<' {
		v.add(' ', at+1-int64(len(v.held)), at+1)
	}
	v.held = v.held[:0]
}

// add hands a byte on with the count of marks before it.
func (v *markup) add(c byte, from, to int64) {
	v.out.sigs = append(v.out.sigs, v.out.sig<<1)
	v.out.add(c, from, to)
}

func (v *markup) end() {
	if v.active {
		v.out.scan(true)
	}
	v.active, v.back, v.held, v.quiet = false, v.back[:0], v.held[:0], 0
}
