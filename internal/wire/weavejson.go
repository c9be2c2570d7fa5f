package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Bounds of the walk through one document.
const (
	maxFrames = 1 << 18 // objects and lists
	// maxRank is how many positions of a list have a strand of their own; what
	// stands further on is joined with its neighbours only.
	maxRank = 64
)

// frame is an object or a list of a document.
type frame struct {
	parent  int
	list    bool
	spread  bool   // of an object: its names are text, as in the older top_logprobs
	name    uint64 // what its parent calls it; 0 for an element of a list
	pos     int    // its position in a list; -1 for none
	label   uint64 // of the members that are called an index; 0 for none
	channel Channel

	key      string // of an object, while it is open: the member that comes next
	keyName  uint64
	next     int // of a list, while it is open: position of the element that comes next
	octets   []byte
	noOctets bool // of a list: not all of it are numbers from 0 to 255
}

// leaf is a text of a document.
type leaf struct {
	frame   int
	name    uint64
	pos     int
	channel Channel
	text    string
}

// walk reads a document as far as it is one, whatever is wrong with it.
type walk struct {
	frames []frame
	leaves []leaf
	top    int
	over   bool
}

// document joins the texts of a JSON document, or of several one after the
// other, to those that came at the same places before. A place is named by the
// members that lead to it, and by indexes and positions in lists in four ways:
// with all of them, by members that are called an index (the choice, the tool
// call), by the last position (the rank of an alternative) and without any. So
// texts that come interleaved stay whole, and so do those that come as a list
// of tokens. Member names that are text are texts, and so are lists of bytes.
func (w *weave) document(c Channel, doc []byte) {
	doc = bytes.TrimSpace(doc)
	if len(doc) == 0 {
		return
	}
	if !strings.ContainsRune(`{["`, rune(doc[0])) {
		w.text(c, string(doc))
		return
	}
	k := walk{frames: []frame{{parent: -1, pos: -1, channel: c}}}
	k.read(doc)
	w.over = w.over || k.over
	k.tie(w)
}

func (k *walk) read(doc []byte) {
	for i := 0; i < len(doc); {
		f := &k.frames[k.top]
		switch c := doc[i]; {
		case c == '{' || c == '[':
			if len(k.frames) == maxFrames {
				k.over = true
				return
			}
			k.open(c == '[')
			i++
		case c == '}' || c == ']':
			k.close()
			i++
		case c == ',':
			f.next++
			i++
		case c == '"':
			end, text := stringAt(doc, i)
			i = end
			for i < len(doc) && (doc[i] == ' ' || doc[i] == '\n' || doc[i] == '\t' || doc[i] == '\r') {
				i++
			}
			if i < len(doc) && doc[i] == ':' && !f.list {
				k.member(text)
			} else {
				k.leaf(text)
			}
		case '0' <= c && c <= '9':
			from := i
			for i < len(doc) && strings.IndexByte("0123456789.eE+-", doc[i]) >= 0 {
				i++
			}
			f.number(doc[from:i], from > 0 && doc[from-1] == '-')
		default:
			i++
		}
	}
	for k.top > 0 { // a document that breaks off
		k.close()
	}
}

// stringAt reads the string that begins at doc[i], to the end of the document
// if it does not end.
func stringAt(doc []byte, i int) (end int, text string) {
	escaped := false
	for end = i + 1; end < len(doc) && doc[end] != '"'; end++ {
		if doc[end] == '\\' {
			escaped = true
			end++
		}
	}
	end = min(end, len(doc))
	text = string(doc[i+1 : end])
	if end < len(doc) {
		end++
		if escaped {
			var s string
			if json.Unmarshal(doc[i:end], &s) == nil {
				text = s
			}
		}
	}
	return end, text
}

func (k *walk) open(list bool) {
	f := &k.frames[k.top]
	child := frame{parent: k.top, list: list, pos: -1, channel: f.at()}
	if f.list {
		f.noOctets = true
		child.pos = f.next
	} else {
		child.name = f.keyName
	}
	// Alternatives by name stand right below one of these, or in a list below it.
	child.spread = !list && (f.key == "top_logprobs" || f.key == "prompt_logprobs" || f.list && f.spread)
	if list {
		child.spread = f.key == "top_logprobs" || f.key == "prompt_logprobs"
	}
	f.key = ""
	k.frames = append(k.frames, child)
	k.top = len(k.frames) - 1
}

func (k *walk) close() {
	f := &k.frames[k.top]
	if f.list && !f.noOctets && len(f.octets) > 0 {
		k.leaves = append(k.leaves, leaf{k.top, 6, -1, f.channel, string(f.octets)})
	}
	f.octets = nil
	if k.top > 0 {
		k.top = f.parent
	}
}

// member takes the name of the member that comes next.
func (k *walk) member(name string) {
	f := &k.frames[k.top]
	f.key, f.keyName = name, hashOf(name)
	switch {
	case f.spread && !alternative[name]:
		f.keyName = 7 // the name is text, not a place
		k.leaves = append(k.leaves, leaf{k.top, 8, f.next, Logprobs, name})
	case allDigits(name):
		f.keyName = 9
	}
}

// alternative are the members of an alternative token that is an object of its own.
var alternative = map[string]bool{"token": true, "logprob": true, "bytes": true, "top_logprobs": true, "rank": true, "decoded_token": true, "text": true, "id": true}

func (k *walk) leaf(text string) {
	f := &k.frames[k.top]
	l := leaf{k.top, f.keyName, -1, f.at(), text}
	if f.list {
		f.noOctets = true
		l.name, l.pos = 0, f.next
	}
	f.key = ""
	if text != "" {
		k.leaves = append(k.leaves, l)
	}
}

// number takes a number: a byte of a list of them, or an index.
func (f *frame) number(digits []byte, negative bool) {
	n := 0
	for _, d := range digits {
		if d < '0' || d > '9' || n > 1<<20 {
			n = 1 << 21
			break
		}
		n = 10*n + int(d-'0')
	}
	switch {
	case f.list && (n > 255 || negative):
		f.noOctets, f.octets = true, nil
	case f.list && !f.noOctets:
		f.octets = append(f.octets, byte(n))
	case !f.list && strings.HasSuffix(f.key, "index"):
		f.label = mix(mix(f.label, f.keyName), uint64(n)+1)
	}
	f.key = ""
}

// at is the channel of what stands next in a frame.
func (f *frame) at() Channel {
	if f.list || f.key == "" {
		return f.channel
	}
	return channelAt(f.channel, f.key)
}

// channelAt tells a channel by the names on the way to a text: the first that
// says something, content giving way to what is more exact.
func channelAt(above Channel, name string) Channel {
	if above != Raw && above != Content {
		return above
	}
	switch name {
	case "logprobs", "top_logprobs", "prompt_logprobs", "completion_probabilities":
		return Logprobs
	case "tool_calls", "function_call", "tool_use", "arguments", "partial_json", "input":
		return ToolCalls
	case "error", "detail":
		return ErrorBody
	case "content", "text", "delta", "message", "refusal", "transcript", "output", "response":
		return Content
	}
	if strings.HasPrefix(name, "reasoning") || strings.HasPrefix(name, "thinking") || strings.HasPrefix(name, "thought") {
		return Reasoning
	}
	return above
}

func allDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// way is how a place is named, with more or less of the positions on it.
type way struct {
	all, labels, names uint64
	last               int // position in the innermost list; -1 for none
	deep               bool
}

// tie adds the texts to the threads of their places.
func (k *walk) tie(w *weave) {
	ways := make([]way, len(k.frames))
	ways[0] = way{last: -1}
	for i := range k.frames[1:] {
		f := &k.frames[i+1]
		ways[i+1] = ways[f.parent].step(f.name, f.pos, f.label)
	}
	for _, l := range k.leaves {
		at := ways[l.frame].step(l.name, l.pos, 0)
		places := [4]uint64{at.names, at.labels, mix(at.names, uint64(at.last)+2), at.all}
		if at.last < 0 {
			places[2] = at.names
		}
		if at.deep {
			places[2], places[3] = at.names, at.names
		}
		news := w.add(places[0], l.channel, l.text)
		for i, p := range places[1:] {
			if !slices.Contains(places[:i+1], p) {
				w.add(p, l.channel, l.text)
			}
		}
		if news {
			w.add(everything, Raw, l.text)
		}
	}
}

// step goes on to a member, or to an element of a list: an element that has an
// index is named by it and not by its position.
func (y way) step(name uint64, pos int, label uint64) way {
	if name != 0 {
		y = way{mix(y.all, name), mix(y.labels, name), mix(y.names, name), y.last, y.deep}
	}
	switch {
	case label != 0:
		y.all, y.labels = mix(y.all, label), mix(y.labels, label)
	case pos >= 0:
		y.all = mix(y.all, uint64(pos)+3)
	}
	if pos >= 0 {
		y.last, y.deep = pos, y.deep || pos >= maxRank
	}
	return y
}
