package overlap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// hashesOf are the hashes of all runs of gram letters, each computed by itself.
func hashesOf(r *roller, letters []byte) (out []uint64) {
	for i := 0; i+gram <= len(letters); i++ {
		h := uint64(0)
		for _, c := range letters[i : i+gram] {
			h = (times(h, r.base) + uint64(c)) % prime
		}
		out = append(out, h)
	}
	return out
}

// chosenOf is what winnowing chooses, the obvious way.
func chosenOf(r *roller, letters []byte) (out []choice) {
	hashes := hashesOf(r, letters)
	last := -1
	for i := 0; i+window <= len(hashes); i++ {
		w := hashes[i : i+window]
		least := slices.Min(w)
		if last >= i && hashes[last] == least {
			continue
		}
		for j := i; j < i+window; j++ {
			if hashes[j] == least {
				last = j
			}
		}
		out = append(out, choice{least, last + gram})
	}
	return out
}

func TestSieveChoosesWhatTheObviousWayDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRoller(rapid.Uint64().Draw(t, "seed"))
		if got := times(prime-1, prime-1); got%prime != 1 { // (-1)(-1)
			t.Fatalf("(-1)(-1) = %d", got)
		}
		var b strings.Builder
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 300), 0, 5).Draw(t, "parts") {
			text := wordsOf(random(uint64(n)), n)
			if n%5 == 0 { // without a blank
				text = strings.Repeat(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < '0' }), "/+-_="[n%2:n%2+2]), 6)
			}
			if n%3 == 0 {
				text = strings.Repeat(wordsOf(random(uint64(n)), n%7+1), n/3) // repeats itself
			}
			b.WriteString(text)
		}
		s := sieve{r: &r}
		var got []choice
		cut(random(rapid.Uint64().Draw(t, "cuts")), quote(random(1), b.String()), func(p []byte) {
			s.write(p)
			got = append(got, s.chosen...)
			s.chosen = s.chosen[:0]
		})
		if want := chosenOf(&r, lettersIn(b.String())); !slices.Equal(got, want) {
			t.Fatalf("%q:\n got %v\nwant %v", b.String(), got, want)
		}
	})
}

// slowTable is a table without places.
type slowTable struct {
	entries []entry
	hand    int
	keep    uint32
}

func (m *slowTable) find(print uint64) *entry {
	for i := range m.entries {
		if e := &m.entries[i]; e.owner != nobody && e.print == print {
			return e
		}
	}
	return nil
}

func TestTableIsLikeAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "entries")
		fast, slow := newTable(n, 10), slowTable{make([]entry, n), 0, 10}
		now := uint32(0)
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			print := ^uint64(0) - uint64(rapid.IntRange(0, 15).Draw(t, "print"))<<rapid.SampledFrom([]int{0, 0, 60}).Draw(t, "shift") // homes that collide
			who := firstTenant + Tenant(rapid.IntRange(0, 2).Draw(t, "who"))
			now += uint32(rapid.IntRange(0, 3).Draw(t, "time"))
			speaks := rapid.Bool().Draw(t, "speaks")
			var got, want Tenant
			e := slow.find(print)
			if speaks {
				got = fast.say(print, who, now)
			} else {
				fast.send(print, who, now)
			}
			owner := who
			if speaks {
				owner = said
			}
			switch {
			case e == nil:
				for slow.entries[slow.hand].owner&again != 0 && now-slow.entries[slow.hand].seen <= slow.keep {
					slow.entries[slow.hand].owner &^= again
					slow.hand = (slow.hand + 1) % n
				}
				slow.entries[slow.hand] = entry{print, owner, now}
				slow.hand = (slow.hand + 1) % n
			case now-e.seen > slow.keep:
				e.seen = now
				if e.owner = owner; !speaks {
					e.owner |= again
				}
			case speaks && e.owner&^again >= firstTenant && e.owner&^again != who:
				want = e.owner &^ again
			default:
				if !speaks && e.owner&^again >= firstTenant && e.owner&^again != who {
					e.owner = several
				}
				e.owner, e.seen = e.owner|again, now
			}
			if got != want || !slices.Equal(fast.entries, slow.entries) || fast.hand != slow.hand {
				t.Fatalf("%d, want %d:\n got %+v\nwant %+v", got, want, fast, slow)
			}
			used := 0
			for i := range fast.entries {
				if e := &fast.entries[i]; e.owner != nobody {
					used++
					if found, _ := fast.find(e.print); found != e {
						t.Fatalf("entry %d cannot be found: %+v", i, fast)
					}
				}
			}
			if full := len(fast.places) - countOf(fast.places, 0); full != used {
				t.Fatalf("%d places for %d entries", full, used)
			}
		}
	})
}

func countOf(s []uint32, v uint32) (n int) {
	for _, x := range s {
		if x == v {
			n++
		}
	}
	return n
}

// gramsOf are all runs of gram letters.
func gramsOf(text []byte) map[string]bool {
	out := map[string]bool{}
	for i := 0; i+gram <= len(text); i++ {
		out[string(text[i:i+gram])] = true
	}
	return out
}

// Against sets of all runs of letters: what is reported is a stretch
// at least half of which stands in runs of gram letters that the tenant has
// sent; and a run that is long enough,
// that stands in one text of one other tenant, and of which no gram was
// sent or said by anybody else, is reported.
func TestIndexIsLikeSetsOfAllRuns(t *testing.T) {
	sentences := make([]string, 12)
	for i := range sentences {
		sentences[i] = wordsOf(random(uint64(100+i)), 20+i*12)
	}
	tenants := []string{"alpha", "beta", "gamma"}
	reports := 0
	rapid.Check(t, func(t *rapid.T) {
		x := newIndex(t, func(o *Options) { o.Letters = 80 })
		sent := map[string][][]byte{}
		grams := map[string]map[string]bool{"model": {}}
		for _, name := range tenants {
			grams[name] = map[string]bool{}
		}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			text := ""
			for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(sentences)-1), 1, 6).Draw(t, "text") {
				text += sentences[i] + " "
			}
			who := rapid.SampledFrom(tenants).Draw(t, "who")
			letters := lettersIn(text)
			if rapid.Bool().Draw(t, "sends") {
				send(x, who, text, start)
				sent[who] = append(sent[who], letters)
				for g := range gramsOf(letters) {
					grams[who][g] = true
				}
				continue
			}
			got := say(x, who, text, start)
			reports += len(got)
			for _, from := range tenants {
				i := slices.IndexFunc(got, func(r Run) bool { return r.From == x.Tenant(from) })
				if i >= 0 && (from == who || mostCovered(letters, grams[from]) < got[i].Letters) {
					t.Fatalf("%s is said to get %d letters of %s, which has sent %d of any stretch", who, got[i].Letters, from, mostCovered(letters, grams[from]))
				}
				if n := longestAlone(letters, sent[from], grams, from); from != who && i < 0 && n >= x.AlwaysFrom() {
					t.Fatalf("%s got %d letters of %s, and that is not reported", who, n, from)
				}
			}
			for g := range gramsOf(letters) {
				grams["model"][g] = true
			}
		}
	})
	if reports == 0 {
		t.Error("nothing was ever reported: the check is empty")
	}
}

// mostCovered is the most letters of a stretch that stand in one of the grams,
// if these are half of it.
func mostCovered(letters []byte, grams map[string]bool) (most int) {
	covered := make([]int, len(letters))
	for i := 0; i+gram <= len(letters); i++ {
		if grams[string(letters[i:i+gram])] {
			for j := range gram {
				covered[i+j] = 1
			}
		}
	}
	for i := range covered {
		n := 0
		for j := i; j < len(covered); j++ {
			if n += covered[j]; 2*n >= j-i+1 {
				most = max(most, n)
			}
		}
	}
	return most
}

// longestAlone is the longest run of letters that stands in one of the texts,
// with no gram that any other has, and none twice.
func longestAlone(letters []byte, texts [][]byte, grams map[string]map[string]bool, from string) (longest int) {
	for i := range letters {
		seen := map[string]bool{}
		for end := i + gram; end <= len(letters); end++ {
			g := string(letters[end-gram : end])
			others := false
			for name, of := range grams {
				others = others || name != from && of[g]
			}
			if others || seen[g] || !slices.ContainsFunc(texts, func(b []byte) bool { return bytes.Contains(b, letters[i:end]) }) {
				break
			}
			seen[g] = true
			longest = max(longest, end-i)
		}
	}
	return longest
}

// What a body says is what encoding/json reads in it, names of members too,
// however it comes; what is no JSON does no harm.
func FuzzPrompt(f *testing.F) {
	long := wordsOf(random(9), 200)
	for _, seed := range []string{
		`{"a":"` + strings.ReplaceAll(strings.Map(blanks, long), `"`, "") + `"}`, `{"a":"` + quote(random(1), strings.Repeat("漢😀字", 40)) + `","b":[1,"x\"y\\"]}`,
		`"\`, `"\u12`, `"\ud83d"`, `{"` + strings.Repeat("n", 99) + `":null}`, `["` + strings.Repeat(`\u0041`, 99) + `"]`, "\"\x80\"", `{`,
	} {
		f.Add([]byte(seed), uint64(1))
	}
	f.Fuzz(func(t *testing.T, body []byte, cuts uint64) {
		x := newIndex(t, nil)
		p := x.Prompt(x.Tenant("alpha"), start)
		cut(random(cuts), string(body), p.Write)
		a := x.Answer(x.Tenant("alpha"), start)
		cut(random(cuts), string(body), a.Strand("raw").Write)
		if got := a.Found(); len(got) != 0 {
			t.Fatalf("a tenant's own text: %+v", got)
		}
		texts, ok := stringsIn(body)
		if !ok {
			return
		}
		x = newIndex(t, nil)
		p = x.Prompt(x.Tenant("alpha"), start)
		cut(random(cuts), string(body), p.Write)
		got := map[uint64]bool{}
		for _, e := range x.table.entries {
			if e.owner != nobody {
				got[e.print] = true
			}
		}
		want := map[uint64]bool{}
		for _, s := range texts {
			for _, c := range chosenOf(&x.roller, lettersIn(s)) {
				want[x.secret(&sieve{}, c.hash)] = true
			}
		}
		if len(want) < len(x.table.entries) && fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%q: %d fingerprints, want %d", body, len(got), len(want))
		}
	})
}

func blanks(r rune) rune {
	if r < ' ' {
		return ' '
	}
	return r
}

// stringsIn are the strings of a JSON document that has no broken letters.
func stringsIn(body []byte) (out []string, ok bool) {
	if !json.Valid(body) || !utf8.Valid(body) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(body))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return out, true
		}
		if err != nil {
			return nil, false
		}
		if s, is := token.(string); is {
			if strings.ContainsRune(s, utf8.RuneError) {
				return nil, false
			}
			out = append(out, s)
		}
	}
}
