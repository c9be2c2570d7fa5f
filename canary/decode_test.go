package canary

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// encode writes s in the code of a view, in one of the ways there are.
func encode(t *rapid.T, view, s string) string {
	way := rapid.IntRange(0, 3).Draw(t, "way")
	switch view {
	case "base64":
		e := []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding}[way]
		return wrap(t, rapid.SampledFrom([]string{"", "x", "ab", "abc", "//"}).Draw(t, "lead")+e.EncodeToString([]byte(s)))
	case "hex":
		return wrap(t, rapid.SampledFrom([]string{"", "0", "ab", "0x"}).Draw(t, "lead")+hexCase(way, hex.EncodeToString([]byte(s))))
	}
	switch way {
	case 0:
		return url.PathEscape(strings.ReplaceAll(s, " ", "\n"))
	case 1:
		return url.QueryEscape(strings.ReplaceAll(s, " ", "\u200b \u200b"))
	}
	var b strings.Builder
	for _, c := range []byte(s) {
		if c == ' ' || rapid.IntRange(0, way*2).Draw(t, "escaped") == 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func hexCase(way int, s string) string {
	if way%2 == 0 {
		return strings.ToUpper(s)
	}
	return s
}

func wrap(t *rapid.T, s string) string {
	width := rapid.SampledFrom([]int{1 << 30, 76, 60}).Draw(t, "width")
	var lines []string
	for len(s) > width {
		lines, s = append(lines, s[:width]), s[width:]
	}
	return strings.Join(append(lines, s), rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "break"))
}

// TestViews (C6): canaries in base64, hexadecimal and percent-encoding are
// found where they stand, however the stream is cut.
func TestViews(t *testing.T) {
	c := New(testKey(1))
	rapid.Check(t, func(t *rapid.T) {
		view := rapid.SampledFrom([]string{"base64", "hex", "percent"}).Draw(t, "view")
		id := rapid.SampledFrom(twinIDs).Draw(t, "id")
		from, n := rapid.IntRange(0, 200).Draw(t, "from"), rapid.IntRange(8, 60).Draw(t, "n")
		want := Hit{ID: id, Form: WordChain, Word: from, Words: n, View: view}
		s := mint(c, id, from, n)
		if rapid.Bool().Draw(t, "token") {
			want, s = Hit{ID: id, Form: ShortToken, View: view}, c.Token(id)
		}
		if view == "percent" && want.Form == ShortToken {
			s = "%0A" + strings.Replace(s, "-", "%2d", 1) // what the text itself shows is not reported again
		} else {
			s = encode(t, view, s)
		}
		before := strings.Join(rapid.SliceOfN(rapid.SampledFrom(junk), 0, 20).Draw(t, "before"), "") + " "
		text := []byte(before + s + " " + rapid.SampledFrom(junk).Draw(t, "after"))
		all := scanCut(c, ScanOptions{Decode: true}, text, 1<<20)
		n = 0
		for _, h := range all {
			at := h
			at.Start, at.End = 0, 0
			if at != want {
				continue
			}
			n++
			if h.Start < int64(len(before)) || h.End > int64(len(before)+len(s)) || h.End-h.Start < int64(len(s))*9/10-40 {
				t.Fatalf("found at %d to %d, stands at %d to %d: %q", h.Start, h.End, len(before), len(before)+len(s), text)
			}
		}
		if n != 1 {
			t.Fatalf("found %d times: %q: %+v, want %+v", n, text, all, want)
		}
		sizes := rapid.SliceOfN(rapid.IntRange(1, 100), 1, 5).Draw(t, "sizes")
		sameHits(t, text, scanCut(c, ScanOptions{Decode: true}, text, sizes...), all)
		for _, h := range c.Scan(text) {
			if h.View != "" {
				t.Fatalf("decoded without being asked: %+v", h)
			}
		}
	})
}

// TestViewRange: the range of a hit in a view is that of the characters that
// encode it.
func TestViewRange(t *testing.T) {
	c := New(testKey(1))
	words := mint(c, 5, 0, 9)
	for _, tt := range []struct {
		text       string
		start, end int
	}{
		{"see " + hex.EncodeToString([]byte("1 "+words+" 2")), 4 + 4, 4 + 4 + 2*len(words)},
		{"see " + base64.StdEncoding.EncodeToString([]byte("1. "+words+" 2")), 4 + 4, 4 + 4 + (4*len(words)+2)/3},
		{"see " + strings.ReplaceAll(words, " ", "%0a"), 4, 4 + len(words) + 2*8},
	} {
		hits := scanCut(c, ScanOptions{Decode: true}, []byte(tt.text), 11)
		if len(hits) != 1 || hits[0].Start != int64(tt.start) || hits[0].End != int64(tt.end) {
			t.Errorf("%q: %+v, want %d to %d", tt.text, hits, tt.start, tt.end)
		}
	}
}

// TestPercentShownOnce: what stands in the text plainly is not reported as
// percent-encoded too.
func TestPercentShownOnce(t *testing.T) {
	c := New(testKey(1))
	text := []byte("https://example.com/?q=" + strings.ReplaceAll(mint(c, 5, 0, 12), " ", "%20") + "&r=" + c.Token(6) + "%20")
	hits := scanCut(c, ScanOptions{Decode: true}, text, 7)
	if len(hits) != 2 || hits[0].View != "" || hits[1].View != "" {
		t.Errorf("%+v", hits)
	}
}
