package wire

import (
	"net/http"
	"slices"
	"strings"
)

// Strand is one text of an answer put together again from the pieces that it
// came in: the values at one place of the JSON of one event after the other,
// the values of headers, comments of the stream. Nothing but where they stood
// says that they belong together, so strands overlap, and one may join what
// has nothing to do with each other.
type Strand struct {
	Channel Channel // Raw where the place does not tell
	Text    string  // the pieces end to end
	Cuts    []int   // offsets in Text, bytes, at which one piece ended and the next began
}

// Spaced is the text with a space at every cut, for words that came one a
// piece with nothing between them.
func (s Strand) Spaced() string {
	var b strings.Builder
	b.Grow(len(s.Text) + len(s.Cuts))
	from := 0
	for _, c := range s.Cuts {
		b.WriteString(s.Text[from:c])
		b.WriteByte(' ')
		from = c
	}
	b.WriteString(s.Text[from:])
	return b.String()
}

// Bounds of what is joined of one answer. What is over them is in the raw bytes
// only, and [Answer.Overran] says so.
const (
	maxWoven   = 24 << 20 // bytes of all strands together, a cut counting as cutCost
	maxThreads = 8192     // strands
	cutCost    = 8
	// shortestStrand is the shortest text that could be recognised: a nonce, bytes.
	shortestStrand = 11
	// repeated is the length from which a value that stands at a place twice in
	// a row is taken for one of the fields that every event repeats (id, object,
	// system_fingerprint) and kept once, bytes. No two words in a row of a
	// canary are that long, nor the same.
	repeated = 16
)

// weave joins the texts of an answer by where they stand. Time is linear in
// what comes, memory bounded.
type weave struct {
	threads map[uint64]*thread
	order   []*thread
	size    int
	over    bool // something did not fit
}

// thread is a strand under way.
type thread struct {
	channel Channel
	text    strings.Builder
	cuts    []int
	last    uint64 // hash of the piece that came last
}

func newWeave() *weave { return &weave{threads: map[uint64]*thread{}} }

// everything is the thread of all pieces in the order in which they came.
const everything = 1

// add appends a piece to the thread of a place, and reports whether it was
// another piece than the one before at that place.
func (w *weave) add(place uint64, c Channel, piece string) (news bool) {
	t := w.threads[place]
	if t == nil {
		if len(w.order) == maxThreads {
			w.over = true
			return true
		}
		t = &thread{channel: c}
		w.threads[place], w.order = t, append(w.order, t)
	}
	h := hashOf(piece)
	news = h != t.last
	if !news && len(piece) >= repeated {
		return false
	}
	if w.size+len(piece)+cutCost > maxWoven {
		w.over = true
		return news
	}
	t.last = h
	if n := t.text.Len(); n > 0 {
		t.cuts = append(t.cuts, n)
	}
	t.text.WriteString(piece)
	w.size += len(piece) + cutCost
	return news
}

// line takes a line of a stream that is no data: a comment, whose field has no
// name, an id, the name of an event, or something unknown.
func (w *weave) line(field, value string) {
	switch field {
	case "", "id", "event", "retry":
	default:
		field, value = "?", field+" "+value
	}
	w.piece(mix(hashOf(field), 2), Raw, value)
}

// text takes a piece that is no JSON.
func (w *weave) text(c Channel, piece string) { w.piece(mix(hashOf(string(c)), 3), c, piece) }

func (w *weave) piece(place uint64, c Channel, piece string) {
	if piece != "" && w.add(place, c, piece) {
		w.add(everything, Raw, piece)
	}
}

// headers takes the values of headers or trailers: those of one name together,
// and all of them in the order of their names, numbers in which count as numbers.
func (w *weave) headers(h http.Header) {
	var names []string
	for name := range h {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(byNumber(a), byNumber(b)) })
	for _, name := range names {
		for _, v := range h[name] {
			w.add(mix(hashOf(name), 4), Header, v)
			w.add(5, Header, v)
		}
	}
}

// byNumber writes every number in a name with ten digits, so that names sort by it.
func byNumber(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); {
		j := i
		for j < len(name) && '0' <= name[j] && name[j] <= '9' {
			j++
		}
		if n := j - i; n > 0 {
			b.WriteString(strings.Repeat("0", max(0, 10-n)))
			b.WriteString(name[i:j])
			i = j
			continue
		}
		b.WriteByte(name[i])
		i++
	}
	return b.String()
}

// strands are the texts as they stand at the end, each once.
func (w *weave) strands() []Strand {
	var out []Strand
	seen := map[string][]Strand{}
	for _, t := range w.order {
		s := Strand{t.channel, t.text.String(), t.cuts}
		if len(s.Text) < shortestStrand {
			continue
		}
		same := func(o Strand) bool { return o.Channel == s.Channel && slices.Equal(o.Cuts, s.Cuts) }
		if slices.ContainsFunc(seen[s.Text], same) {
			continue
		}
		seen[s.Text] = append(seen[s.Text], s)
		out = append(out, s)
	}
	return out
}

// hashOf is FNV-1a.
func hashOf(s string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return h
}

// mix continues a hash. A collision only joins two places into one.
func mix(h, x uint64) uint64 {
	h = (h ^ x) * 0x9E3779B97F4A7C15
	return h ^ h>>29
}
