package canary

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// watched scans p in pieces of the sizes given, in turn, and fails if a hit is
// reported that begins before what was waited for at any time before, or if a
// hit that was under way is not what is reported.
func watched(t failer, c *Coder, o ScanOptions, p []byte, sizes ...int) (last Pending) {
	t.Helper()
	const dashes = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
	all := p
	var under []Hit // hits that were under way, not yet reported
	s := c.NewScanner(o, func(h Hit) {
		for _, u := range under {
			if u.ID == h.ID && u.Form == h.Form && u.Start < h.End && h.Start < u.End && u.Words <= h.Words {
				return
			}
		}
		start := h.Start
		switch {
		case h.Form == ShortToken && h.View == "":
			start += int64(strings.IndexAny(string(all[h.Start:h.End]), dashes))
		case h.Form == ShortToken:
			start += 6 * 3 // letters in their code
		}
		if start < last.From {
			t.Fatalf("text %.4000q in %v: hit %+v begins before %+v", all, sizes, h, last)
		}
	})
	for i, off := 0, int64(0); len(p) > 0; i++ {
		n := min(len(p), max(1, sizes[i%len(sizes)]))
		s.Write(p[:n:n])
		p, off = p[n:], off+int64(n)
		now := s.Pending()
		if now.From < last.From || now.From > off || now.To < now.From || now.To > off || now.Words < 0 || now.Words == 0 && now.From < off {
			t.Fatalf("at %d of %.4000q in %v: %+v after %+v", off, all, sizes, now, last)
		}
		last = now
		if u, ok := s.UnderWay(); ok && (len(under) == 0 || under[len(under)-1].Start != u.Start) {
			under = append(under, u)
		}
	}
	s.Close()
	return last
}

// TestNoHitBeforePending: whatever the text and however it is cut, no hit is
// found that begins where nothing was waited for.
func TestNoHitBeforePending(t *testing.T) {
	c := New(testKey(1))
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t, c)
		sizes := rapid.SliceOfN(rapid.SampledFrom([]int{1, 2, 3, 5, 7, 11, 40, 300, 1500}), 1, 5).Draw(t, "sizes")
		watched(t, c, ScanOptions{}, text, sizes...)
		watched(t, c, ScanOptions{}, text, 1)
		watched(t, c, ScanOptions{Forms: []Form{ShortToken}}, text, sizes...)
		watched(t, c, ScanOptions{Forms: []Form{WordChain}}, text, sizes...)
	})
}

// TestNoDecodedHitBeforePending: the same of texts in the text.
func TestNoDecodedHitBeforePending(t *testing.T) {
	c := New(testKey(1))
	rapid.Check(t, func(t *rapid.T) {
		text := drawCoded(t, c)
		sizes := rapid.SliceOfN(rapid.SampledFrom([]int{1, 2, 3, 5, 7, 11, 40, 300, 1500}), 1, 5).Draw(t, "sizes")
		watched(t, c, ScanOptions{Decode: true}, text, sizes...)
	})
}

// TestPendingIsShort: what is waited for at the end of a text is no more than
// what could become a canary.
func TestPendingIsShort(t *testing.T) {
	c := New(testKey(1))
	words := strings.Fields(mint(c, 3, 20, 20))
	for _, tt := range []struct {
		text  string
		wait  string // what of it is waited for
		words int
	}{
		{"", "", 0},
		{"the ", "", 0},
		{"I am ", "", 0},
		{"qqq", "", 0},
		{"straightforwar", "", 0},
		{words[0], words[0], 1},
		{words[0] + " ", words[0] + " ", 1},
		{words[0] + " is ", "", 0},
		{words[0] + " is " + words[1], words[1], 1},
		{"x " + words[0] + ", " + words[1][:2], words[0] + ", " + words[1][:2], 2},
		{strings.Join(words[:7], " ") + " ", strings.Join(words[:7], " ") + " ", 7},
		{"x " + strings.Join(words[:7], " ") + " z ", "", 0},
		{"x " + strings.Join(words, " ") + " ", strings.Join(words[13:], " ") + " ", 7},
		{"is 42, 世界! ", "", 0},
		{`is \u00`, `\u00`, 1},
		{"is &am", "&am", 1},
		{"is \xf0\x9d", "\xf0\x9d", 1},
		{"of ZCANARY", "", 0},
		{"of ZCANARY-", "-", 1},
		{"of ZCANARY-ab12", "-ab12", 3},
		{"of ZCANARY-ab 12 ", "", 0},
		{"of zzzzzzzzzzzzy\\", "\\", 1},
		{"of zzzzzzzzzzzzy\u2011ab", "\u2011ab", 3},
	} {
		got := watched(t, c, ScanOptions{}, []byte(tt.text), 1)
		if wait := tt.text[got.From:]; wait != tt.wait || got.Words != tt.words {
			t.Errorf("%q: waits for %q, %d words; want %q, %d", tt.text, wait, got.Words, tt.wait, tt.words)
		}
	}
}

// TestPendingMoves: each letter that may belong to a canary moves To, and
// nothing else does.
func TestPendingMoves(t *testing.T) {
	c := New(testKey(1))
	s := c.NewScanner(ScanOptions{}, func(Hit) {})
	to := int64(-1)
	for i, r := range mint(c, 3, 0, 30) {
		s.Write([]byte(string(r)))
		if now := s.Pending(); (now.To > to) != (r != ' ') {
			t.Fatalf("character %d, %q: To went from %d to %d", i, r, to, now.To)
		} else {
			to = now.To
		}
	}
	s.Write([]byte(" -- 1, 2, 3 世界 "))
	if now := s.Pending(); now.To != to || now.Words != MinWords-1 {
		t.Errorf("what separates words moved it from %d: %+v", to, now)
	}
}

// TestUnderWay: a canary is known as one as soon as something follows its eighth word.
func TestUnderWay(t *testing.T) {
	c := New(testKey(1))
	s := c.NewScanner(ScanOptions{}, func(Hit) { t.Error("reported before it ended") })
	s.Write([]byte("is " + mint(c, 3, 5, MinWords)))
	if h, ok := s.UnderWay(); ok {
		t.Fatalf("%+v before its last word has ended", h)
	}
	s.Write([]byte(" "))
	want := Hit{ID: 3, Form: WordChain, Word: 5, Words: MinWords, Start: 3, End: int64(len("is " + mint(c, 3, 5, MinWords)))}
	if h, ok := s.UnderWay(); !ok || h != want {
		t.Fatalf("%+v, %v, want %+v", h, ok, want)
	}
}

func BenchmarkPending(b *testing.B) {
	c := New(testKey(1))
	s := c.NewScanner(ScanOptions{}, func(Hit) {})
	pieces := [][]byte{[]byte(" the"), []byte(" window"), []byte(" opened"), []byte(","), []byte(" and")}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Write(pieces[i%len(pieces)])
		if s.Pending().Words > MinWords {
			b.Fatal("more than can be")
		}
	}
}

// drawCoded makes text with canaries in the codes of views, between junk.
func drawCoded(t *rapid.T, c *Coder) []byte {
	var b strings.Builder
	for range rapid.IntRange(1, 4).Draw(t, "pieces") {
		for range rapid.IntRange(0, 20).Draw(t, "junk") {
			b.WriteString(rapid.SampledFrom(junk).Draw(t, "j"))
		}
		words := mint(c, rapid.SampledFrom(twinIDs).Draw(t, "id"), rapid.IntRange(0, 200).Draw(t, "from"), rapid.IntRange(4, 20).Draw(t, "n"))
		switch rapid.IntRange(0, 4).Draw(t, "code") {
		case 0:
			b.WriteString(strings.Join(strings.Split(words, " "), rapid.SampledFrom([]string{"<b>", " </p>", "\x00 ", "\x1b[1m "}).Draw(t, "mark")))
		case 1:
			b.WriteString(encode(t, "percent", c.Token(twinIDs[1])))
		default:
			b.WriteString(encode(t, rapid.SampledFrom([]string{"base64", "hex", "percent"}).Draw(t, "view"), words))
		}
		b.WriteString(rapid.SampledFrom([]string{"", " ", "\n", "; "}).Draw(t, "gap"))
	}
	return []byte(b.String())
}
