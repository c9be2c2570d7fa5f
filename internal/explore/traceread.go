package explore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// block is how many bytes of a trace are read at a time, and longest how long a
// line may be.
const (
	block   = 1 << 20
	longest = 16 << 20
)

// lineBatch is some lines of a trace, read and parsed.
type lineBatch struct {
	lines []line
	err   error  // of the line after them
	text  []byte // that the lines are in
}

var errCut = errors.New("the trace is cut: its last line is not whole")

// readLines parses a trace in a goroutine of its own, ahead of who takes the
// batches. It ends after an error, the end, or when stop is closed. Batches that
// are given back through used are used again.
func readLines(r io.Reader, stop <-chan struct{}, used <-chan lineBatch) <-chan lineBatch {
	out := make(chan lineBatch, 4)
	go func() {
		defer close(out)
		var rest []byte
		for n := 1; ; {
			var b lineBatch
			select {
			case b = <-used:
			default:
			}
			if cap(b.text) < len(rest)+block {
				b.text = make([]byte, len(rest)+block)
			}
			b.text = b.text[:len(rest)+block]
			have := copy(b.text, rest)
			got, err := io.ReadFull(r, b.text[have:])
			buf := b.text[:have+got]
			end := bytes.LastIndexByte(buf, '\n') + 1
			b.parse(buf[:end], n)
			n += len(b.lines)
			rest = append(rest[:0], buf[end:]...)
			last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
			switch {
			case b.err != nil:
			case err != nil && !last:
				b.err = &readError{err}
			case last && len(rest) > 0:
				b.err = errCut
			case len(rest) > longest:
				b.err = fmt.Errorf("line %d is longer than %d bytes", n, longest)
			}
			select {
			case out <- b:
			case <-stop:
				return
			}
			if last || b.err != nil {
				return
			}
		}
	}()
	return out
}

// parse reads the lines of a text, the first of which is line n of the trace.
func (b *lineBatch) parse(text []byte, n int) {
	b.lines, b.err = b.lines[:0], nil
	if b.lines == nil {
		b.lines = make([]line, 0, bytes.Count(text, []byte("\n"))*5/4)
	}
	for len(text) > 0 {
		end := bytes.IndexByte(text, '\n')
		b.lines = append(b.lines, line{})
		l := &b.lines[len(b.lines)-1]
		if err := l.parse(text[:end]); err != nil {
			b.err = fmt.Errorf("line %d is no record: %w", n+len(b.lines)-1, err)
			b.lines = b.lines[:len(b.lines)-1]
			return
		}
		text = text[end+1:]
	}
}

// readError says that a trace could not be read, which says nothing about it.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// Unreadable reports whether a trace could not be read at all.
func Unreadable(err error) bool {
	var r *readError
	return errors.As(err, &r)
}
