package watch

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/canary"
)

// strict returns a strict watch of OpenAI's dialect.
func strict(c ...*canary.Coder) *Watch { return carriers[0].watch(true, c...) }

// leaked fails unless the watch has found their canary and nothing of what must
// not be let out is in out.
func leaked(t failer, w *Watch, out string, stopped bool, words string) {
	t.Helper()
	f := w.Findings()
	if !stopped || len(f) != 1 || f[0].Kind != Leak || f[0].From != theirs {
		t.Fatalf("stopped %v, findings %+v; out came %.2000s", stopped, f, out)
	}
	for _, word := range strings.Fields(words) {
		if strings.Contains(out, word) {
			t.Fatalf("%q was let out: %.2000s", word, out)
		}
	}
}

type failer interface {
	Helper()
	Fatalf(string, ...any)
}

// lineEnds writes a stream with other line ends.
func lineEnds(stream, end string) string { return strings.ReplaceAll(stream, "\n", end) }

// TestLineEnds: streams with any line ends, with a byte order mark, fields in
// any order and data on several lines are read alike.
func TestLineEnds(t *testing.T) {
	c := testCoder(1)
	words := mint(c, theirs, 3, 9)
	rapid.Check(t, func(t *rapid.T) {
		end := rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "end")
		y := rapid.SampledFrom(carriers).Draw(t, "way")
		bom := rapid.SampledFrom([]string{"", "\ufeff"}).Draw(t, "bom")
		sizes := rapid.SliceOfN(rapid.IntRange(1, 200), 1, 4).Draw(t, "writes")
		innocent := bom + lineEnds(y.stream(drawCuts(t, "it is the window of 42, and that is it")), end)
		w := y.watch(true, c)
		if out, stopped := send(w, innocent, sizes...); stopped || out != innocent {
			t.Fatalf("stopped %v, %+v\n%q\n%q", stopped, w.Findings(), innocent, out)
		}
		w = y.watch(true, c)
		out, stopped := send(w, bom+lineEnds(y.stream(drawCuts(t, "is: "+words+" is.")), end), sizes...)
		leaked(t, w, out, stopped, "")
	})
}

func TestDataOnSeveralLines(t *testing.T) {
	c := testCoder(1)
	words := strings.Fields(mint(c, theirs, 3, 8))
	var b strings.Builder
	for _, word := range words {
		fmt.Fprintf(&b, "id: 4\ndata: {\"choices\":[{\"index\":0,\ndata:\"delta\":{\"content\":\nretry: 5\ndata: \"%s \"}}]}\n: in between\n\n", word)
	}
	w := strict(c)
	out, stopped := send(w, b.String(), 7)
	leaked(t, w, out, stopped, "")
	if strings.Contains(out, words[0]) {
		t.Errorf("let out: %s", out)
	}
}

// TestUnitsComeAtOnce: what is in no canary is released with its last byte.
func TestUnitsComeAtOnce(t *testing.T) {
	c := testCoder(1)
	w := strict(c)
	for _, unit := range []string{
		": keep-alive\n\n", "\n", "event: x\nid: 7\n\n", chatHead, "data: {}\n\n", carriers[0].event(`"I am 42 "`), ": keep-alive\r\n\r\n", "retry: 3000\n\n",
		carriers[0].event(`"is it?"`), "data: 12\n\n", "{\"error\":null}\n", chatTail,
	} {
		for i := range len(unit) - 1 {
			w.Write([]byte(unit[i : i+1]))
		}
		release, stop := w.Write([]byte(unit[len(unit)-1:]))
		if now, _ := w.Held(); now > 0 || stop || !strings.HasSuffix(unit, string(release)) {
			t.Fatalf("%q: %d bytes held, stop %v, released %q", unit, now, stop, release)
		}
	}
}

// TestCommentsOvertake: what keeps a connection alive is not held, whatever is.
func TestCommentsOvertake(t *testing.T) {
	c := testCoder(1)
	words := strings.Fields(mint(c, theirs, 3, 7))
	w := strict(c)
	w.Write([]byte(chatHead))
	var want strings.Builder
	for i, word := range words {
		e := carriers[0].event(quote(word + " "))
		want.WriteString(e)
		if release, _ := w.Write([]byte(e)); len(release) > 0 {
			t.Fatalf("word %d came out: %s", i, release)
		}
		for _, ping := range []string{": keep-alive\n", fmt.Sprintf(": ping - 2026-01-02 03:04:%02d\r\n", i), "event: ping\ndata: {\"type\": \"ping\"}\n\n"} {
			if release, _ := w.Write([]byte(ping)); strings.TrimSpace(string(release)) != strings.TrimSpace(ping) {
				t.Fatalf("%q was held: %q came", ping, release)
			}
		}
	}
	e := carriers[0].event(`" is it."`)
	want.WriteString(e)
	if release, stop := w.Write([]byte(e)); stop || strings.TrimSpace(string(release)) != strings.TrimSpace(want.String()) {
		t.Errorf("stop %v; what was held came as %q, want %q", stop, release, want.String())
	}
}

// TestCommentsSmuggleNothing: a canary in comments, however it is cut, is found,
// and but for two words held.
func TestCommentsSmuggleNothing(t *testing.T) {
	c := testCoder(1)
	rapid.Check(t, func(t *rapid.T) {
		words := mint(c, theirs, rapid.IntRange(0, 30).Draw(t, "from"), 9)
		per := rapid.IntRange(1, 10).Draw(t, "words a comment")
		var b strings.Builder
		for line := range slices.Chunk(strings.Fields(words), per) {
			fmt.Fprintf(&b, ": %s\n\n", strings.Join(line, " "))
		}
		b.WriteString(": end\n\n")
		w := strict(c)
		out, stopped := send(w, b.String(), rapid.IntRange(1, 80).Draw(t, "write"))
		leaked(t, w, out, stopped, strings.Join(strings.Fields(words)[2:], " "))
	})
}

// TestStrandsByTurns: canaries in two texts that come by turns, with up to three
// events of the other between the pieces of each.
func TestStrandsByTurns(t *testing.T) {
	c := testCoder(1)
	type pair struct {
		name string
		a, b func(string) string
	}
	for _, p := range []pair{
		{"choices", data(`{"choices":[{"index":0,"delta":{"content":TEXT}}]}`), data(`{"choices":[{"delta":{"content":TEXT},"index":1}]}`)},
		{"choices without index", data(`{"choices":[{"delta":{"content":TEXT}},{"delta":{}}]}`), data(`{"choices":[{"delta":{}},{"delta":{"content":TEXT}}]}`)},
		{"channels", carriers[0].event, carriers[1].event},
		{"tools", data(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":TEXT}}]}}]}`), data(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":TEXT}}]}}]}`)},
		{"blocks", data(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":TEXT}}`), data(`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":TEXT}}`)},
		{"blocks that begin with text", data(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":TEXT}}`), data(`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":TEXT}}`)},
		{"outputs", data(`{"type":"response.output_text.delta","output_index":0,"delta":TEXT}`), data(`{"type":"response.output_text.delta","delta":TEXT,"output_index":3}`)},
	} {
		t.Run(p.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				words := mint(c, theirs, rapid.IntRange(0, 30).Draw(t, "from"), 9)
				theirsIn := drawCuts(t, words+" is it.")
				other := drawCuts(t, strings.Repeat("window of that ", 20))
				var b strings.Builder
				for i, piece := range theirsIn {
					b.WriteString(p.a(quote(piece)))
					for range rapid.IntRange(0, 3).Draw(t, "between") {
						b.WriteString(p.b(quote(other[i%len(other)])))
					}
				}
				w := strict(c)
				out, stopped := send(w, b.String(), 90)
				leaked(t, w, out, stopped, words)
				if strings.Contains(out, p.a(quote(theirsIn[0]))) {
					t.Fatalf("the first piece, %q, was let out", theirsIn[0])
				}
			})
		})
	}
}

// TestDisguises: words that are written otherwise, and cut where no character
// ends, or no escape.
func TestDisguises(t *testing.T) {
	c := testCoder(1)
	for name, write := range map[string]func(r rune) string{
		"escapes":          func(r rune) string { return fmt.Sprintf(`\u%04x`, r) },
		"escapes of JSON":  func(r rune) string { return fmt.Sprintf(`\\u%04X`, r) },
		"hexadecimal":      func(r rune) string { return fmt.Sprintf(`\\x%02x`, r) },
		"surrogates":       func(r rune) string { return pairs(r, func(r rune) rune { return 0x1D41A + r - 'a' }) },
		"full width":       func(r rune) string { return shifted(r, 0xFF41-'a') },
		"mathematical":     func(r rune) string { return shifted(r, 0x1D41A-'a') },
		"without width":    func(r rune) string { return string(r) + "\u200b" },
		"references":       func(r rune) string { return fmt.Sprintf("&#%d;", r) },
		"capitals":         func(r rune) string { return strings.ToUpper(string(r)) },
		"a line each":      func(r rune) string { return strings.ReplaceAll(string(r), " ", `\n`) },
		"twice in strings": func(r rune) string { return strings.ReplaceAll(string(r), " ", `\\\"`) },
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				var text strings.Builder
				for _, r := range mint(c, theirs, rapid.IntRange(0, 30).Draw(t, "from"), 9) + " " {
					if r == ' ' && name != "a line each" && name != "twice in strings" {
						text.WriteRune(r)
					} else {
						text.WriteString(write(r))
					}
				}
				y := rapid.SampledFrom(carriers).Draw(t, "way")
				var b strings.Builder
				first := ""
				for _, piece := range cutJSON(t, text.String()) {
					e := y.event(`"` + piece + `"`)
					if first == "" {
						first = e
					}
					b.WriteString(e)
				}
				b.WriteString(y.event(`" is."`))
				w := y.watch(true, c)
				out, stopped := send(w, b.String(), rapid.IntRange(1, 300).Draw(t, "write"))
				leaked(t, w, out, stopped, "")
				if out != "" {
					t.Fatalf("%q was let out", out)
				}
			})
		})
	}
}

func shifted(r, by rune) string {
	if r == ' ' {
		return " "
	}
	return string(r + by)
}

func pairs(r rune, to func(rune) rune) string {
	if r == ' ' {
		return " "
	}
	r = to(r) - 0x10000
	return fmt.Sprintf(`\u%04x\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
}

// cutJSON cuts what stands in a JSON string anywhere but in an escape of that
// string: characters and pairs of surrogates are cut in two.
func cutJSON(t *rapid.T, s string) (pieces []string) {
	sizes := rapid.SliceOfN(rapid.SampledFrom([]int{1, 2, 3, 4, 7, 40}), 1, 6).Draw(t, "cuts")
	for i := 0; len(s) > 0; i++ {
		n := 0
		for n < min(len(s), sizes[i%len(sizes)]) {
			switch {
			case strings.HasPrefix(s[n:], `\u`):
				n += 6
			case s[n] == '\\':
				n += 2
			default:
				n++
			}
		}
		pieces, s = append(pieces, s[:n]), s[n:]
	}
	return pieces
}

// TestBytesOfTokens: texts that are written as lists of numbers.
func TestBytesOfTokens(t *testing.T) {
	c := testCoder(1)
	rapid.Check(t, func(t *rapid.T) {
		words := mint(c, theirs, rapid.IntRange(0, 30).Draw(t, "from"), 9)
		var b strings.Builder
		for _, piece := range drawCuts(t, words+" is.") {
			list := strings.Trim(strings.Join(strings.Fields(fmt.Sprint([]byte(piece))), ","), "[]")
			fmt.Fprintf(&b, `data: {"choices":[{"index":0,"logprobs":{"content":[{"token":"?","bytes":[%s],"top_logprobs":[{"token":"?","bytes":[1,2,300]}]}]}}]}`+"\n\n", list)
		}
		w := strict(c)
		out, stopped := send(w, b.String(), 90)
		leaked(t, w, out, stopped, words)
		if f := w.Findings(); f[0].Channel != Logprobs || out != "" {
			t.Fatalf("%+v; out came %q", f, out)
		}
	})
}

// TestTokens: the short form is held from its dash on.
func TestTokens(t *testing.T) {
	c := testCoder(1)
	token := c.Token(theirs)
	for _, y := range carriers {
		w := y.watch(true, c)
		pieces := strings.Split("is "+token+" it", "")
		out, stopped := send(w, y.stream(pieces), 90)
		if f := w.Findings(); !stopped || len(f) != 1 || !f[0].Token || f[0].From != theirs {
			t.Fatalf("%s: stopped %v, %+v", y.name, stopped, f)
		}
		if strings.Contains(out, y.event(`"-"`)) {
			t.Errorf("%s: more than CANARY was let out: %s", y.name, out)
		}
	}
}

// TestWhatDoesNotGoOn: text that may be canary is waited for no longer than is
// said, and found all the same if it goes on after that.
func TestWhatDoesNotGoOn(t *testing.T) {
	c := testCoder(1)
	words := strings.Fields(mint(c, theirs, 3, 9))
	for n := 1; n <= 7; n++ {
		w := strict(c)
		held := carriers[1].event(quote(strings.Join(words[:n], " ") + " ")) // reasoning
		if release, _ := w.Write([]byte(held)); len(release) > 0 {
			t.Fatalf("%d words came at once", n)
		}
		rounds, out := 0, ""
		for ; out == "" && rounds < 1000; rounds++ {
			release, _ := w.Write([]byte(carriers[0].event(`"is "`)))
			out = string(release)
		}
		if int64(rounds) < patience[n] || int64(rounds) > patience[n]+2 || !strings.HasPrefix(out, held) {
			t.Errorf("%d words were waited for for %d rounds, want %d", n, rounds, patience[n])
		}
		rest := carriers[1].event(quote(strings.Join(words[n:], " ") + " "))
		if release, stop := w.Write([]byte(rest)); !stop || len(w.Findings()) != 1 || len(release) > 0 {
			t.Errorf("%d words and then the others: stop %v, %+v", n, stop, w.Findings())
		}
	}
}

// TestTooMuchHeld: a unit over the bound ends a strict watch, and a large one
// that is not does not.
func TestTooMuchHeld(t *testing.T) {
	c := testCoder(1)
	large := carriers[0].event(quote(strings.Repeat("that is it, ", 1<<20/12)))
	w := strict(c)
	if out, stopped := send(w, chatHead+large+large+chatTail, 32<<10); stopped || out != chatHead+large+large+chatTail {
		t.Errorf("an event of a million bytes: stopped %v, %+v", stopped, w.Findings())
	}
	for _, stream := range []string{chatHead + strings.TrimSpace(large) + "\n", chatHead + "data: " + strings.Repeat("x", 1<<20)} {
		w = New(Options{Dialect: "openai", Stream: true, Strict: true, Coders: []*canary.Coder{c}, MaxHeld: 1 << 19})
		out, stopped := send(w, stream, 32<<10)
		if f := w.Findings(); !stopped || out != chatHead || len(f) != 1 || f[0].Kind != Unseen {
			t.Errorf("stopped %v, %d bytes out, %+v", stopped, len(out), f)
		}
		w = New(Options{Dialect: "openai", Stream: true, Coders: []*canary.Coder{c}, MaxHeld: 1 << 19})
		out, stopped = send(w, stream+"\n\n: "+mint(c, theirs, 0, 9)+" is\n\n", 32<<10)
		if f := w.Findings(); stopped || len(out) < len(stream) || len(f) != 2 || f[0].Kind != Unseen || f[1].Kind != Leak {
			t.Errorf("an audit: stopped %v, %d bytes out, %+v", stopped, len(out), f)
		}
	}
}

// TestDocuments: an answer that is not streamed is read before its first byte
// is released.
func TestDocuments(t *testing.T) {
	c := testCoder(1)
	words := mint(c, theirs, 3, 9)
	for _, tt := range []struct{ name, doc, want string }{
		{"chat", `{"choices":[{"index":0,"message":{"role":"assistant","content":"is ` + words + `"}}]}`, "leak content"},
		{"tokens", `{"choices":[{"logprobs":{"content":[{"token":"` + strings.ReplaceAll(words, " ", `"},{"token":" `) + `"},{"token":" is"}]}}]}`, "leak logprobs"},
		{"error", `{"error":{"message":"cannot read ` + words + `","code":400}}`, "error_in_answer error, leak error"},
		{"name", `{"` + words + `":1}`, "leak raw"},
		{"no JSON", `<html>` + words + `</html>`, "leak raw"},
		{"label", `{"id":"` + words + `"}`, "leak"},
		{"innocent", `{"choices":[{"message":{"content":"is it"}}]}`, ""},
		{"empty", ``, ""},
		{"breaks off", `{"choices":[{"message":{"content":"` + words, "leak content"},
		{"a stream that says it is none", carriers[0].stream(strings.SplitAfter(words+" is", " ")), "leak content"},
		{"words as a list", `{"choices":["` + strings.ReplaceAll(words, " ", `","`) + `"]}`, "leak raw"},
	} {
		w := New(Options{Dialect: "openai", Strict: true, Coders: []*canary.Coder{c}})
		for i := range len(tt.doc) {
			if release, stop := w.Write([]byte{tt.doc[i]}); len(release) > 0 || stop {
				t.Fatalf("%s: %q was released before its end", tt.name, release)
			}
		}
		release, stop := w.Close()
		leak := strings.Contains(tt.want, "leak")
		if stop != leak || leak && len(release) > 0 || !leak && string(release) != tt.doc {
			t.Errorf("%s: stop %v, released %q", tt.name, stop, release)
		}
		if got := kinds(w); !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: found %q, want %q", tt.name, got, tt.want)
		}
		w = New(Options{Dialect: "openai", Coders: []*canary.Coder{c}})
		if out, stopped := send(w, tt.doc, 9); stopped || out != tt.doc || !strings.HasPrefix(kinds(w), tt.want) {
			t.Errorf("%s: audit: stopped %v, found %q, out %q", tt.name, stopped, kinds(w), out)
		}
	}
	large := `{"x":"` + strings.Repeat("y", 1<<20) + `"}`
	w := New(Options{Strict: true, Coders: []*canary.Coder{c}, MaxDocument: 1 << 20})
	if out, stopped := send(w, large, 1<<16); !stopped || out != "" || kinds(w) != "unwatched raw" {
		t.Errorf("a document that is too large: stopped %v, %d bytes out, %s", stopped, len(out), kinds(w))
	}
	w = New(Options{Coders: []*canary.Coder{c}, MaxDocument: 1 << 20})
	if out, stopped := send(w, large+words+" is", 1<<16); stopped || len(out) != len(large)+len(words)+3 || kinds(w) != "leak raw, unwatched raw" {
		t.Errorf("audit of a document that is too large: stopped %v, %d bytes out, %s", stopped, len(out), kinds(w))
	}
}

func kinds(w *Watch) string {
	var out []string
	for _, f := range w.Findings() {
		out = append(out, f.Kind+" "+string(f.Channel))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// TestFormsAreNoShortcutAroundAnything: events that are like the last are read
// as if they were read whole.
func TestFormsAreNoShortcutAroundAnything(t *testing.T) {
	c := testCoder(1)
	texts := []string{"is ", "\"", `\`, `\\`, "\n", `","finish_reason":"`, `"},"x":{"y":"`, `\"`, "世", "x\xffy", "\u2028", "data: ", `"}}]}` + "\n\n", mint(c, theirs, 0, 4) + " ", mint(c, theirs, 4, 5) + " "}
	rapid.Check(t, func(t *rapid.T) {
		y := rapid.SampledFrom(carriers).Draw(t, "way")
		a, b := y.watch(true, c), y.watch(true, c)
		for range rapid.IntRange(1, 12).Draw(t, "events") {
			text := rapid.SampledFrom(texts).Draw(t, "text")
			if rapid.Bool().Draw(t, "as it is") {
				text = `"` + text + `"`
			} else {
				text = quote(strings.ToValidUTF8(text, ""))
			}
			e := []byte(y.event(text))
			if rapid.Bool().Draw(t, "numbered") {
				e = bytes.Replace(e, []byte(`"id":"`), fmt.Appendf(nil, `"id":"%s%d`, rapid.SampledFrom([]string{"", mint(c, theirs, 20, 8)}).Draw(t, "id"), rapid.IntRange(0, 99).Draw(t, "number")), 1)
			}
			ra, sa := a.Write(e)
			out := string(ra)
			b.form.strand = nil
			rb, sb := b.Write(e)
			if out != string(rb) || sa != sb || fmt.Sprint(a.Findings()) != fmt.Sprint(b.Findings()) {
				t.Fatalf("%q: %v %q %+v; read whole %v %q %+v", e, sa, out, a.Findings(), sb, rb, b.Findings())
			}
		}
	})
}

// TestOwnAndThenTheirs: the end of a canary that may come hides none that follows.
func TestOwnAndThenTheirs(t *testing.T) {
	c := testCoder(1)
	own := canary.MakeID(7, 2, 10)
	rapid.Check(t, func(t *rapid.T) {
		theirWords := mint(c, theirs, rapid.IntRange(0, 30).Draw(t, "from"), 9)
		ownWords := mint(c, own, rapid.IntRange(0, 30).Draw(t, "own from"), rapid.IntRange(6, 20).Draw(t, "own words"))
		var pieces []string
		pieces = append(pieces, drawCuts(t, ownWords+" ")...)
		first := len(pieces)
		pieces = append(pieces, drawCuts(t, theirWords+" is")...)
		y := rapid.SampledFrom(carriers).Draw(t, "way")
		w := New(Options{Dialect: y.dialect, Stream: true, Strict: true, Coders: []*canary.Coder{c}, Own: func(id canary.ID) bool { return id == own }})
		out, stopped := send(w, y.stream(pieces), rapid.IntRange(1, 300).Draw(t, "write"))
		leaked(t, w, out, stopped, "")
		if safe := len(y.stream(pieces[:first])) - len(y.tail); len(out) > safe {
			t.Fatalf("%d bytes came out, %d are safe: %s", len(out), safe, out)
		}
	})
}

// TestManyParts: a document of more parts than any has ends a strict watch.
func TestManyParts(t *testing.T) {
	for name, many := range map[string]string{"lists": strings.Repeat("[", maxEventParts), "texts": `["` + strings.Repeat(`x","`, maxEventParts+1) + `"]`} {
		w := strict(testCoder(1))
		if out, stopped := send(w, chatHead+"data: "+many+"\n\n", 1000); !stopped || out != chatHead || kinds(w) != "unwatched raw" {
			t.Errorf("%s: stopped %v, %s", name, stopped, kinds(w))
		}
		w = New(Options{Strict: true})
		if out, stopped := send(w, many, 1000); stopped || out != many {
			t.Errorf("%s, no stream: stopped %v, %s", name, stopped, kinds(w))
		}
	}
}

// TestLinesThatAreNoEvents: documents that do not begin a line, and text that is
// none, do not wait for an empty line.
func TestLinesThatAreNoEvents(t *testing.T) {
	c := testCoder(1)
	w := strict(c)
	for _, unit := range []string{"  {\"response\":\"is \"}\n", "\t[1]\n", "so be it.\n", "who: me 1\n", "  \n"} {
		if release, stop := w.Write([]byte(unit)); string(release) != unit || stop {
			t.Errorf("%q was held: %q, %v", unit, release, stop)
		}
	}
	words := strings.Fields(mint(c, theirs, 3, 9))
	for _, format := range []string{" {\"response\":\"%s \"}\n", "%s \n", "x: %s\n"} {
		var b strings.Builder
		for i, word := range words {
			if format[0] == 'x' && i > 0 {
				format = " %s\n"
			}
			fmt.Fprintf(&b, format, word)
		}
		w := strict(c)
		out, stopped := send(w, b.String()+"1 is 1\n", 30)
		leaked(t, w, out, stopped, strings.Join(words, " "))
	}
}

// TestAPieceThatComesTwice: a canary of which a piece comes twice is held as any.
func TestAPieceThatComesTwice(t *testing.T) {
	c := testCoder(1)
	words := strings.Fields(mint(c, theirs, 3, 14))
	twice := strings.Join(words[3:6], " ") + " " // over 16 bytes
	w := strict(c)
	out, stopped := send(w, carriers[0].stream([]string{strings.Join(words[:3], " ") + " ", twice, twice, strings.Join(words[3:], " ") + " is"}), 90)
	leaked(t, w, out, stopped, strings.Join(words[3:], " "))
}

// TestFieldsOfEveryEvent: what every event repeats does not hold the events.
func TestFieldsOfEveryEvent(t *testing.T) {
	w := strict(testCoder(1))
	event := "data: {\"host\":\"garden music travel\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"I am. \"}}]}\n\n"
	held := 0
	for i := range 50 {
		w.Write([]byte(event))
		if now, _ := w.Held(); i > 1 && now > 0 {
			held++
		}
	}
	if held > 0 {
		t.Errorf("%d of 48 events were held", held)
	}
}

// TestManyChoices: strands that come by turns wait for each other, however many.
func TestManyChoices(t *testing.T) {
	c := testCoder(1)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 40).Draw(t, "choices")
		words := mint(c, theirs, rapid.IntRange(0, 30).Draw(t, "from"), 9)
		pieces := drawCuts(t, words+" is.")
		their := rapid.IntRange(0, n-1).Draw(t, "theirs")
		var b strings.Builder
		for _, piece := range pieces {
			for choice := range n {
				text := "I am music. "
				if choice == their {
					text = piece
				}
				fmt.Fprintf(&b, `data: {"choices":[{"index":%d,"delta":{"content":%s}}]}`+"\n\n", choice, quote(text))
			}
		}
		w := strict(c)
		out, stopped := send(w, b.String(), 900)
		leaked(t, w, out, stopped, "")
		if strings.Contains(out, fmt.Sprintf(`"index":%d,`, their)) {
			t.Fatalf("a piece of it was let out: %s", out)
		}
	})
}

// TestBlocksThatBeginWithText: Anthropic's text may begin where its block does.
func TestBlocksThatBeginWithText(t *testing.T) {
	c := testCoder(1)
	words := mint(c, theirs, 3, 8)
	start := named("content_block_start", `{"type":"content_block_start","index":2,"content_block":{"type":"text","text":TEXT}}`)
	delta := named("content_block_delta", `{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":TEXT}}`)
	w := New(Options{Dialect: "anthropic", Stream: true, Strict: true, Coders: []*canary.Coder{c}})
	out, stopped := send(w, start(quote(words[:20]))+delta(quote(words[20:]+" is.")), 9)
	leaked(t, w, out, stopped, "")
	if out != "" || kinds(w) != "leak content" {
		t.Errorf("%s; let out: %s", kinds(w), out)
	}
}

// TestACommentHoldsNothingForLong: a comment that ends in words of the list.
func TestACommentHoldsNothingForLong(t *testing.T) {
	w := strict(testCoder(1))
	w.Write([]byte(": garden music travel\n\n"))
	if now, _ := w.Held(); now == 0 {
		t.Error("three words of a comment were let out at once")
	}
	event := carriers[0].event(`"I am. "`)
	for i := range 12 {
		w.Write([]byte(event))
		if now, _ := w.Held(); now == 0 {
			return
		} else if i == 11 {
			t.Errorf("%d bytes are held after 12 events", now)
		}
	}
}

// TestNumbersOfEventsHoldNothing: what a server says of each event is not waited for.
func TestNumbersOfEventsHoldNothing(t *testing.T) {
	w := strict(testCoder(1))
	for i := range 20 {
		event := fmt.Sprintf(`data: {"id":"req_%dx","timestamp":"2026-01-02T03:04:%02dZ","obfuscation":"aVxc","choices":[{"index":0,"delta":{"content":"I am. "}}]}`+"\n\n", i, i)
		if release, _ := w.Write([]byte(event)); string(release) != event {
			t.Fatalf("event %d was held", i)
		}
	}
}
