package wire

import (
	"bufio"
	"bytes"
)

// Join puts the texts of a recorded answer together again by where they stood,
// as for the answers that a client reads itself: of a stream of events, of a
// JSON document, or of several one after the other. Anything else has none.
// over says that there was more text than is kept.
func Join(record []byte) (strands []Strand, over bool) {
	w := newWeave()
	start := bytes.TrimLeft(bytes.TrimPrefix(record, []byte("\ufeff")), " \t\r\n")
	switch {
	case len(start) == 0:
		return nil, false
	case start[0] == '{' || start[0] == '[' || start[0] == '"':
		w.document(Raw, start)
	case isStream(start):
		events := newSSEReader(bufio.NewReader(bytes.NewReader(start)))
		events.aside = w.line
		for {
			ev, err := events.next()
			if err != nil {
				w.over = w.over || err == errEventTooBig
				break
			}
			w.document(Raw, ev.data)
		}
	}
	return w.strands(), w.over
}

// isStream reports whether a text looks like a stream of events from its first
// line on.
func isStream(text []byte) bool {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	for _, field := range []string{"data:", "event:", "id:", "retry:", ":"} {
		if bytes.HasPrefix(line, []byte(field)) {
			return true
		}
	}
	return false
}
