package wire

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Bounds of what is kept of an answer beside its raw bytes.
const (
	maxText    = 4 << 20   // bytes of text a channel
	maxStrands = 1024      // separate texts in an answer
	maxError   = 256 << 10 // bytes of an error document
)

// strand is one text of a channel: the arguments of the second tool call of
// the first choice, say. Strands that arrive interleaved stay whole.
type strand struct {
	channel Channel
	name    string
	text    strings.Builder
}

// transcript gathers what the events or the document of one answer say.
type transcript struct {
	now     func() time.Time
	strands []*strand
	byName  map[string]*strand
	room    map[Channel]int // bytes that a channel may still take
	weave   *weave          // the same texts and all others, joined by where they stand
	over    bool            // text was dropped

	id, model, finish string
	usage             *Usage
	heaps             anthropicUsage // of which usage is the sum, in the dialect that reports it in parts
	firstToken        time.Time
	text              int // of the answer so far, bytes

	chunks  int    // documents that looked like an answer of the dialect
	errDoc  []byte // the first error that stood in the answer
	garbage string // the first thing that was no document of the dialect, empty for none
	half    bool   // a document broke off
	done    bool   // the stream said that it is over
}

func newTranscript(now func() time.Time) *transcript {
	return &transcript{
		now:    now,
		weave:  newWeave(),
		byName: map[string]*strand{},
		room: map[Channel]int{
			Content: maxText, Reasoning: maxText, ToolCalls: maxText, Logprobs: maxText,
			Header: maxText, ErrorBody: maxText,
		},
	}
}

// add appends text to a strand of a channel. Text over the bound is dropped:
// the raw bytes hold it.
func (t *transcript) add(c Channel, name, text string) {
	if text == "" {
		return
	}
	if c == Content || c == Reasoning || c == ToolCalls {
		t.text += len(text)
		if t.firstToken.IsZero() {
			t.firstToken = t.now()
		}
	}
	t.over = t.over || len(text) > t.room[c]
	text = text[:min(len(text), t.room[c])]
	if text == "" {
		return
	}
	key := string(c) + "/" + name
	s := t.byName[key]
	if s == nil {
		if len(t.strands) >= maxStrands {
			t.over = true
			return
		}
		s = &strand{channel: c, name: name}
		t.strands, t.byName[key] = append(t.strands, s), s
	}
	t.room[c] -= len(text)
	s.text.WriteString(text)
}

// fail notes an error document that stood in the answer, and keeps all of them
// for the scan.
func (t *transcript) fail(doc []byte) {
	doc = doc[:min(len(doc), maxError)]
	if t.errDoc == nil {
		t.errDoc = bytes.Clone(doc)
	}
	t.addError(doc)
}

// addError keeps an error body and the texts in it, decoded.
func (t *transcript) addError(doc []byte) {
	t.add(ErrorBody, "body", string(doc)+"\n")
	for _, text := range parseError(doc).texts {
		if text != string(doc) {
			t.add(ErrorBody, "text", text+"\n")
		}
	}
}

// spoil notes something that is no document of the dialect, or half of one.
func (t *transcript) spoil(what string, doc []byte) {
	if brokenOff(doc) {
		t.half = true
	} else if t.garbage == "" {
		t.garbage = what
	}
	t.add(ErrorBody, "body", string(doc[:min(len(doc), maxError)])+"\n")
}

// headers keeps header or trailer lines, sorted.
func (t *transcript) headers(h http.Header) {
	var lines []string
	for name, values := range h {
		for _, v := range values {
			lines = append(lines, name+": "+v+"\n")
		}
	}
	slices.Sort(lines)
	for _, l := range lines {
		t.add(Header, "lines", l)
	}
	t.weave.headers(h)
}

// pieces joins the strands of every channel, leaving out one that repeats
// another word for word: some servers send reasoning under two names.
func (t *transcript) pieces() []Piece {
	var out []Piece
	for _, c := range []Channel{Content, Reasoning, ToolCalls, Logprobs, Header, ErrorBody} {
		var texts []string
		for _, s := range t.strands {
			if s.channel == c && !slices.Contains(texts, s.text.String()) {
				texts = append(texts, s.text.String())
			}
		}
		if len(texts) > 0 {
			out = append(out, Piece{c, strings.Join(texts, "\n")})
		}
	}
	return out
}

// answered reports whether any text of an answer arrived.
func (t *transcript) answered() bool { return !t.firstToken.IsZero() }

// brokenOff reports whether doc is the beginning of a JSON object.
func brokenOff(doc []byte) bool {
	err := json.Unmarshal(doc, new(json.RawMessage))
	return err != nil && doc[0] == '{' && err.Error() == "unexpected end of JSON input"
}
