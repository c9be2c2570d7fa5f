package canary

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"
)

// dressed are texts in which every word is marked up in some way.
func dressed(way, s string) string {
	var b strings.Builder
	for i, w := range strings.Fields(s) {
		switch way {
		case "colours":
			fmt.Fprintf(&b, "\x1b[%d;1m%s\x1b[0m ", 31+i%7, w)
		case "tags":
			fmt.Fprintf(&b, "<span class=\"hl\">%s</span>", w)
		case "breaks":
			fmt.Fprintf(&b, "%s<br/>\n", w)
		}
	}
	units := utf16.Encode([]rune("says " + s + "."))
	switch way {
	case "utf-16le":
		for _, u := range units {
			b.Write(binary.LittleEndian.AppendUint16(nil, u))
		}
	case "utf-16be":
		for _, u := range units {
			b.Write(binary.BigEndian.AppendUint16(nil, u))
		}
	}
	return b.String()
}

// TestMarkup: a canary is found between tags, colours and NULs, at its place in
// the text, however the stream is cut.
func TestMarkup(t *testing.T) {
	c := New(testKey(1))
	rapid.Check(t, func(t *rapid.T) {
		way := rapid.SampledFrom([]string{"colours", "tags", "breaks", "utf-16le", "utf-16be"}).Draw(t, "way")
		from, n := rapid.IntRange(0, 200).Draw(t, "from"), rapid.IntRange(8, 60).Draw(t, "n")
		before := strings.Join(rapid.SliceOfN(rapid.SampledFrom(junk), 0, 20).Draw(t, "before"), "") + " . "
		s := dressed(way, mint(c, 5, from, n))
		text := []byte(before + s + " . " + rapid.SampledFrom(junk).Draw(t, "after"))
		all := scanCut(c, ScanOptions{Decode: true}, text, 1<<20)
		found := 0
		for _, h := range all {
			if h.ID == 5 && h.Word == from && h.Words == n && h.View == "markup" && h.Start >= int64(len(before)) && h.End <= int64(len(before)+len(s)) {
				found++
			}
		}
		if found != 1 {
			t.Fatalf("found %d times: %q: %+v", found, text, all)
		}
		sizes := rapid.SliceOfN(rapid.IntRange(1, 100), 1, 5).Draw(t, "sizes")
		sameHits(t, text, scanCut(c, ScanOptions{Decode: true}, text, sizes...), all)
	})
}

// TestMarkupShownOnce: what stands in the text plainly is not reported again,
// and what looks like a mark and is none hides nothing.
func TestMarkupShownOnce(t *testing.T) {
	c := New(testKey(1))
	words := mint(c, 5, 0, 12)
	for _, text := range []string{
		"<p>" + words + "</p>",
		"\x1b[1m " + words + " \x1b[0m",
		"1 < 2 and " + words,
		words + "<" + strings.Repeat("x", 3*longestTag),
		"<a <b <c " + words + " \x1b",
		"a\x00b " + words,
	} {
		hits := scanCut(c, ScanOptions{Decode: true}, []byte(text), 7)
		if len(hits) != 1 || hits[0].View != "" || hits[0].Words != 12 {
			t.Errorf("%q: %+v", text, hits)
		}
	}
}
