package guard

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/kvcanary/kvcanary/internal/guard/admit"
	"github.com/kvcanary/kvcanary/internal/guard/request"
	"github.com/kvcanary/kvcanary/internal/guard/shape"
)

// heldBody is up to how many bytes a body is read whole before anything of it is
// sent on, so that it can be judged by all that is in it, and be counted. A
// longer one is sent on while it comes if its stated length alone says that it
// fits, and costs no memory then.
const heldBody = 1 << 20

// prompt is a request's body as it may go upstream.
type prompt struct {
	held  []byte        // rewritten; all of it if rest is nil
	rest  io.Reader     // what follows, as it comes
	whole int64         // bytes of held and rest together; -1 if that is not known beforehand
	facts request.Facts // complete if rest is nil
	by    *upstream     // whose policy it was rewritten by
}

var readers = sync.Pool{New: func() any { return request.NewReader(nil, request.Policy{}) }}

// lendReader takes what reads a body by the policy of an upstream.
func (t *trip) lendReader(body io.Reader, u *upstream) {
	t.reader = readers.Get().(*request.Reader)
	t.reader.Reset(body, t.policy(u))
}

// leaveReader gives it back, with no hold on the request's body nor on the policy
// that its tenant's salt stands in.
func (t *trip) leaveReader() {
	if t.reader != nil {
		t.reader.Reset(nil, request.Policy{})
		readers.Put(t.reader)
		t.reader = nil
	}
}

// read reads the body by the policy of an upstream, nil where it is not known
// yet whose it is.
func (t *trip) read(u *upstream) (*prompt, error) {
	t.body = &clientBody{r: t.r.Body, rc: t.rc, limits: &t.s.Limits, now: t.s.Now, start: t.rec.Start}
	t.own.prompt = t.remember()
	stated := t.r.ContentLength
	if stated > t.s.Limits.BodyBytes {
		return nil, tooLarge(t.s.Limits.BodyBytes)
	}
	t.lendReader(t.body, u)
	p := &prompt{by: u, whole: -1}
	if stated >= 0 {
		p.whole = stated + int64(t.reader.Grown())
		p.held = make([]byte, 0, min(p.whole+1, heldBody))
	}
	for {
		if len(p.held) == cap(p.held) {
			if err := t.grow(p); err != nil {
				return nil, err
			}
		}
		n, err := t.reader.Read(p.held[len(p.held):cap(p.held)])
		t.own.write(p.held[len(p.held) : len(p.held)+n])
		p.held = p.held[:len(p.held)+n]
		switch {
		case err == io.EOF:
			t.own.close()
			p.whole, p.facts = int64(len(p.held)), t.reader.Facts()
			t.leaveReader()
			return p, nil
		case err != nil:
			return nil, bodyRefused(err)
		case len(p.held) >= heldBody && t.maySendOn(u, p):
			p.facts = t.reader.Facts()
			p.rest = &tail{t: t, u: u, whole: p.whole}
			return p, nil
		}
	}
}

// grow makes room for more of a body, which is counted against what all bodies
// together may take.
func (t *trip) grow(p *prompt) error {
	more := max(4<<10, len(p.held))
	if len(p.held)+more > 64<<10 {
		if err := t.g.reserve(t, int64(more)); err != nil {
			return err
		}
	}
	p.held = slices.Grow(p.held, more)
	return nil
}

// maySendOn says that a body may reach the upstream before its end is seen.
func (t *trip) maySendOn(u *upstream, p *prompt) bool {
	switch {
	case u == nil:
		return false
	case t.route.counts || u.gate.Policy.Off || u.gate.Policy.Open && u.gate.Limiter.Limit("").Tokens == 0:
		return true
	}
	return p.whole >= 0 && p.whole <= admit.BytesFor(u.gate.Limiter.Limit(""), u.gate.Policy)
}

// tail is the rest of a body that is sent on while it comes. Its last byte is
// kept back until the whole body has been judged: without it the upstream has
// no document, and nothing that it could act upon.
type tail struct {
	t     *trip
	u     *upstream
	whole int64 // bytes of the body; -1: unknown
	last  [1]byte
	kept  bool
	done  bool
}

// Read implements io.Reader.
func (b *tail) Read(p []byte) (int, error) {
	switch {
	case b.done:
		return 0, io.EOF
	case len(p) < 2:
		return 0, io.ErrShortBuffer
	}
	n := 0
	if b.kept {
		p[0], n, b.kept = b.last[0], 1, false
	}
	m, err := b.t.reader.Read(p[n:])
	b.t.own.write(p[n : n+m])
	n += m
	switch {
	case err == io.EOF:
		b.t.own.close()
		b.done = true
		if err := b.judge(); err != nil {
			return 0, err
		}
		return n, io.EOF
	case err != nil:
		return 0, bodyRefused(err)
	case n == 0:
		return 0, nil
	}
	n--
	b.last[0], b.kept = p[n], true
	return n, nil
}

// judge decides by what is known now that all of the body has been seen.
func (b *tail) judge() error {
	f := b.t.reader.Facts()
	b.t.learn(&f)
	length := b.whole
	if length < 0 {
		length = f.Bytes + int64(b.t.reader.Grown())
	}
	return b.t.admit(b.u, &f, length, nil, nil)
}

// learn records what is known of the body.
func (t *trip) learn(f *request.Facts) {
	t.rec.Model = f.Model
	t.change(f.Changed)
}

// change records names of what was taken out or replaced.
func (t *trip) change(names []string) {
	if len(names) > 0 {
		t.rec.Changed = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(t.rec.Changed), names...))))
	}
}

// rewrite has a body that is as one upstream wants it be as another one does.
func (t *trip) rewrite(p *prompt, u *upstream) error {
	if p.by == u {
		return nil
	}
	t.lendReader(bytes.NewReader(p.held), u)
	defer t.leaveReader()
	held := bytes.NewBuffer(make([]byte, 0, len(p.held)+t.reader.Grown()))
	if _, err := held.ReadFrom(t.reader); err != nil {
		return bodyRefused(err)
	}
	if p.by == nil { // else it would name what the guard has put in itself
		p.facts.Changed = slices.Compact(slices.Sorted(slices.Values(append(p.facts.Changed, t.reader.Facts().Changed...))))
	}
	p.held, p.whole, p.by = held.Bytes(), int64(held.Len()), u
	return nil
}

// bodyRefused is the error of a body that must not go on.
func bodyRefused(err error) error {
	var refused *request.Refused
	if errors.As(err, &refused) {
		return refused.Reason
	}
	var e shape.Error
	if errors.As(err, &e) {
		return e
	}
	return err
}
