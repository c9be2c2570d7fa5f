package watch

import (
	"bytes"
	"encoding/binary"
	"sync"
)

// Bounds of how many objects and lists, and texts, one document may have. The
// last event of a Responses stream repeats all of the answer, with twenty
// alternatives for each of its tokens where these were asked for.
const (
	maxParts      = 1 << 18
	maxEventParts = 1 << 17
	keptParts     = 1 << 10 // more are given back when the document is done with
)

// frame is an object or a list of a document.
type frame struct {
	parent  int32
	pos     int32 // its position in a list; -1 for none
	next    int32 // position of the member or element that comes next
	list    bool
	counts  bool // it counts tokens
	ranks   bool // it is, or stands in, a list of alternative tokens
	noBytes bool // of a list: not all of it are numbers from 0 to 255
	class   class
	channel Channel
	name    uint64 // what its parent calls it; 0 for an element of a list
	label   uint64 // of the members that are called an index; 0 for none
	key     uint64 // the member that comes next
	text    uint64 // and what it is called if it is a text
	bytes   int32  // of a list: where its numbers begin in walker.octets
	way     way
}

// way is how a place is named: by the members that lead to it, with the indexes
// that members give (the choice, the tool call), and with positions in lists
// that have none.
type way struct {
	labels, all uint64
	bare        uint64 // without the indexes
	last        int32  // position in the innermost list; -1 for none
}

// leaf is a text of a document, as it is written there, with its escapes.
type leaf struct {
	text    []byte
	at      int // where it begins in the document
	key     uint64
	frame   int32
	pos     int32
	class   class
	channel Channel
}

// isLabel reports a text that comes whole.
func (l *leaf) isLabel() bool {
	return (l.class == label || l.class == kind) && len(l.text) <= maxLabel
}

// maxLabel is the longest text that is taken for a label, bytes.
const maxLabel = 256

// walker reads JSON documents, one after the other, as far as they are that.
// It has to borrow memory for each.
type walker struct {
	*memory
	top  int32
	most int  // objects and lists, or texts
	over bool // the document has more
	odd  bool // something in it is no JSON

	typ     []byte // its type, if it says so at the top
	failed  bool   // it says that it is an error
	ended   bool   // it says that the stream ends
	counted bool   // it counts tokens
	count   [counters]int
}

// read reads a document.
func (k *walker) read(doc []byte) {
	k.frames = append(k.frames[:0], frame{parent: -1, pos: -1, channel: Raw, way: way{last: -1}})
	k.leaves, k.octets = k.leaves[:0], k.octets[:0]
	k.top, k.typ, k.odd, k.failed, k.ended, k.counted = 0, nil, false, false, false, false
	for i := 0; i < len(doc); {
		f := &k.frames[k.top]
		switch c := doc[i]; c {
		case ',':
			f.next++
			f.class = other
			i++
		case '{', '[':
			if len(k.frames) == k.most {
				k.over = true
				return
			}
			if c == '{' && f.class == failure && k.answers(f) {
				k.failed = k.failed || !nothingIn(doc[i+1:])
			}
			k.open(c == '[')
			i++
		case '}', ']':
			k.close()
			i++
		case '"':
			i = k.quoted(doc, i)
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			i = k.number(doc, i)
		case 't', 'f', 'n':
			i = k.literal(doc, i)
		case ' ', '\t', '\n', '\r':
			i++
		default:
			k.odd = true
			i++
		}
	}
	k.odd = k.odd || k.top > 0
	for k.top > 0 { // a document that breaks off
		k.close()
	}
	k.lay()
}

// answers reports whether an object is an answer or an event: what calls a
// member of it an error is one. An item of an answer is not: a tool that failed
// is no end of what called it.
func (k *walker) answers(f *frame) bool {
	return f.parent == 0 || f.parent == 1 && f.name == responseKey && bytes.HasPrefix(k.typ, []byte("response."))
}

// tells reports whether the texts of an event are new: events of Responses'
// that are no deltas say again what has been said.
func (k *walker) tells() bool {
	return !bytes.HasPrefix(k.typ, []byte("response.")) || bytes.HasSuffix(k.typ, []byte(".delta"))
}

// channel is a channel more exactly, by the type of the event.
func (k *walker) channel(c Channel) Channel {
	if c != Content || !bytes.HasPrefix(k.typ, []byte("response.")) {
		return c
	}
	switch {
	case bytes.Contains(k.typ, []byte("reasoning")):
		return Reasoning
	case bytes.Contains(k.typ, []byte("call")), bytes.Contains(k.typ, []byte("tool")):
		return ToolCalls
	}
	return c
}

// literal takes true, false or null.
func (k *walker) literal(doc []byte, i int) int {
	f := &k.frames[k.top]
	for _, word := range literals {
		if bytes.HasPrefix(doc[i:], word) {
			k.ended = k.ended || doc[i] == 't' && f.class == done && f.parent == 0
			k.failed = k.failed || doc[i] == 't' && f.class == failure && k.answers(f)
			return i + len(word)
		}
	}
	k.odd = true
	return i + 1
}

// literals is a table of constants.
var literals = [...][]byte{[]byte("null"), []byte("false"), []byte("true")}

// nothingIn reports whether the object that goes on with b is empty.
func nothingIn(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n")
	return len(b) == 0 || b[0] == '}'
}

// quoted takes the string that begins at doc[i], to the end of the document if
// it does not end, and returns what follows it.
func (k *walker) quoted(doc []byte, i int) int {
	from, end := i+1, i+1
	for {
		n := bytes.IndexByte(doc[end:], '"')
		if n < 0 {
			k.odd = true
			end = len(doc)
			break
		}
		if end += n; !escaped(doc[from:end]) {
			break
		}
		end++
	}
	text := doc[from:end]
	f := &k.frames[k.top]
	i = min(end+1, len(doc))
	if f.list {
		f.noBytes = true
		k.leaf(leaf{text: text, at: from, frame: k.top, pos: f.next, channel: f.channel})
		return i
	}
	for i < len(doc) && (doc[i] == ' ' || doc[i] == '\n' || doc[i] == '\t' || doc[i] == '\r') {
		i++
	}
	if i < len(doc) && doc[i] == ':' {
		k.member(f, text)
		return i + 1
	}
	k.leaf(leaf{text: text, at: from, frame: k.top, key: f.text, pos: -1, class: f.class, channel: f.channel.below(f.class)})
	if f.parent == 0 && f.class == kind {
		k.typ = text
	}
	if f.class == failure && k.answers(f) {
		k.failed = k.failed || len(text) > 0
	}
	return i
}

// escaped reports whether what follows b, in a string, is escaped.
func escaped(b []byte) bool {
	n := 0
	for n < len(b) && b[len(b)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

func (k *walker) leaf(l leaf) {
	switch {
	case len(l.text) == 0:
	case len(k.leaves) == k.most:
		k.over = true
	default:
		k.leaves = append(k.leaves, l)
	}
}

// Names of places that no member has.
const (
	anyNumber  = 3  // members whose names are numbers
	anyToken   = 5  // names that are texts
	ofToken    = 9  // and what stands under them
	asNumbers  = 7  // a list of bytes
	looselyKey = 11 // what begins at several indexes
)

// What a delta and the answer in an event of Responses' are called. They are
// constants.
var (
	deltaKey    = hashOf([]byte("delta"))
	responseKey = hashOf([]byte("response"))
)

// member takes the name of the member that comes next.
func (k *walker) member(f *frame, name []byte) {
	f.class, f.key = classOf(name), hashOf(name)
	switch {
	case string(name) == "content_block": // Anthropic's text begins in it, and goes on in deltas
		f.key = deltaKey
	case !f.ranks && allDigits(name):
		f.key = anyNumber
	case f.ranks && (f.class == other || f.class == label):
		k.leaf(leaf{text: name, at: -1, frame: k.top, key: anyToken, pos: f.next, channel: Logprobs})
		f.text, f.key = f.key, ofToken
		return
	}
	f.text = f.key
}

func (k *walker) open(list bool) {
	f := &k.frames[k.top]
	child := frame{
		parent: k.top, list: list, pos: -1, channel: f.channel,
		counts: f.counts, ranks: f.ranks, bytes: int32(len(k.octets)),
	}
	if f.list {
		f.noBytes = true
		child.pos = f.next
	} else {
		child.name, child.channel = f.key, f.channel.below(f.class)
		// What a model calls a tool with may be named like anything.
		child.counts = (child.counts || f.class == usage) && (child.channel == Raw || child.channel == Content)
		child.ranks = child.ranks || f.class == alternatives
	}
	k.frames = append(k.frames, child)
	k.top = int32(len(k.frames) - 1)
}

func (k *walker) close() {
	f := &k.frames[k.top]
	if f.list && !f.noBytes {
		k.leaf(leaf{text: k.octets[f.bytes:], at: -1, frame: k.top, key: asNumbers, pos: -1, channel: f.channel})
	}
	if k.top > 0 {
		k.top = f.parent
	}
}

// number takes the number at doc[i]: a byte of a list of them, an index, or a
// count of tokens.
func (k *walker) number(doc []byte, i int) int {
	n, digits, negative := 0, 0, doc[i] == '-'
	if negative {
		i++
	}
	for ; i < len(doc) && '0' <= doc[i] && doc[i] <= '9'; i++ {
		if digits++; digits <= 15 {
			n = 10*n + int(doc[i]-'0')
		}
	}
	whole := digits <= 15 && !negative
	for i < len(doc) && (doc[i] == '.' || doc[i]|0x20 == 'e' || doc[i] == '+' || doc[i] == '-' || '0' <= doc[i] && doc[i] <= '9') {
		whole = false
		i++
	}
	f := &k.frames[k.top]
	switch {
	case f.list:
		if f.noBytes = f.noBytes || !whole || n > 255; !f.noBytes {
			k.octets = append(k.octets, byte(n))
		}
	case f.class == index:
		f.label = mix(mix(f.label, f.key), uint64(n)+1)
	case f.class >= promptTokens && whole && (f.counts || f.parent == 0):
		k.count[f.class] = max(k.count[f.class], n)
		k.counted = true
	case f.class == failure && k.answers(f):
		k.failed = k.failed || n != 0
	}
	return i
}

// spare lets go what an unusually large document has taken.
func (k *walker) spare() {
	if cap(k.frames) > keptParts || cap(k.leaves) > keptParts || cap(k.octets) > largeBuffer {
		k.frames, k.leaves, k.octets = nil, nil, nil
	}
}

// memories are for reading documents: an answer has one, and of a stream most
// events are like the last and are not read anew.
var memories = sync.Pool{New: func() any { return new(memory) }}

type memory struct {
	frames []frame
	leaves []leaf
	octets []byte // texts that are written as lists of numbers
}

// borrow takes memory for a document.
func (k *walker) borrow() { k.memory = memories.Get().(*memory) }

// giveBack returns it, with nothing of what was read.
func (k *walker) giveBack() {
	m := k.memory
	k.memory, k.typ = nil, nil
	clear(m.leaves)
	clear(m.octets)
	m.frames, m.leaves, m.octets = m.frames[:0], m.leaves[:0], m.octets[:0]
	memories.Put(m)
}

// lay finds the way to each frame, now that all indexes are known.
func (k *walker) lay() {
	for i := 1; i < len(k.frames); i++ {
		f := &k.frames[i]
		w := k.frames[f.parent].way
		if f.name != 0 {
			w.labels, w.all, w.bare = mix(w.labels, f.name), mix(w.all, f.name), mix(w.bare, f.name)
		}
		switch {
		case f.label != 0:
			w.labels, w.all = mix(w.labels, f.label), mix(w.all, f.label)
		case f.pos >= 0:
			w.all = mix(w.all, uint64(f.pos)+3)
		}
		if f.pos >= 0 {
			w.last = f.pos
		}
		f.way = w
	}
}

// places is where a text belongs: the place of those that come one after the
// other, and, if positions in lists tell more, the place with these, else 0.
// Alternative tokens are told apart by their rank alone. bare is the place
// without the indexes that members give, 0 where there are none.
func (k *walker) places(l *leaf) (place, exact, bare uint64) {
	f := &k.frames[l.frame]
	w := f.way
	if l.key != 0 {
		w.labels, w.all, w.bare = mix(w.labels, l.key), mix(w.all, l.key), mix(w.bare, l.key)
	}
	if w.bare != w.labels {
		bare = mix(w.bare, looselyKey)
	}
	if l.pos >= 0 {
		w.all, w.last = mix(w.all, uint64(l.pos)+3), l.pos
	}
	switch {
	case f.ranks:
		return mix(w.labels, uint64(w.last)+2), 0, 0
	case l.channel == Logprobs || w.all == w.labels:
		return w.labels, 0, bare
	}
	return w.labels, w.all, bare
}

func allDigits(s []byte) bool {
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(s) > 0
}

// hashOf names a member. Names that collide only join two places into one.
func hashOf(s []byte) uint64 {
	h := uint64(len(s)) + 11
	for len(s) > 8 {
		h = mix(h, binary.LittleEndian.Uint64(s))
		s = s[8:]
	}
	var last [8]byte
	copy(last[:], s)
	return mix(h, binary.LittleEndian.Uint64(last[:]))
}

// mix continues a hash.
func mix(h, x uint64) uint64 {
	h = (h ^ x) * 0x9E3779B97F4A7C15
	return h ^ h>>29
}
