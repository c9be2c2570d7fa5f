package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// The events of a stream that are not text.
const (
	eventCached = "cached" // before the text: how many tokens of the prompt were not computed, if any
	eventDone   = "done"
	eventError  = "error"
)

// message is one server-sent event.
type message struct {
	id    string
	event string // empty is text
	data  []byte
}

// lines are the lines of an event as they go over a connection; a token that
// is a line feed begins a new line of data.
func (m message) lines() [][]byte {
	all := [][]byte{[]byte("id: " + m.id + "\n")}
	if m.event != "" {
		all = append(all, []byte("event: "+m.event+"\n"))
	}
	for part := range bytes.SplitSeq(m.data, []byte{'\n'}) {
		all = append(all, append(append([]byte("data: "), part...), '\n'))
	}
	return append(all, []byte{'\n'})
}

// write sends an event line by line, as servers do that flush often.
func (m message) write(w io.Writer) error {
	for _, line := range m.lines() {
		for len(line) > 0 {
			n := min(len(line), chunkSize)
			if err := writeChunk(w, line[:n]); err != nil {
				return err
			}
			line = line[n:]
		}
	}
	return nil
}

// messageOf is the event that says how an answer ended.
func messageOf(name string, e lab.Event) (message, error) {
	m := message{id: name, event: eventDone}
	var err error
	if e.Error != nil {
		m.event = eventError
		m.data, err = json.Marshal(e.Error)
	} else {
		m.data, err = json.Marshal(e.Done)
	}
	return m, err
}

// parser makes events out of pieces of a stream that are cut anywhere. It
// remembers what is unfinished, so it is good for one stream.
type parser struct {
	mu      sync.Mutex // makes each piece whole; it keeps no two streams apart
	line    []byte
	m       message
	started bool // m has data
}

// feed takes the next piece of a stream and returns the events that it ends.
func (p *parser) feed(text []byte) (all []message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(text) > 0 {
		i := bytes.IndexByte(text, '\n')
		if i < 0 {
			p.line = append(p.line, text...)
			return all
		}
		p.line = append(p.line, text[:i]...)
		text = text[i+1:]
		if m, ended := p.take(p.line); ended {
			all = append(all, m)
		}
		p.line = p.line[:0]
	}
	return all
}

// take takes a whole line; an empty one ends an event.
func (p *parser) take(line []byte) (m message, ended bool) {
	if len(line) == 0 {
		m, ended = p.m, p.started || p.m.event != ""
		p.m, p.started = message{}, false
		return m, ended
	}
	name, value, _ := bytes.Cut(line, []byte(": "))
	switch string(name) {
	case "id":
		p.m.id = string(value)
	case "event":
		p.m.event = string(value)
	case "data":
		if p.started {
			p.m.data = append(p.m.data, '\n')
		}
		p.m.data, p.started = append(p.m.data, value...), true
	}
	return m, false
}
