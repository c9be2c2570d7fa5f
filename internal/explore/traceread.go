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
	err   error // of the line after them
}

var errCut = errors.New("the trace is cut: its last line is not whole")

// readLines parses a trace in a goroutine of its own, ahead of who takes the
// batches. It ends after an error, the end, or when stop is closed.
func readLines(r io.Reader, stop <-chan struct{}) <-chan lineBatch {
	out := make(chan lineBatch, 4)
	go func() {
		defer close(out)
		var rest []byte
		for n := 1; ; {
			buf := make([]byte, len(rest)+block)
			have := copy(buf, rest)
			got, err := io.ReadFull(r, buf[have:])
			buf = buf[:have+got]
			end := bytes.LastIndexByte(buf, '\n') + 1
			b := parseBlock(buf[:end], n)
			n += len(b.lines)
			rest = buf[end:]
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

func parseBlock(text []byte, n int) lineBatch {
	b := lineBatch{lines: make([]line, 0, len(text)/128+1)}
	for len(text) > 0 {
		end := bytes.IndexByte(text, '\n')
		l, err := parseLine(text[:end])
		if err != nil {
			b.err = fmt.Errorf("line %d is no record: %w", n+len(b.lines), err)
			return b
		}
		l.text = text[:end]
		b.lines = append(b.lines, l)
		text = text[end+1:]
	}
	return b
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
