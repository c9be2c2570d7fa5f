package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// sseEvent is one event of a text/event-stream.
type sseEvent struct {
	name string // the "event" field; "error" also for llama.cpp's "error:" lines
	data []byte // the "data" lines, joined by newlines; valid until the next event
}

// maxEvent bounds a line, and an event, of a stream, bytes. A chunk with
// twenty alternatives for every token stays far below it.
const maxEvent = 4 << 20

var errEventTooBig = errors.New("an event of the stream is longer than 4 MiB")

// sseReader reads a text/event-stream as the WHATWG HTML standard describes
// it, section 9.2, with three things that servers do besides: a last event
// without its blank line is delivered, "error:" is taken for an error event
// (llama.cpp), and a line that begins with "{" is taken for an event of its
// own.
type sseReader struct {
	r      *bufio.Reader
	line   []byte
	data   []byte
	name   string
	has    bool // data holds at least one line
	skipLF bool // the last line ended in CR
	first  bool // a byte order mark may follow
	bare   []byte
	err    error
	// aside is told of lines that are no data: field and value, the field of a
	// comment being empty; nil tells nobody.
	aside func(field, value string)
}

func newSSEReader(r *bufio.Reader) *sseReader { return &sseReader{r: r, first: true} }

// next returns the next event that has data, or the error that ended the
// stream: io.EOF for a clean end.
func (s *sseReader) next() (sseEvent, error) {
	if s.bare != nil {
		ev := sseEvent{data: s.bare}
		s.bare = nil
		return ev, nil
	}
	s.data, s.name, s.has = s.data[:0], "", false
	for s.err == nil {
		line, err := s.readLine()
		if s.first {
			line, s.first = bytes.TrimPrefix(line, []byte("\ufeff")), false
		}
		if err != nil {
			s.err = err
			if len(line) == 0 || err != io.EOF {
				break // half a line of a broken stream says nothing
			}
		}
		if len(line) == 0 {
			if s.has {
				return sseEvent{s.name, s.data}, nil
			}
			s.name = ""
			continue
		}
		if line[0] == '{' {
			if !s.has {
				return sseEvent{data: line}, nil
			}
			s.bare = bytes.Clone(line)
			return sseEvent{s.name, s.data}, nil
		}
		if s.field(line); len(s.data) > maxEvent {
			s.err = errEventTooBig
			return sseEvent{}, s.err
		}
	}
	if s.has {
		s.has = false
		return sseEvent{s.name, s.data}, nil
	}
	return sseEvent{}, s.err
}

// field takes one line that is neither empty nor bare JSON.
func (s *sseReader) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	if f := string(name); s.aside != nil && f != "data" {
		s.aside(f, string(value))
	}
	switch string(name) {
	case "event":
		s.name = string(value)
		return
	case "error":
		s.name = "error"
	case "data":
	default:
		return // a comment, an id, a retry time or something unknown
	}
	if s.has {
		s.data = append(s.data, '\n')
	}
	s.data = append(s.data, value...)
	s.has = true
}

// readLine returns a line without its end, which is LF, CRLF or CR. With an
// error it returns what came before it.
func (s *sseReader) readLine() ([]byte, error) {
	s.line = s.line[:0]
	for {
		if _, err := s.r.Peek(1); err != nil {
			return s.line, err
		}
		chunk, _ := s.r.Peek(s.r.Buffered())
		if s.skipLF && chunk[0] == '\n' {
			s.skipLF = false
			s.r.Discard(1)
			continue
		}
		s.skipLF = false
		end := bytes.IndexAny(chunk, "\r\n")
		take := chunk
		if end >= 0 {
			take = chunk[:end]
		}
		if len(s.line)+len(take) > maxEvent {
			return nil, errEventTooBig
		}
		s.line = append(s.line, take...)
		if end < 0 {
			s.r.Discard(len(chunk))
			continue
		}
		s.skipLF = chunk[end] == '\r'
		s.r.Discard(end + 1)
		return s.line, nil
	}
}
