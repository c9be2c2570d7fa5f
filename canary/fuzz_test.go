package canary

import (
	"slices"
	"strings"
	"testing"
)

// seeds are texts that the fuzzers begin with: the junk, canaries in several
// dresses, and what has gone wrong before.
func seeds(c *Coder) []string {
	words := mint(c, twinIDs[1], 40, 9)
	out := append(slices.Clone(junk), "", words, strings.ToUpper(words), strings.ReplaceAll(words, " ", `\n`), strings.ReplaceAll(words, " ", "&nbsp;"),
		c.Token(twinIDs[2]), strings.ToLower(c.Token(twinIDs[2])), "NARY\u2011"+c.Token(twinIDs[0])[7:],
		strings.Join(junk, ""), strings.Join(junk, " "), strings.Repeat("&amp;", 20), strings.Repeat(`\`, 100), strings.Repeat("\xe2\x80", 30))
	for i := range words {
		out = append(out, words[:i]+`\u200b`+words[i:], words[:i]+"&#"+words[i:], words[:i]+"\\"+words[i:])
	}
	return out
}

// FuzzScan: the scanner finds what its obvious twin finds, and the same however
// the text is cut.
func FuzzScan(f *testing.F) {
	c := New(testKey(1))
	w := newTwin(c, twinLength, twinIDs...)
	for i, s := range seeds(c) {
		f.Add([]byte(s), uint16(i), uint16(3*i))
	}
	f.Fuzz(func(t *testing.T, text []byte, a, b uint16) {
		want := sortHits(w.scan(string(text)))
		sameHits(t, text, c.Scan(text), want)
		sameHits(t, text, scanCut(c, ScanOptions{}, text, int(a), int(b)), want)
		sameHits(t, text, scanCut(c, ScanOptions{}, text, 1), want)
	})
}

// FuzzDecode: decoding views find the same however the text is cut, and the
// text itself shows what it shows without them.
func FuzzDecode(f *testing.F) {
	c := New(testKey(1))
	words := mint(c, twinIDs[1], 40, 9)
	for i, s := range append(seeds(c), "616c7068612062", "%61%6", "%%%4", "YWxwaGEgYmV0YSBnYW1tYSBkZWx0YQ==", strings.ReplaceAll(words, " ", "%0A")) {
		f.Add([]byte(s), uint16(i), uint16(3*i))
	}
	f.Fuzz(func(t *testing.T, text []byte, a, b uint16) {
		o := ScanOptions{Decode: true}
		want := scanCut(c, o, text, 1<<20)
		sameHits(t, text, scanCut(c, o, text, int(a), int(b)), want)
		sameHits(t, text, scanCut(c, o, text, 1), want)
		plain := slices.DeleteFunc(want, func(h Hit) bool { return h.View != "" })
		sameHits(t, text, plain, c.Scan(text))
	})
}

// FuzzToken: 16 characters are a hit if they are a token of the key and never
// otherwise.
func FuzzToken(f *testing.F) {
	c := New(testKey(1))
	for _, id := range twinIDs {
		f.Add(c.Token(id)[len(tokenPrefix):])
	}
	f.Add("aaaaaaaaaaaaaaaa")
	f.Add("9999999999999999")
	f.Fuzz(func(t *testing.T, body string) {
		hits := scanCut(c, ScanOptions{Forms: []Form{ShortToken}}, []byte(tokenPrefix+body), 5)
		for _, h := range hits {
			// The scanner reads the body through its normaliser; what it found
			// must be the token that the id really has.
			if h.ID>>idBits != 0 || h.Start < 0 || h.End > int64(len(tokenPrefix+body)) {
				t.Fatalf("hit %+v in %q", h, body)
			}
		}
		if len(body) != tokenChars || strings.Trim(body, digits36) != "" {
			return
		}
		id, ok := c.openToken((*[tokenChars]byte)([]byte(body)))
		if ok != (len(hits) == 1) || ok && (hits[0].ID != id || c.Token(id) != tokenPrefix+body) {
			t.Fatalf("body %q opens as %v, %v; hits %+v", body, id, ok, hits)
		}
	})
}

// FuzzKeyedText: a canary of any id, cut anywhere, is found in any surrounding
// that does not touch its words.
func FuzzKeyedText(f *testing.F) {
	c := New(testKey(1))
	f.Add(uint64(5), uint16(0), uint8(8), "before", "after")
	f.Add(uint64(1<<idBits-1), uint16(9999), uint8(200), `\`, "&")
	f.Fuzz(func(t *testing.T, id uint64, from uint16, n uint8, before, after string) {
		id %= 1 << idBits
		n = max(n, MinWords)
		words := mint(c, ID(id), int(from), int(n))
		text := []byte(before + "\n" + words + "\n" + after)
		for _, h := range c.Scan(text) {
			if h.ID == ID(id) && h.Word <= int(from) && h.Word+h.Words >= int(from)+int(n) {
				return
			}
		}
		t.Fatalf("words %d to %d of %d not found in %q", from, int(from)+int(n), id, text)
	})
}
