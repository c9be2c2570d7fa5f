package gateway

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// Bounds of what goes over a connection, bytes.
const (
	chunkSize   = 1024    // of a chunk's text
	maxHead     = 1 << 20 // of a request without its prompt
	maxPrompt   = 1 << 30
	chunkLength = 2 // of the length before a chunk
)

// errWire is wrapped by all errors about bytes that nobody should have sent.
var errWire = errors.New("bad bytes on a connection")

// writeChunk writes text of at most chunkSize bytes; none is the answer's end.
func writeChunk(w io.Writer, text []byte) error {
	b := binary.LittleEndian.AppendUint16(make([]byte, 0, chunkLength+len(text)), uint16(len(text)))
	_, err := w.Write(append(b, text...))
	return err
}

// readChunk reads a whole chunk, or takes nothing.
func readChunk(r *bufio.Reader) ([]byte, error) {
	head, err := r.Peek(chunkLength)
	if err != nil {
		return nil, err
	}
	n := int(binary.LittleEndian.Uint16(head))
	if n > chunkSize {
		return nil, fmt.Errorf("%w: a chunk of %d bytes where at most %d can be", errWire, n, chunkSize)
	}
	text, err := r.Peek(chunkLength + n)
	if err != nil {
		return nil, err
	}
	r.Discard(chunkLength + n) // it is there
	return text[chunkLength:], nil
}

// envelope is a request with the name that its answer has to carry.
type envelope struct {
	Name    string
	Prompt  int         // bytes that follow
	Request lab.Request // without its tokens
}

// writeRequest writes a request under a name.
func writeRequest(w io.Writer, name string, r lab.Request) error {
	tokens := r.Tokens
	r.Tokens = nil
	head, err := json.Marshal(envelope{name, len(tokens), r})
	if err != nil {
		return err
	}
	if _, err = w.Write(append(head, '\n')); err == nil && len(tokens) > 0 {
		_, err = w.Write(tokens)
	}
	return err
}

// readRequest reads a request; io.EOF says that none is left.
func readRequest(r *bufio.Reader) (name string, request lab.Request, err error) {
	head, err := readLine(r)
	if err != nil {
		return "", request, err
	}
	var e envelope
	if err := json.Unmarshal(head, &e); err != nil {
		return "", request, fmt.Errorf("%w: a request: %w", errWire, err)
	}
	if e.Prompt < 0 || e.Prompt > maxPrompt || e.Request.Tokens != nil {
		return "", request, fmt.Errorf("%w: a prompt of %d bytes", errWire, e.Prompt)
	}
	e.Request.Tokens = make([]byte, 0, min(e.Prompt, 1<<20))
	for len(e.Request.Tokens) < e.Prompt && err == nil {
		e.Request.Tokens, err = readMore(r, e.Request.Tokens, e.Prompt)
	}
	return e.Name, e.Request, err
}

// readMore appends to b what is there, to at most n bytes.
func readMore(r io.Reader, b []byte, n int) ([]byte, error) {
	const step = 64 << 10
	at := len(b)
	b = append(b, make([]byte, min(step, n-at))...)
	got, err := r.Read(b[at:])
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return b[:at+got], err
}

// readLine reads a line of at most maxHead bytes.
func readLine(r *bufio.Reader) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case len(line) > maxHead:
			return nil, fmt.Errorf("%w: a request's head of more than %d bytes", errWire, maxHead)
		case !errors.Is(err, bufio.ErrBufferFull):
			if errors.Is(err, io.EOF) && len(line) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}
