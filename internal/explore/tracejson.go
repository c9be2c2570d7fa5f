package explore

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// The codec of trace lines for speed: what encoding/json writes is written and
// read here in the same form, many times faster. A line in any other form is
// left to encoding/json.

// appendJSON appends an event as its members, as they stand between braces.
func appendJSON(b []byte, e *handoff.Event) []byte {
	b = append(b, `"kind":"`...)
	b = append(b, e.Kind.String()...)
	b = append(b, `","room":`...)
	b = strconv.AppendUint(b, uint64(e.Room), 10)
	for _, f := range [...]struct {
		name string
		n    int64
	}{
		{`,"tokens":`, int64(e.Tokens)}, {`,"max_new":`, int64(e.MaxNew)}, {`,"sent":`, int64(e.Sent)},
		{`,"prompt":`, int64(e.Prompt)}, {`,"made":`, int64(e.Made)}, {`,"pos":`, int64(e.Pos)},
		{`,"index":`, int64(e.Index)}, {`,"from":`, int64(e.From)}, {`,"to":`, int64(e.To)},
	} {
		if f.n != 0 {
			b = strconv.AppendInt(append(b, f.name...), f.n, 10)
		}
	}
	if len(e.Pages) > 0 {
		b = append(b, `,"pages":[`...)
		for i, p := range e.Pages {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, int64(p), 10)
		}
		b = append(b, ']')
	}
	if e.Gen != 0 {
		b = strconv.AppendUint(append(b, `,"gen":`...), e.Gen, 10)
	}
	if e.Token != 0 {
		b = strconv.AppendUint(append(b, `,"token":`...), uint64(e.Token), 10)
	}
	for _, f := range [...]struct {
		text string
		set  bool
	}{{`,"stop":true`, e.Stop}, {`,"placeholder":true`, e.Placeholder}, {`,"summed":true`, e.Summed}, {`,"ok":true`, e.OK}, {`,"flawed":true`, e.Flawed}} {
		if f.set {
			b = append(b, f.text...)
		}
	}
	if e.Finish != 0 {
		b = strconv.AppendUint(append(b, `,"finish":`...), uint64(e.Finish), 10)
	}
	if r := e.Refusal; r != (handoff.Refusal{}) {
		b = strconv.AppendUint(append(b, `,"refusal":{"Reason":`...), uint64(r.Reason), 10)
		b = strconv.AppendInt(append(b, `,"Have":`...), int64(r.Have), 10)
		b = strconv.AppendInt(append(b, `,"Extra":`...), int64(r.Extra), 10)
		b = strconv.AppendInt(append(b, `,"Limit":`...), int64(r.Limit), 10)
		b = append(b, '}')
	}
	return b
}

// line is a record of a trace as the checker wants it: the event as it was
// written and as it is, and the actions as they were written.
type line struct {
	config *handoff.Config
	start  bool
	by     handoff.Role
	has    bool // there is an event
	in     handoff.Event
	inText []byte // members of the event
	out    []byte // the array of actions; nil for none
	text   []byte // the line
}

// parse reads a line in the form in which traces are written, or any other.
func (l *line) parse(text []byte) (err error) {
	p := scanner{text: text}
	if !p.record(l) {
		*l, err = slowLine(text)
	}
	l.text = text
	return err
}

// slowLine reads a line in any form that JSON allows, and writes it anew. A
// member that is not known may say that the engine is not of this kind.
func slowLine(text []byte) (line, error) {
	var r handoff.Record
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(&r); err != nil {
		return line{}, err
	}
	if _, err := in.Token(); err != io.EOF {
		return line{}, errors.New("more than one value")
	}
	l := line{config: r.Config, start: r.Start, by: r.By, has: r.In != nil}
	if r.In != nil {
		l.in, l.inText = *r.In, appendJSON(nil, r.In)
	}
	if len(r.Out) > 0 {
		l.out = appendActions(nil, r.Out)
	}
	return l, nil
}

// appendActions appends an array of actions.
func appendActions(b []byte, all []handoff.Action) []byte {
	b = append(b, '[')
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, `{"to_role":"`...), all[i].To.String()...), `",`...)
		b = append(appendJSON(b, &all[i].Event), '}')
	}
	return append(b, ']')
}

// scanner reads a record in its canonical form and gives up at anything else.
type scanner struct {
	text []byte
	at   int
}

func (p *scanner) skip(s string) bool {
	if len(p.text)-p.at >= len(s) && string(p.text[p.at:p.at+len(s)]) == s {
		p.at += len(s)
		return true
	}
	return false
}

// word reads a string without escapes up to its closing quote.
func (p *scanner) word() ([]byte, bool) {
	n := bytes.IndexByte(p.text[p.at:], '"')
	if n < 0 || bytes.IndexByte(p.text[p.at:p.at+n], '\\') >= 0 {
		return nil, false
	}
	w := p.text[p.at : p.at+n]
	p.at += n + 1
	return w, true
}

func (p *scanner) number() (uint64, bool) {
	from, n := p.at, uint64(0)
	for p.at < len(p.text) && p.text[p.at]-'0' <= 9 && p.at-from < 19 {
		n = n*10 + uint64(p.text[p.at]-'0')
		p.at++
	}
	return n, p.at > from && (p.at == from+1 || p.text[from] != '0')
}

func (p *scanner) record(l *line) bool {
	if !p.skip(`{"`) {
		return false
	}
	if p.skip(`name":"`) { // what a room is called does not matter here
		if _, ok := p.word(); !ok || !p.skip(`,"`) {
			return false
		}
	}
	if !p.skip(`by":"`) {
		return false
	}
	w, ok := p.word()
	if !ok {
		return false
	}
	if l.by, ok = roleOf[string(w)]; !ok || !p.skip(`,"in":{`) {
		return false
	}
	from := p.at
	if !p.event(&l.in) {
		return false
	}
	l.has, l.inText = true, p.text[from:p.at-1]
	if p.skip(`,"out":`) {
		// What follows is compared, not read.
		l.out = p.text[p.at : len(p.text)-1]
		return len(l.out) > 2 && p.text[len(p.text)-1] == '}'
	}
	return p.skip("}") && p.at == len(p.text)
}

var roleOf = func() map[string]handoff.Role {
	m := map[string]handoff.Role{}
	for r := handoff.Nobody; r <= handoff.Self; r++ {
		m[r.String()] = r
	}
	return m
}()

var kindOf = func() map[string]handoff.Kind {
	m := map[string]handoff.Kind{}
	for k := handoff.None; k == handoff.None || k.Valid(); k++ {
		m[k.String()] = k
	}
	return m
}()

// event reads an event up to and with its closing brace.
func (p *scanner) event(e *handoff.Event) bool {
	if !p.skip(`"kind":"`) {
		return false
	}
	w, ok := p.word()
	if !ok {
		return false
	}
	if e.Kind, ok = kindOf[string(w)]; !ok || !p.skip(`,"room":`) {
		return false
	}
	n, ok := p.number()
	if !ok {
		return false
	}
	e.Room = handoff.Room(n)
	for p.skip(`,"`) {
		name, ok := p.word()
		if !ok || !p.skip(":") || !p.member(e, name) {
			return false
		}
	}
	return p.skip("}")
}

func (p *scanner) member(e *handoff.Event, name []byte) bool {
	switch string(name) {
	case "pages":
		return p.pages(e)
	case "refusal":
		return p.refusal(e)
	case "stop":
		e.Stop = true
	case "placeholder":
		e.Placeholder = true
	case "summed":
		e.Summed = true
	case "ok":
		e.OK = true
	case "flawed":
		e.Flawed = true
	default:
		n, ok := p.number()
		return ok && setNumber(e, name, n)
	}
	return p.skip("true")
}

func setNumber(e *handoff.Event, name []byte, n uint64) bool {
	const most = 1<<31 - 1
	switch string(name) {
	case "gen":
		e.Gen = n
		return true
	case "token":
		e.Token = byte(n)
		return n < 256
	case "finish":
		e.Finish = handoff.Finish(n)
		return n < 256
	case "tokens":
		e.Tokens = int(n)
	case "max_new":
		e.MaxNew = int(n)
	case "sent":
		e.Sent = int(n)
	case "prompt":
		e.Prompt = int(n)
	case "made":
		e.Made = int(n)
	case "pos":
		e.Pos = int(n)
	case "index":
		e.Index = int(n)
	case "from":
		e.From = int32(n)
	case "to":
		e.To = int32(n)
	default:
		return false
	}
	return n <= most
}

func (p *scanner) pages(e *handoff.Event) bool {
	if !p.skip("[") {
		return false
	}
	for {
		n, ok := p.number()
		if !ok || n > 1<<31-1 {
			return false
		}
		e.Pages = append(e.Pages, int32(n))
		if !p.skip(",") {
			return p.skip("]")
		}
	}
}

func (p *scanner) refusal(e *handoff.Event) bool {
	r := &e.Refusal
	for i, f := range [...]struct {
		name string
		set  func(int)
	}{
		{`{"Reason":`, func(n int) { r.Reason = handoff.Reason(n) }}, {`,"Have":`, func(n int) { r.Have = n }},
		{`,"Extra":`, func(n int) { r.Extra = n }}, {`,"Limit":`, func(n int) { r.Limit = n }},
	} {
		if !p.skip(f.name) {
			return false
		}
		n, ok := p.number()
		if !ok || n > 1<<31-1 || i == 0 && n > 255 {
			return false
		}
		f.set(int(n))
	}
	return p.skip("}")
}
