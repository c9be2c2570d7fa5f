package canary

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// twin is the scanner in the most obvious form: it knows every canary by
// heart, normalises the text with regular expressions, and compares words.
type twin struct {
	coder *Coder
	runs  map[string][]twinPlace // eight words, joined by spaces
	text  map[ID][]string
	list  map[string]bool
	token map[string]ID
}

type twinPlace struct {
	id ID
	at int
}

func newTwin(c *Coder, length int, ids ...ID) *twin {
	w := &twin{coder: c, runs: map[string][]twinPlace{}, text: map[ID][]string{}, list: map[string]bool{}, token: map[string]ID{}}
	for _, word := range strings.Fields(wordList) {
		w.list[word] = true
	}
	for _, id := range ids {
		words := strings.Fields(readAll(c.Words(id, 0, length)))
		w.text[id] = words
		for i := 0; i+MinWords <= len(words); i++ {
			s := strings.Join(words[i:i+MinWords], " ")
			w.runs[s] = append(w.runs[s], twinPlace{id, i})
		}
		w.token[strings.ToLower(c.Token(id)[len(tokenPrefix):])] = id
	}
	return w
}

type twinWord struct {
	text       string
	start, end int
}

// twinForms are the ways to write a character, other than the character.
var (
	twinEscape    = regexp.MustCompile(`^\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))`)
	twinPair      = regexp.MustCompile(`^\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})`)
	twinNumber    = regexp.MustCompile(`^&(?:amp;){0,3}#(?:([0-9]{1,15})|[xX]([0-9a-fA-F]{1,14}));`)
	twinInvisible = regexp.MustCompile(`^&(?:amp;){0,3}(?:shy|zwj|zwnj|lrm|rlm|ZeroWidthSpace|NoBreak);`)
	twinName      = regexp.MustCompile(`^&(?:amp;){0,3}(?:nbsp|lt|gt|quot|apos|ensp|emsp|thinsp|hairsp|ndash|mdash|hellip|bull|middot|` +
		`lsquo|rsquo|ldquo|rdquo|laquo|raquo|Tab|NewLine|comma|period|colon|lpar|rpar|num|ast|lowbar|grave);`)
	twinAmps = regexp.MustCompile(`^&(?:amp;){0,3}`)
)

// char is the character that s begins with and its length in bytes.
func (w *twin) char(s string) (rune, int) {
	if m := twinPair.FindStringSubmatch(s); m != nil {
		hi, _ := strconv.ParseInt(m[1], 16, 32)
		lo, _ := strconv.ParseInt(m[2], 16, 32)
		return rune(0x10000 + (hi-0xD800)<<10 + lo - 0xDC00), len(m[0])
	}
	if m := twinEscape.FindStringSubmatch(s); m != nil {
		n, _ := strconv.ParseInt(m[1]+m[2], 16, 32)
		return rune(n), len(m[0])
	}
	if m := twinNumber.FindStringSubmatch(s); m != nil {
		n, _ := strconv.ParseInt(m[1], 10, 64)
		base := int64(10)
		if m[2] != "" {
			n, _ = strconv.ParseInt(m[2], 16, 64)
			base = 16
		}
		if n/base <= unicode.MaxRune {
			return rune(min(n, unicode.MaxRune+1)), len(m[0])
		}
	}
	if m := twinInvisible.FindString(s); m != "" {
		return 0x200B, len(m)
	}
	if m := twinName.FindString(s); m != "" {
		return ' ', len(m)
	}
	if m := twinAmps.FindString(s); m != "" {
		return ' ', len(m)
	}
	return utf8.DecodeRuneInString(s)
}

// plain undresses a character: a letter or digit, 0 for nothing, or a space.
func plain(r rune) rune {
	const capitals, smalls = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
	switch {
	case r < 128 && (unicode.IsLetter(r) || unicode.IsDigit(r)):
		return unicode.ToLower(r)
	case isZeroWidth(r):
		return 0
	case r >= 0xFF21 && r < 0xFF21+26, r >= 0xFF41 && r < 0xFF41+26, r >= 0xFF10 && r < 0xFF10+10:
		return unicode.ToLower(r - 0xFEE0)
	case r >= 0x24B6 && r < 0x24B6+52, r >= 0x1D400 && r < 0x1D6A4:
		i := r - 0x24B6
		if r > 0x1D000 {
			i = r - 0x1D400
		}
		return unicode.ToLower(rune((capitals + smalls)[i%52]))
	case r >= 0x1D7CE && r < 0x1D7CE+50:
		return '0' + (r-0x1D7CE)%10
	}
	return ' '
}

// words splits s into the runs of letters it stands for.
func (w *twin) words(s string) (out []twinWord) {
	cur := twinWord{}
	escaped, pending, second := false, false, 0
	end := func() {
		if cur.text == "" {
			return
		}
		if escaped && !w.list[cur.text] && strings.ContainsRune("bfnrtv", rune(cur.text[0])) && w.list[cur.text[1:]] {
			cur.text, cur.start = cur.text[1:], second
		}
		out = append(out, cur)
		cur = twinWord{}
	}
	for i := 0; i < len(s); {
		r, n := w.char(s[i:])
		p := plain(r)
		switch {
		case p == 0:
		case unicode.IsLetter(p):
			switch len(cur.text) {
			case 0:
				cur.start, escaped = i, pending
			case 1:
				second = i
			}
			pending = false
			cur.text += string(p)
			cur.end = i + n
		default:
			end()
			pending = s[i] == '\\' && n == 1 && i+1 < len(s) && strings.IndexByte("bfnrtv", s[i+1]) >= 0
		}
		i += n
	}
	end()
	return out
}

// scan finds the word runs of s.
func (w *twin) scan(s string) (hits []Hit) {
	words := w.words(s)
	for i := 0; i+MinWords <= len(words); i++ {
		var key []string
		for _, x := range words[i : i+MinWords] {
			key = append(key, x.text)
		}
		for _, p := range w.runs[strings.Join(key, " ")] {
			text := w.text[p.id]
			if i > 0 && p.at > 0 && words[i-1].text == text[p.at-1] {
				continue // not the beginning of the run
			}
			n := 0
			for i+n < len(words) && p.at+n < len(text) && words[i+n].text == text[p.at+n] {
				n++
			}
			hits = append(hits, Hit{ID: p.id, Form: WordChain, Word: p.at, Words: n,
				Start: int64(words[i].start), End: int64(words[i+n-1].end)})
		}
	}
	return append(hits, w.tokens(s)...)
}

// tokens finds the short forms in s.
func (w *twin) tokens(s string) (hits []Hit) {
	for d, r := range s {
		if !strings.ContainsRune("-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", r) || r == utf8.RuneError {
			continue
		}
		start := w.prefix(s[:d])
		if start < 0 {
			continue
		}
		body := ""
		for i := d + utf8.RuneLen(r); i < len(s) && i-d <= tokenRoom; {
			c, n := w.char(s[i:])
			p := plain(c)
			if p == ' ' {
				break
			}
			if p != 0 {
				body += string(p)
			}
			i += n
			if len(body) < tokenChars {
				continue
			}
			if id, ok := w.token[body]; ok {
				hits = append(hits, Hit{ID: id, Form: ShortToken, Start: int64(start), End: int64(i)})
			}
			break
		}
	}
	return hits
}

// prefix is where the last letters of the word canary begin that s ends with; -1 if there are none.
func (w *twin) prefix(s string) int {
	s = strings.TrimSuffix(s, `\`)
	start := -1
	for _, want := range "yranac" {
		r, n := utf8.DecodeLastRuneInString(s)
		if n == 0 || plain(r) != want {
			break
		}
		s = s[:len(s)-n]
		start = len(s)
	}
	return start
}

func sortHits(hits []Hit) []Hit {
	slices.SortFunc(hits, func(a, b Hit) int {
		if a.Start != b.Start {
			return int(a.Start - b.Start)
		}
		return int(a.End - b.End)
	})
	return hits
}
