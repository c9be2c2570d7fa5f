package canary

import (
	"fmt"
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
				fmt.Fprintf(&b, "&#%d;", r)
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
