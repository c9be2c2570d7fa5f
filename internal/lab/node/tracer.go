package node

import (
	"fmt"
	"os"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// Tracer appends the steps of one machine to a trace file. Several processes
// may append to one file: whole lines are written at a time, and the order of
// the lines of one machine is the order of its steps. A nil Tracer traces
// nothing.
type Tracer struct {
	by   handoff.Role
	file *os.File
	buf  []byte
	err  error
}

// traceBuffer is how many bytes wait before they are written.
const traceBuffer = 64 << 10

// OpenTrace opens a trace file to append the steps of one machine to; an empty
// path traces nothing.
func OpenTrace(path string, by handoff.Role) (*Tracer, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	return &Tracer{by: by, file: f}, nil
}

// Step records what a machine did with an event.
func (t *Tracer) Step(in handoff.Event, out []handoff.Action) {
	if t != nil {
		t.add(handoff.Record{By: t.by, In: &in, Out: out})
	}
}

// Begin records how the engine is set up.
func (t *Tracer) Begin(c handoff.Config) {
	if t != nil {
		t.add(handoff.Record{By: t.by, Config: &c})
	}
}

// Start records that a process has begun.
func (t *Tracer) Start() {
	if t != nil {
		t.add(handoff.Record{By: t.by, Start: true})
	}
}

// Open records what the API calls a room.
func (t *Tracer) Open(name string, in handoff.Event, out []handoff.Action) {
	if t != nil {
		t.add(handoff.Record{By: t.by, Name: name, In: &in, Out: out})
	}
}

func (t *Tracer) add(r handoff.Record) {
	t.buf = r.AppendLine(t.buf)
	if len(t.buf) >= traceBuffer {
		t.Flush()
	}
}

// Flush writes what waits. The first error sticks.
func (t *Tracer) Flush() error {
	if t == nil || t.err != nil || len(t.buf) == 0 {
		return t.failed()
	}
	if _, err := t.file.Write(t.buf); err != nil {
		t.err = fmt.Errorf("trace: %w", err)
	}
	t.buf = t.buf[:0]
	return t.err
}

func (t *Tracer) failed() error {
	if t == nil {
		return nil
	}
	return t.err
}

// Close flushes and closes the file.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	err := t.Flush()
	if cerr := t.file.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("trace: %w", cerr)
	}
	return err
}
