package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// readyLine is how the lab says where it listens.
const readyLine = "kvcanary lab: listening on "

// patience is how long the lab may take to start, and to stop.
const patience = 20 * time.Second

// process is a lab started as `kvcanary lab`, a process that starts its nodes
// as further ones. It ends when its standard input does, and removes the temporary
// directory if nobody else is there to, so nothing is left behind however this
// process ends.
type process struct {
	url   string
	cmd   *exec.Cmd
	stdin io.Closer
	once  sync.Once
	err   error
}

// startLab starts kvcanary lab and returns once it listens. dir is the
// temporary directory of the whole demo.
func startLab(ctx context.Context, exe string, c lab.Config, dir, trace string) (*process, error) {
	args := []string{"lab", "--stop-on-eof", "--listen", "127.0.0.1:0", "--orphan-removes", dir, "--trace", trace,
		"--context", strconv.Itoa(c.Context), "--prefill-pool", strconv.Itoa(c.PrefillPool),
		"--decode-pool", strconv.Itoa(c.DecodePool), "--page-size", strconv.Itoa(c.PageSize)}
	for _, f := range c.Faults {
		args = append(args, "--fault", f)
	}
	for _, d := range c.Defences {
		args = append(args, "--defence", d)
	}
	cmd := exec.CommandContext(ctx, exe, args...)
	var said strings.Builder
	cmd.Stderr = &said
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the lab: %w", err)
	}
	p := &process{cmd: cmd, stdin: stdin}
	line := make(chan string, 1)
	go func() {
		s, _ := bufio.NewReader(stdout).ReadString('\n')
		line <- s
	}()
	select {
	case s := <-line:
		url, ok := strings.CutPrefix(strings.TrimSpace(s), readyLine)
		if !ok {
			p.stop()
			return nil, fmt.Errorf("the lab did not start: %s", strings.TrimSpace(said.String()))
		}
		p.url = url
		return p, nil
	case <-time.After(patience):
		p.stop()
		return nil, errors.New("the lab did not start in time")
	}
}

// stop ends the lab and waits for it. Only the first call counts.
func (p *process) stop() error {
	p.once.Do(func() {
		p.stdin.Close()
		late := time.AfterFunc(patience, func() { p.cmd.Process.Kill() })
		defer late.Stop()
		if err := p.cmd.Wait(); err != nil {
			p.err = fmt.Errorf("the lab ended badly: %w", err)
		}
	})
	return p.err
}
