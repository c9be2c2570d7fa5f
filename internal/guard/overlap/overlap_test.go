package overlap

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// fataler is a test, or a check within one.
type fataler interface {
	Helper()
	Fatal(...any)
}

var start = time.Unix(1_700_000_000, 0)

func newIndex(t fataler, change func(*Options)) *Index {
	t.Helper()
	o := Options{Memory: LeastMemory, Keep: time.Hour, Letters: 160, Key: [32]byte{1, 2, 3}, Start: start}
	if change != nil {
		change(&o)
	}
	x, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// send has a tenant send a text, in a body like those of clients.
func send(x *Index, tenant, text string, at time.Time) {
	b, err := json.Marshal(map[string]any{"model": "m", "messages": []map[string]string{{"role": "user", "content": text}}})
	if err != nil {
		panic(err)
	}
	x.Prompt(x.Tenant(tenant), at).Write(b)
}

// say has a model say a text to a tenant, in one piece.
func say(x *Index, tenant, text string, at time.Time) []Run {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	a := x.Answer(x.Tenant(tenant), at)
	a.Strand("content").Write(b[1 : len(b)-1])
	return a.Found()
}

// wordsOf is text of so many letters that is like no other.
func wordsOf(r *rand.Rand, letters int) string {
	var b strings.Builder
	for n := 0; n < letters; n++ {
		if n > 0 && r.IntN(5) == 0 {
			b.WriteString([]string{" ", ", ", ".\n\n", " \"", "\t"}[r.IntN(5)])
		}
		b.WriteByte("abcdefghijklmnopqrstuvwxyzABC0123456789"[r.IntN(39)])
	}
	return b.String()
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 6)) }

func TestForeignTextIsReported(t *testing.T) {
	r := random(1)
	secret, own := wordsOf(r, 5000), wordsOf(r, 3000)
	x := newIndex(t, nil)
	send(x, "alpha", secret, start)
	send(x, "beta", own, start)
	got := say(x, "beta", "Here you are: "+secret[1000:2000]+" and so on "+own[:1000], start)
	if len(got) != 1 || got[0].From != x.Tenant("alpha") || got[0].Channel != "content" || got[0].Letters < 600 || got[0].Letters > 1000 {
		t.Errorf("found %+v", got)
	}
	scattered := ""
	for i := range 20 {
		scattered += wordsOf(r, 200) + secret[i*200:i*200+100]
	}
	for name, text := range map[string]string{"its own": own, "nobody's": wordsOf(r, 3000), "a short run": wordsOf(r, 500) + secret[:100] + wordsOf(r, 500), "short runs far apart": scattered} {
		if got := say(x, "beta", text, start); len(got) != 0 {
			t.Errorf("%s: found %+v", name, got)
		}
	}
	if got := say(x, "alpha", secret, start); len(got) != 0 {
		t.Errorf("alpha got what alpha sent: %+v", got)
	}
}

// Pages that come in any order, and of two tenants by turns, are found though
// none of them is long enough by itself.
func TestPagesAreFoundInAnyOrder(t *testing.T) {
	r := random(12)
	one, two := wordsOf(r, 5000), wordsOf(r, 5000)
	x := newIndex(t, nil)
	send(x, "alpha", one, start)
	send(x, "gamma", two, start)
	pages := ""
	for range 8 {
		i, j := r.IntN(len(one)-100), r.IntN(len(two)-80)
		pages += one[i:i+100] + two[j:j+80]
	}
	got := say(x, "beta", wordsOf(r, 300)+pages+wordsOf(r, 300), start)
	if len(got) == 0 || got[0].From != x.Tenant("alpha") || got[0].Letters > 800 {
		t.Errorf("found %+v", got)
	}
}

// Text that more than one tenant has sent is nobody's secret, and so is what a
// model said by itself before anybody had sent it.
func TestCommonTextIsNot(t *testing.T) {
	r := random(2)
	licence, boilerplate := wordsOf(r, 2000), wordsOf(r, 2000)
	x := newIndex(t, nil)
	send(x, "alpha", wordsOf(r, 100)+licence, start)
	if got := say(x, "beta", licence, start); len(got) != 1 {
		t.Errorf("while one tenant has sent it: %+v", got)
	}
	send(x, "gamma", licence+wordsOf(r, 100), start)
	if got := say(x, "beta", licence, start); len(got) != 0 {
		t.Errorf("after another has: %+v", got)
	}
	say(x, "alpha", boilerplate, start)
	send(x, "alpha", "You said: "+boilerplate, start)
	if got := say(x, "beta", boilerplate, start); len(got) != 0 {
		t.Errorf("what the model has said itself: %+v", got)
	}
}

func TestMemoryEnds(t *testing.T) {
	r := random(3)
	secret := wordsOf(r, 2000)
	x := newIndex(t, nil)
	send(x, "alpha", secret, start)
	if got := say(x, "beta", secret, start.Add(time.Hour)); len(got) != 1 {
		t.Errorf("within its time: %+v", got)
	}
	if got := say(x, "beta", secret, start.Add(time.Hour+time.Second)); len(got) != 0 {
		t.Errorf("past its time: %+v", got)
	}
	// What is sent again is remembered for longer than what is not.
	x = newIndex(t, nil)
	rest := wordsOf(r, 2000)
	send(x, "alpha", rest, start)
	fill := func() { send(x, "gamma", wordsOf(r, 250_000), start) }
	for range 3 {
		send(x, "alpha", secret, start)
		fill()
	}
	if len(say(x, "beta", secret, start)) != 1 || len(say(x, "beta", rest, start)) != 0 {
		t.Error("the memory does not keep what is sent again, or keeps more than it has room for")
	}
	if got := 8 * 3 * len(x.table.entries); got > LeastMemory || len(x.table.places) != 2*len(x.table.entries) {
		t.Errorf("%d bytes of fingerprints, want %d at most", got, LeastMemory)
	}
}

// Text that repeats itself is no longer for that, and rows of one letter are
// nobody's secret.
func TestRepetitionIsNoRun(t *testing.T) {
	x := newIndex(t, nil)
	send(x, "alpha", strings.Repeat("a", 5000)+strings.Repeat("0123456789", 500), start)
	if got := say(x, "beta", strings.Repeat("a", 5000)+strings.Repeat("0123456789", 500), start); len(got) != 0 {
		t.Errorf("found %+v", got)
	}
}

// A picture in base64 takes no more room than a page of text.
func TestPicturesAreNotRemembered(t *testing.T) {
	r := random(11)
	picture := make([]byte, 300_000)
	for i := range picture {
		picture[i] = byte(r.Uint32())
	}
	x := newIndex(t, nil)
	after := wordsOf(r, 1000)
	send(x, "alpha", "data:image/png;base64,"+base64.StdEncoding.EncodeToString(picture)+" "+after, start)
	used := len(x.table.entries)
	for _, e := range x.table.entries {
		if e.owner == nobody {
			used--
		}
	}
	if used < 200 || used > 280 {
		t.Errorf("%d fingerprints", used)
	}
	if got := say(x, "beta", after, start); len(got) != 1 {
		t.Errorf("the text behind it: %+v", got)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	good := Options{Memory: LeastMemory, Keep: time.Second, Letters: Least, Start: start}
	for want, change := range map[string]func(*Options){
		"memory": func(o *Options) { o.Memory-- }, "letters": func(o *Options) { o.Letters-- }, "second": func(o *Options) { o.Keep-- },
		"choose from": func(o *Options) { o.Memory = MostMemory + 1 },
	} {
		o := good
		change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if x, err := New(good); err != nil || x.AlwaysFrom() != Least+30 {
		t.Errorf("%v", err)
	}
}

// Without the key nothing tells whose, or what, a fingerprint is.
func TestFingerprintsNeedTheKey(t *testing.T) {
	r := random(4)
	text := wordsOf(r, 2000)
	prints := func(key byte) map[uint64]bool {
		x := newIndex(t, func(o *Options) { o.Key[31] = key; o.Key[0] = key })
		send(x, "alpha", text, start)
		out := map[uint64]bool{}
		for _, e := range x.table.entries {
			if e.owner != nobody {
				out[e.print] = true
			}
		}
		return out
	}
	a, b := prints(1), prints(2)
	for p := range a {
		if b[p] {
			t.Error("a fingerprint is the same under two keys")
		}
	}
	if len(a) < 200 || len(a) > 280 { // 2 of window+1 letters
		t.Errorf("%d fingerprints of 2,000 letters", len(a))
	}
	if newIndex(t, nil).Tenant("alpha") == newIndex(t, func(o *Options) { o.Key[31] = 9 }).Tenant("alpha") {
		t.Error("a tenant is called the same under two keys")
	}
}

// quote writes text as one of the many ways to write it within quotes in JSON.
func quote(r *rand.Rand, text string) string {
	var b strings.Builder
	for _, c := range text {
		switch {
		case c >= 0x10000 && r.IntN(2) == 0:
			c -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04X`, 0xD800+c>>10, 0xDC00+c&0x3FF)
		case c < 0x10000 && r.IntN(4) == 0:
			fmt.Fprintf(&b, []string{`\u%04x`, `\u%04X`}[r.IntN(2)], c)
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
		case c < ' ':
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// cut hands text on in pieces.
func cut(r *rand.Rand, text string, to func([]byte)) {
	for len(text) > 0 {
		n := 1 + r.IntN(min(len(text), 1+r.IntN(60)))
		to([]byte(text[:n]))
		text = text[n:]
	}
}

// However a text is written and cut, case, blanks and punctuation apart, a run
// of AlwaysFrom letters is found, and never said to be longer than it is.
func TestLongRunsAreAlwaysFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := random(rapid.Uint64().Draw(t, "seed"))
		x := newIndex(t, func(o *Options) { o.Letters = rapid.IntRange(Least, 300).Draw(t, "letters") })
		run := wordsOf(r, x.AlwaysFrom()+rapid.IntRange(0, 200).Draw(t, "more"))
		if rapid.Bool().Draw(t, "wide") {
			run = strings.NewReplacer("a", "é", "e", "漢", "i", "😀").Replace(run)
		}
		p := x.Prompt(x.Tenant("alpha"), start)
		cut(r, `{"x":"`+quote(r, wordsOf(r, r.IntN(300))+"。"+run+"。"+wordsOf(r, r.IntN(300)))+`"}`, p.Write)
		a := x.Answer(x.Tenant("beta"), start)
		other := strings.ToUpper(strings.NewReplacer(" ", "  ", ",", "", ".", "-").Replace(run))
		if strings.ContainsAny(run, "éÉ") {
			other = run
		}
		cut(r, quote(r, wordsOf(r, r.IntN(300))+"–"+other+"–"+wordsOf(r, r.IntN(300))), a.Strand("reasoning").Write)
		got := a.Found()
		if len(got) != 1 || got[0].Letters < x.o.Letters || got[0].Letters > len(lettersIn(run)) || got[0].Channel != "reasoning" {
			t.Fatalf("found %+v of %d letters", got, len(lettersIn(run)))
		}
	})
}

// lettersIn is a text as it is compared, the obvious way.
func lettersIn(text string) (out []byte) {
	row := 0
	for _, c := range []byte(text) {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			if row++; row <= 1024 {
				out = append(out, c)
			}
		case c >= 0x80:
			row = 0
			out = append(out, c)
		case !strings.ContainsRune("+/-_=", rune(c)):
			row = 0
		}
	}
	return out
}

func BenchmarkPrompt(b *testing.B) {
	x := newIndex(b, func(o *Options) { o.Memory = 64 << 20 })
	body := []byte(`{"x":"` + quote(random(1), "") + strings.NewReplacer("\n", " ", "\t", " ", `"`, "'").Replace(wordsOf(random(5), 1<<20)) + `"}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		x.Prompt(x.Tenant("alpha"), start).Write(body)
	}
}

func BenchmarkAnswer(b *testing.B) {
	x := newIndex(b, func(o *Options) { o.Memory = 64 << 20 })
	a := x.Answer(x.Tenant("beta"), start)
	s := a.Strand("content")
	piece := []byte(" about")
	b.SetBytes(int64(len(piece)))
	b.ReportAllocs()
	for b.Loop() {
		s.Write(piece)
	}
}
