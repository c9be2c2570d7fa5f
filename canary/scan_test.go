package canary

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const twinLength = 300 // words of each canary that the twin knows

var (
	twinIDs   = []ID{MakeID(0, 0, 0), MakeID(1, 2, 3), MakeID(MaxRun, MaxTenant, MaxSeq), MakeID(77, 1, 40000)}
	listWords = strings.Fields(wordList)
)

// junk is what text is full of, whole and broken escapes among it.
var junk = []string{
	" ", "  ", "\n", "\t", ", ", ". ", "-", "_", "1", "42", "\"", "**", "`", "# ", "the", "I", "of", "don't", "Zürich", "é", "’", "“", "…",
	`\n`, `\\n`, `\t`, `\"`, `\`, `\\`, `\u`, `\u0`, `\u00`, `\u006`, `\u0061`, `\\u0061`, `\x61`, `\x6`, `\ud835`, `\ud835\udc00`, `\ud835\u`, `\u200b`, `\b`,
	"&", "&amp;", "&nbsp;", "&nbs", "&#", "&#9", "&#97;", "&#x61;", "&#x6", "&amp;#97;", "&zwj;", "&#8203;", "&amp;amp;amp;amp;", "&#x7fffffff;", "&#11141199;", "&;", "&table;",
	"\u200b", "\u00ad", "\u0301", "ａ", "Ｚ", "𝐀", "ⓐ", "世界", "\xff", "\xe2", "\xe2\x80", "\xf0\x9d", "<b>", "</p>", ":", ";", "#", "%20", "abcdefghijklmnop", "0061lpha", "xyzzy",
	"CANARY-", "canary-", "NARY-", "Y\u2011", "ＹＲ－", "CANARY\\-", "y-", "abcdefgh12345678",
}

// drawText makes text of canary runs in all kinds of dress, list words and junk.
func drawText(t *rapid.T, c *Coder) []byte {
	var b strings.Builder
	for range rapid.IntRange(1, 8).Draw(t, "pieces") {
		switch rapid.IntRange(0, 5).Draw(t, "piece") {
		case 0, 1:
			id := rapid.SampledFrom(twinIDs).Draw(t, "id")
			n := rapid.IntRange(1, 24).Draw(t, "n")
			from := rapid.IntRange(0, twinLength-n-1).Draw(t, "from")
			words := strings.Fields(readAll(c.Words(id, from, n)))
			b.WriteString(dressUp(t, words))
		case 2:
			words := rapid.SliceOfN(rapid.SampledFrom(listWords), 1, 12).Draw(t, "list")
			b.WriteString(dressUp(t, words))
		case 3:
			b.WriteString(dressToken(t, c.Token(rapid.SampledFrom(twinIDs).Draw(t, "id"))))
		case 4:
			for range rapid.IntRange(1, 30).Draw(t, "junk") {
				b.WriteString(rapid.SampledFrom(junk).Draw(t, "j"))
			}
		default:
			s := rapid.SampledFrom(junk).Draw(t, "j")
			b.WriteString(strings.Repeat(s, rapid.SampledFrom([]int{1, 50, 300}).Draw(t, "times")))
		}
		b.WriteString(rapid.SampledFrom([]string{"", " ", "\n", "; "}).Draw(t, "gap"))
	}
	return []byte(b.String())
}

// dressUp writes words down in a way that must not hide them, mostly.
func dressUp(t *rapid.T, words []string) string {
	seps := rapid.SliceOfN(rapid.SampledFrom(append([]string{" ", " ", " ", " ", `\n`, `\\n`, " &nbsp;", " **", "** ", "</p>"}, junk...)), 1, 3).Draw(t, "seps")
	how := rapid.IntRange(0, 8).Draw(t, "how")
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteString(seps[i%len(seps)])
		}
		for k, r := range w {
			dressed := rapid.IntRange(0, 7).Draw(t, "dressed") == 0
			switch {
			case how == 1:
				b.WriteString(strings.ToUpper(string(r)))
			case how == 2 && dressed:
				fmt.Fprintf(&b, `\u%04x`, r)
			case how == 3 && dressed:
				fmt.Fprintf(&b, rapid.SampledFrom([]string{"&#%d;", "&#x%x;", "&amp;#X%X;", "&#x000000%X;"}).Draw(t, "number"), r)
			case how == 4 && dressed:
				fmt.Fprintf(&b, "%c\u200b", r)
			case how == 5:
				b.WriteRune(r - 'a' + 0xFF41)
			case how == 6 && k == 0:
				b.WriteString(`\` + string(r))
			case how == 7 && dressed:
				b.WriteString(string(r) + rapid.SampledFrom(junk).Draw(t, "inside"))
			default:
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}

func dressToken(t *rapid.T, s string) string {
	s = s[rapid.IntRange(0, 6).Draw(t, "cut"):]
	switch rapid.IntRange(0, 5).Draw(t, "token dress") {
	case 1:
		s = strings.ToLower(s)
	case 2:
		s = strings.ToUpper(s)
	case 3:
		s = strings.Replace(s, "-", rapid.SampledFrom([]string{"\u2011", "\u2014", "\u2212", "－", `\-`}).Draw(t, "dash"), 1)
	case 4:
		at := rapid.IntRange(0, len(s)).Draw(t, "at")
		s = s[:at] + rapid.SampledFrom(junk).Draw(t, "inside") + s[at:]
	case 5:
		at := rapid.IntRange(0, len(s)-1).Draw(t, "at")
		s = s[:at] + "q" + s[at+1:]
	}
	return s
}

// TestTwin (C1, C5, C6): the scanner finds what its obvious twin finds, however
// the text is dressed and cut.
func TestTwin(t *testing.T) {
	c := New(testKey(1))
	w := newTwin(c, twinLength, twinIDs...)
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t, c)
		want := sortHits(w.scan(string(text)))
		sameHits(t, text, c.Scan(text), want)
		sizes := rapid.SliceOfN(rapid.SampledFrom([]int{1, 2, 3, 7, 40, 300, 1500, 70000}), 1, 5).Draw(t, "sizes")
		sameHits(t, text, scanCut(c, ScanOptions{}, text, sizes...), want)
	})
}

// TestAnyEightWords (C1): eight words from anywhere in the longest canary name
// it and their place.
func TestAnyEightWords(t *testing.T) {
	c := New(testKey(3))
	rapid.Check(t, func(t *rapid.T) {
		id := ID(rapid.Uint64Range(0, 1<<idBits-1).Draw(t, "id"))
		deepest := 20_000
		if long {
			deepest = MaxWords
		}
		from := rapid.IntRange(0, deepest-MinWords).Draw(t, "from")
		// What stands before is not in the list, so no word more is found by chance.
		text := []byte("zzzz: " + mint(c, id, from, MinWords) + ".")
		sameHits(t, text, c.Scan(text), []Hit{{ID: id, Form: WordChain, Word: from, Words: MinWords, Start: 6, End: int64(len(text)) - 1}})
	})
}

func TestEndOfLongestCanary(t *testing.T) {
	c := New(testKey(3))
	text := []byte(mint(c, 12345, MaxWords-MinWords, MinWords))
	sameHits(t, text, c.Scan(text), []Hit{{ID: 12345, Form: WordChain, Word: MaxWords - MinWords, Words: MinWords, End: int64(len(text))}})
}

func TestSevenWordsAreNotEnough(t *testing.T) {
	c := New(testKey(3))
	for from := range 200 {
		if hits := c.Scan([]byte(mint(c, 5, from, MinWords-1))); len(hits) > 0 {
			t.Fatalf("seven words from %d: %+v", from, hits)
		}
	}
}

// TestJoinedPages: pieces of several canaries, cut anywhere in a word and laid
// end to end as leaked pages are, are each reported by themselves.
func TestJoinedPages(t *testing.T) {
	c := New(testKey(3))
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		pages := rapid.IntRange(2, 6).Draw(t, "pages")
		for page := range pages {
			s := mint(c, ID(1000+page), 0, 400)
			at := rapid.IntRange(0, len(s)-256).Draw(t, "at")
			text.WriteString(s[at : at+256])
		}
		found := map[ID]int{}
		for _, h := range c.Scan([]byte(text.String())) {
			found[h.ID]++
			// A word may be made of the ends of two pages.
			got, want := strings.Fields(text.String()[h.Start:h.End]), strings.Fields(mint(c, h.ID, h.Word, h.Words))
			if !slices.Equal(got, want) {
				t.Fatalf("%+v holds %q, want %q", h, got, want)
			}
			if h.Words < 256/9-2 {
				t.Fatalf("%+v is short for a page of 256 bytes", h)
			}
		}
		for page := range pages {
			if found[ID(1000+page)] != 1 {
				t.Fatalf("page %d of %q was found %d times", page, text.String(), found[ID(1000+page)])
			}
		}
	})
}

// TestCanaryBeginsAfterListWords: a word before the beginning that happens to
// fit must not keep the canary from being found. One word in 4,096 fits.
func TestCanaryBeginsAfterListWords(t *testing.T) {
	c := New(testKey(3))
	s := c.chain.seed(42)
	fit := (s.tail ^ c.chain.f.sum(s.first<<(tailBits-wordBits)|s.tail>>wordBits)) & wordMask
	text := []byte(listWords[0] + " " + listWords[fit] + " " + mint(c, 42, 0, 12))
	start := int64(len(listWords[0]) + len(listWords[fit]) + 2)
	sameHits(t, text, c.Scan(text), []Hit{{ID: 42, Form: WordChain, Words: 12, Start: start, End: int64(len(text))}})
}

// TestDisguises (C6): each way of writing that must not hide a canary, alone.
func TestDisguises(t *testing.T) {
	c := New(testKey(4))
	id := MakeID(9, 1, 77)
	words := strings.Fields(mint(c, id, 30, 10))
	each := func(f func(string) string) []string {
		out := make([]string, len(words))
		for i, w := range words {
			out[i] = f(w)
		}
		return out
	}
	letters := func(f func(r rune) string) []string {
		return each(func(w string) string {
			var b strings.Builder
			for _, r := range w {
				b.WriteString(f(r))
			}
			return b.String()
		})
	}
	title := each(func(w string) string { return strings.ToUpper(w[:1]) + w[1:] })
	for name, text := range map[string]string{
		"upper case":         strings.ToUpper(strings.Join(words, " ")),
		"title case":         strings.Join(title, " "),
		"one a line":         strings.Join(words, "\r\n"),
		"comma":              strings.Join(words, ", "),
		"no space":           strings.Join(words, ","),
		"snake case":         strings.Join(words, "_"),
		"numbered":           strings.Join(words, "\n12. "),
		"far apart":          strings.Join(words, strings.Repeat(" ", 5000)),
		"markdown bold":      "**" + strings.Join(words, "** **") + "**",
		"markdown code":      "`" + strings.Join(words, "`, `") + "`",
		"markdown list":      "* " + strings.Join(words, "\n* "),
		"markdown table":     "| " + strings.Join(words, " | ") + " |",
		"json line breaks":   `"` + strings.Join(words, `\n`) + `"`,
		"json in json":       `"{\"a\":\"` + strings.Join(words, `\\n`) + `\"}"`,
		"json thrice":        strings.Join(words, `\\\\\\\"`),
		"json tabs":          strings.Join(words, `\t`),
		"json letters":       strings.Join(letters(func(r rune) string { return fmt.Sprintf(`\u%04X`, r) }), " "),
		"json some letters":  strings.Join(each(func(w string) string { return fmt.Sprintf(`%s\u%04x%s`, w[:2], w[2], w[3:]) }), " "),
		"json space":         strings.Join(words, `\u0020`),
		"json quote":         strings.Join(words, `\u2019 `),
		"json zero width":    strings.Join(words, `\u200b \u200b`),
		"hex escapes":        strings.Join(letters(func(r rune) string { return fmt.Sprintf(`\x%02x`, r) }), " "),
		"html space":         strings.Join(words, "&nbsp;"),
		"html number space":  strings.Join(words, "&#160;"),
		"html tag":           strings.Join(words, "&lt;1&gt;"),
		"html letters":       strings.Join(letters(func(r rune) string { return fmt.Sprintf("&#%d;", r) }), " "),
		"html hex letters":   strings.Join(letters(func(r rune) string { return fmt.Sprintf("&#x%X;", r) }), " "),
		"html twice":         strings.Join(words, "&amp;nbsp;"),
		"html joiner":        strings.Join(each(func(w string) string { return w[:1] + "&zwj;" + w[1:] }), " "),
		"zero width space":   strings.Join(letters(func(r rune) string { return string(r) + "\u200b" }), " "),
		"soft hyphen":        strings.Join(each(func(w string) string { return w[:3] + "\u00ad" + w[3:] }), " "),
		"byte order mark":    "\ufeff" + strings.Join(words, "\ufeff "),
		"combining accent":   strings.Join(each(func(w string) string { return w[:1] + "\u0301" + w[1:] }), " "),
		"full-width":         strings.Join(letters(func(r rune) string { return string(r - 'a' + 0xFF41) }), "\u3000"),
		"full-width capital": strings.Join(letters(func(r rune) string { return string(r - 'a' + 0xFF21) }), "\u3000"),
		"mathematical bold":  strings.Join(letters(func(r rune) string { return string(r - 'a' + 0x1D41A) }), " "),
		"circled":            strings.Join(letters(func(r rune) string { return string(r - 'a' + 0x24D0) }), " "),
		"surrogate pairs": strings.Join(letters(func(r rune) string {
			return fmt.Sprintf(`\ud835\udc%02x`, 0x1a+r-'a')
		}), " "),
		"dashes":        strings.Join(words, " — "),
		"quotes":        "“" + strings.Join(words, "” “") + "”",
		"chinese":       strings.Join(words, "，世界"),
		"invalid utf-8": strings.Join(words, "\xff\xe2\x80"),
		"control bytes": strings.Join(words, "\x00\x1b"),
	} {
		hits := c.Scan([]byte("the " + text + " the"))
		if len(hits) != 1 || hits[0].ID != id || hits[0].Word != 30 || hits[0].Words != len(words) {
			t.Errorf("%s: %.200q: %+v", name, text, hits)
		}
	}
}

func TestScannerClosed(t *testing.T) {
	c := New(testKey(1))
	n := 0
	s := c.NewScanner(ScanOptions{}, func(Hit) { n++ })
	s.Write([]byte(mint(c, 3, 0, 8)))
	if n != 0 {
		t.Error("a run that may go on was reported")
	}
	s.Close()
	s.Close()
	if n != 1 {
		t.Errorf("%d hits, want 1", n)
	}
	if _, err := s.Write([]byte("x")); err != ErrClosed {
		t.Errorf("write after close: %v", err)
	}
}

func TestForms(t *testing.T) {
	c := New(testKey(1))
	text := []byte(mint(c, 3, 0, 9) + "; " + c.Token(4))
	for _, tt := range []struct {
		forms []Form
		ids   []ID
	}{{nil, []ID{3, 4}}, {[]Form{WordChain}, []ID{3}}, {[]Form{ShortToken}, []ID{4}}, {[]Form{WordChain, ShortToken}, []ID{3, 4}}} {
		hits := scanCut(c, ScanOptions{Forms: tt.forms}, text, 10)
		ids := []ID{}
		for _, h := range hits {
			ids = append(ids, h.ID)
		}
		if fmt.Sprint(ids) != fmt.Sprint(tt.ids) {
			t.Errorf("%v: found %v, want %v", tt.forms, ids, tt.ids)
		}
	}
}

// TestScanConstantMemory (C5): a longer stream takes no more memory, even if
// all of it is one piece that does not end.
func TestScanConstantMemory(t *testing.T) {
	c := New(testKey(1))
	for _, bit := range []string{" ", "x", "\u200b", "-", `\`, "&amp;", "&", "y-", "alpha ", mint(c, 3, 0, 40) + " "} {
		s := c.NewScanner(ScanOptions{Decode: true}, func(Hit) {})
		p := []byte(strings.Repeat(bit, 8<<10/len(bit)))
		s.Write(p)
		s.Write(p[:1000])
		if allocs := testing.AllocsPerRun(5, func() { s.Write(p); s.Write(p[1:1000]) }); allocs > 0 {
			t.Errorf("%.20q: %v allocations", bit, allocs)
		}
		if n := cap(s.text.kept); n > 4*joinSize {
			t.Errorf("%.20q: keeps %d bytes", bit, n)
		}
	}
}

// TestReset: a scanner that is used again finds what a new one finds.
func TestReset(t *testing.T) {
	c := New(testKey(1))
	rapid.Check(t, func(t *rapid.T) {
		var got []Hit
		s := c.NewScanner(ScanOptions{Decode: true}, func(h Hit) { got = append(got, h) })
		for range rapid.IntRange(1, 4).Draw(t, "texts") {
			text := drawText(t, c)
			if rapid.Bool().Draw(t, "coded") {
				text = drawCoded(t, c)
			}
			for p := text; len(p) > 0; {
				n := min(len(p), rapid.SampledFrom([]int{1, 7, 300}).Draw(t, "size"))
				s.Write(p[:n])
				p = p[n:]
			}
			s.Reset()
			sameHits(t, text, sortHits(got), scanCut(c, ScanOptions{Decode: true}, text, 1<<20))
			got = nil
		}
	})
}
