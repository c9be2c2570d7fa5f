package canary

import (
	"bytes"
	"unicode/utf8"
)

// percentBack is how much before its first escape a stretch of percent-encoding
// is looked at: room for the word that the escape ends.
const percentBack = 64

// percents decodes percent-encoding: stretches without white space that hold
// an escape.
type percents struct {
	out    *decoded
	back   []byte // what the stretch had before its first escape, at most percentBack bytes
	active bool
	held   []byte // what may be the beginning of an escape
}

func (v *percents) write(p []byte, off int64) {
	for i := 0; i < len(p); {
		if !v.active && len(v.held) == 0 {
			n := bytes.IndexByte(p[i:], '%')
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
	v.out.scan(false)
}

// remember keeps what of p is the end of a stretch without white space.
func (v *percents) remember(p []byte) {
	k := len(p)
	for k > 0 && p[k-1] > ' ' && len(p)-k < percentBack {
		k--
	}
	if k > 0 {
		v.back = v.back[:0]
	}
	p = p[k:]
	if over := len(v.back) + len(p) - percentBack; over > 0 {
		v.back = v.back[:copy(v.back, v.back[over:])]
	}
	v.back = append(v.back, p...)
}

// next takes a byte at the beginning of an escape, or of a stretch that has one.
func (v *percents) next(c byte, at int64) {
	if len(v.held) > 0 && hexDigits[c] != noDigit {
		if v.held = append(v.held, c); len(v.held) == 3 {
			v.escape(at)
		}
		return
	}
	for k, h := range v.held { // it was none
		v.plain(h, at-int64(len(v.held)-k))
	}
	v.held = v.held[:0]
	switch {
	case c <= ' ':
		v.end()
	case c == '%':
		v.held = append(v.held, c)
	default:
		v.plain(c, at)
	}
}

func (v *percents) plain(c byte, at int64) {
	if v.active {
		v.add(c, at, at+1, 0)
	} else {
		v.remember([]byte{c})
	}
}

// escape takes the escape whose last digit stands at the given offset.
func (v *percents) escape(at int64) {
	if !v.active {
		v.active = true
		for k, c := range v.back {
			v.plain(c, at-2+int64(k-len(v.back)))
		}
		v.back = v.back[:0]
	}
	c := hexDigits[v.held[1]]<<4 | hexDigits[v.held[2]]
	hides := int64(0)
	if c >= utf8.RuneSelf || isWordByte(c) || kinds[v.held[1]]&isLetter != 0 || kinds[v.held[2]]&isLetter != 0 {
		hides = 1
	}
	v.add(c, at-2, at+1, hides)
	v.held = v.held[:0]
}

// add hands a byte on, and counts the escapes that the text itself hides.
func (v *percents) add(c byte, from, to, hides int64) {
	d := v.out
	d.sigs = append(d.sigs, d.sig<<1|hides)
	d.sig += hides
	d.add(c, from, to)
}

func (v *percents) end() {
	// An escape that breaks off is part of the stretch, but of no canary.
	if v.active {
		v.out.scan(true)
	}
	v.active, v.back, v.held = false, v.back[:0], v.held[:0]
}
