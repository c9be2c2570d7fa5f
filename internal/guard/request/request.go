// Package request turns what a client sends into what may reach an engine. It
// rewrites the body as it streams by: fields that reach across requests are
// taken out or set by the guard, fields that make an engine cut a prompt are
// refused, and so is every document that two parsers could read differently.
// What the guard reads is what the engine reads.
package request

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/kvcanary/kvcanary/internal/guard/shape"
)

// Policy is what may pass. Its zero value is the strictest.
type Policy struct {
	Dialect string // "openai", "completions", "responses", "anthropic" or "ollama"

	// Salt is put in under every name of SaltFields ("cache_salt", "extra_key"),
	// whatever the client sent there. Without a salt none is put in, and the
	// client's is still taken out.
	Salt       string
	SaltFields []string

	// RequestID is put in under every name of RequestIDFields ("rid",
	// "request_id"): those that the engine behind honours. An engine that does not
	// know the field may refuse it. The client's own is always taken out.
	RequestID       string
	RequestIDFields []string

	// Set are further members that every request gets, in place of the client's.
	Set []Member

	// AllowStored lets a request name content that the server keeps: earlier
	// answers, conversations, files. Without it such a request is refused, since
	// the guard cannot tell whose content that is.
	AllowStored bool

	// AllowPrivateMedia lets pictures, sounds and files come from hosts that are
	// not on the public web.
	AllowPrivateMedia bool

	// Allow are paths of the table whose rows are not acted on: what they guard
	// against is then left to the engine.
	Allow []string

	// Counts says that the request only has its tokens counted. Nothing is put
	// into it, which a counter may not know.
	Counts bool

	// RefuseUnknown refuses fields that neither the dialect's documentation nor
	// the guard's table has.
	RefuseUnknown bool

	// MaxOpaque is how many parts may pass whose tokens the bytes of the body do
	// not bound: images, audio, files. -1 lets any number pass.
	MaxOpaque int

	MaxDepth int   // objects and lists within one another, 64 by default
	MaxBytes int64 // of the client's body, 64 MiB by default
}

// Check says what is wrong with a policy.
func (p Policy) Check() error {
	if trees[p.Dialect] == nil {
		return fmt.Errorf("the dialect %q is not known", p.Dialect)
	}
	for _, path := range p.Allow {
		if !slices.ContainsFunc(Table, func(f Field) bool { return f.Path == path }) {
			return fmt.Errorf("%q may not be allowed: no field of that path is taken out or refused", path)
		}
	}
	for _, s := range p.Set {
		if s.Name == "" || !json.Valid([]byte(s.Value)) {
			return fmt.Errorf("the member %q cannot be set: it needs a name and a value in JSON", s.Name)
		}
	}
	if slices.Contains(p.SaltFields, "") || slices.Contains(p.RequestIDFields, "") {
		return errors.New("a field for the salt or the request id has no name")
	}
	return nil
}

// Member is a member of the body that the guard sets.
type Member struct {
	Name  string
	Value string // JSON
}

// Facts is what the guard learns of a request on the way.
type Facts struct {
	Known bool // the whole body was read and passed

	Model     string
	Stream    bool // the client gets a stream: it asked for one, or Ollama does that by default
	MaxTokens int  // the largest bound on the answer's tokens in the body; 0 for none

	// Bytes is the size of the client's body. A vocabulary whose tokens stand for
	// at least a byte each has no more tokens for the prompt than that, but for
	// opaque parts and for what the chat template adds.
	Bytes  int64
	Wide   int64 // bytes of what is not ASCII, escapes taken for what they stand for: a tokenizer may normalise these into more
	Opaque int   // parts whose tokens the bytes do not bound
	// Structured is how many of the bytes a chat template writes anew instead of
	// as they stand, with indents and escapes of its own: tool definitions, tool
	// calls, documents. Depth is how deep they are nested, the body included.
	Structured int64
	Depth      int
	// Results are the answers of tools, each of which a template may head with the
	// name of the tool that was called; Called is the longest such name, bytes.
	Results, Called int
	// References are parts that have a template write out the definition of a tool.
	References int

	Changed []string // names of fields that were taken out or replaced, sorted, each once
}

// Refused is the error of a [Reader] that met something that must not pass.
type Refused struct{ Reason shape.Error }

// Error implements error.
func (r *Refused) Error() string { return r.Reason.Message }

// Codes of a [Refused].
const (
	CodeInvalid      = "body_invalid"   // no JSON, or JSON that parsers read differently
	CodeFieldRefused = "field_refused"  // a field that no client may set
	CodeFieldInvalid = "field_invalid"  // a field whose value is not what its API documents
	CodeTooLarge     = "body_too_large" // more bytes than the policy allows
	CodeOpaque       = "opaque_part"    // a part whose tokens are not bounded, where they must be
)

// chunk is how much of a body is read, and checked, at a time, bytes; of its
// beginning less, since most bodies are short and many may come at once.
const (
	chunk = 32 << 10
	first = 4 << 10
)

// Reader rewrites a body as it is read, in constant memory. The body grows by
// [Reader.Grown] bytes, whatever is taken out of it: white space stands where
// fields stood, so that a body of known length stays one.
//
// The last byte comes only after the whole body has been found good. A body
// that is refused on the way has not been a whole document at the other end.
type Reader struct {
	src   io.Reader
	m     machine
	buf   []byte // storage of the input
	kept  int    // bytes at the beginning of buf that the machine has not taken
	ready []byte // rewritten, not yet given out
	max   int64
	err   error
}

// NewReader returns a reader of the rewritten body.
func NewReader(src io.Reader, p Policy) *Reader {
	r := &Reader{buf: make([]byte, first)}
	r.Reset(src, p)
	return r
}

// Reset makes r read another body, with the memory that it has.
func (r *Reader) Reset(src io.Reader, p Policy) {
	r.src, r.kept, r.ready, r.err, r.max = src, 0, nil, nil, p.MaxBytes
	if r.max <= 0 {
		r.max = 64 << 20
	}
	r.m.reset(p)
}

// Grown is how many bytes longer than the client's the rewritten body is. It is
// known before anything is read.
func (r *Reader) Grown() int { return len(r.m.inserted) }

// Facts is what is known so far: all of it once Read has returned io.EOF.
func (r *Reader) Facts() Facts { return r.m.facts }

// Read implements io.Reader. Its errors are io.EOF, [*Refused], and those of
// the source, wrapped.
func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(r.ready) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.m.out = r.m.out[:0]
		r.fill()
	}
	n := copy(p, r.ready)
	r.ready = r.ready[n:]
	return n, nil
}

// fill reads once, and adds what came of it to what is ready.
func (r *Reader) fill() {
	n, err := r.src.Read(r.buf[r.kept:])
	m := &r.m
	if m.facts.Bytes += int64(n); m.facts.Bytes > r.max {
		m.refuseAs(413, CodeTooLarge, "", fmt.Sprintf("the body is longer than %d bytes", r.max))
	}
	have := r.kept + n
	used := m.feed(r.buf[:have])
	from := r.buf[used:have]
	if have == len(r.buf) && have < chunk {
		r.buf = make([]byte, min(2*have, chunk))
	}
	r.kept = copy(r.buf, from)
	if err == io.EOF { // an error that only wraps it is no clean end
		m.finish()
	}
	switch {
	case m.refused != nil:
		r.err, r.ready = m.refused, nil // what stands before the refusal is not worth sending
	case err != nil && err != io.EOF:
		r.err, r.ready = fmt.Errorf("read the client's body: %w", err), nil
	default:
		r.err, r.ready = err, m.out
	}
}
