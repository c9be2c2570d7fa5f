package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// process is a child whose standard input stays open for as long as it shall
// live: when this process dies, the child reads the end of it.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr head
	ended  chan struct{} // closed when the child is gone and err is set
	err    error
}

// startProcess starts exe and gives it its first input.
func startProcess(input []byte, exe string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(exe, args...), ended: make(chan struct{})}
	p.cmd.SysProcAttr = childAttributes()
	p.cmd.Stderr = &p.stderr
	p.cmd.WaitDelay = grace
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	started := make(chan error)
	go func() {
		// The death signal is sent when the thread that started the child
		// ends, so that thread waits here for as long as the child lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	if _, err := p.stdin.Write(input); err != nil {
		return nil, errors.Join(err, p.end())
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill ends the child by force, and returns when it is gone.
func (p *process) kill() {
	p.stdin.Close()
	p.cmd.Process.Kill()
	<-p.ended
}

// end makes the child end, by force if it takes too long, and says what it
// died of if it did not end well.
func (p *process) end() error {
	p.stdin.Close()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		p.cmd.Process.Kill()
		<-p.ended
	}
	if p.err == nil {
		return nil
	}
	return p.died()
}

// died says of a child that is gone what became of it, with its last words.
func (p *process) died() error {
	if p.err == nil {
		return fmt.Errorf("process %d ended by itself", p.pid())
	}
	if words := strings.TrimSpace(p.stderr.String()); words != "" {
		return fmt.Errorf("process %d: %w: %s", p.pid(), p.err, words)
	}
	return fmt.Errorf("process %d: %w", p.pid(), p.err)
}

// head keeps the start of what is written to it, which of a dying process is
// the message.
type head struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const headBytes = 2048

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.buf.Write(p[:min(len(p), headBytes-h.buf.Len())])
	return len(p), nil
}

func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.buf.String()
}
