package campaign

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/probe"
)

// fullDisk puts /dev/full, which takes no byte, in the place of a file of a run.
func fullDisk(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A disk that is full ends the run: what was kept before stays, the result says
// why, and with room again the run goes on.
func TestFullDisk(t *testing.T) {
	campaign := func(f *fakeTarget, dir string) Config {
		cfg := config(f, (&script{batches: [][]probe.Send{sends(2, 400), sends(2, 400), sends(2, 400)}}).protocol("smoke"))
		cfg.OutDir, cfg.Concurrency = dir, 1
		return cfg
	}
	dir := filepath.Join(t.TempDir(), "run")
	f := &fakeTarget{}
	cfg, err := campaign(f, dir).complete()
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(cfg)
	if err := r.open(); err != nil {
		t.Fatal(err)
	}
	kept := r.dir.exchanges
	r.cfg.Progress = func(p Progress) {
		if p.Sent == 2 {
			r.dir.exchanges = fullDisk(t)
		}
	}
	r.run(t.Context())
	r.dir.close()
	kept.Close()
	res := r.result
	if res.Verdict != Inconclusive || !strings.Contains(res.Reason, "keep exchange 2 in the run directory: ") || !strings.Contains(res.Reason, "no space left on device") || strings.Contains(res.Reason, "\n") {
		t.Errorf("verdict %s, reason %q", res.Verdict, res.Reason)
	}
	if !res.Resumable || f.calls > 4 {
		t.Errorf("resumable %v after %d calls", res.Resumable, f.calls)
	}
	next := &fakeTarget{}
	cfg = campaign(next, dir)
	cfg.Resume = true
	if res := mustRun(t, cfg); res.Resumed != 2 || next.calls != 4 || res.Spent.Exchanges != 6 {
		t.Errorf("%d taken over, %d made, %+v", res.Resumed, next.calls, res.Spent)
	}
}

// A line that only half of fits is taken back, so that the next one begins its own.
func TestHalfALineIsTakenBack(t *testing.T) {
	dir := t.TempDir()
	f, err := os.OpenFile(filepath.Join(dir, exchangesFile), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := &runDir{path: dir, exchanges: f}
	if err := d.line(&kept{Requests: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"half":`); err != nil { // as a disk that is full leaves it
		t.Fatal(err)
	}
	if err := d.takeBack(8); err != nil {
		t.Fatal(err)
	}
	if err := d.line(&kept{Requests: 2}); err != nil {
		t.Fatal(err)
	}
	l := &Loaded{Path: dir}
	if err := l.readExchanges(); err != nil || len(l.kept) != 2 || l.kept[1].Requests != 2 {
		t.Errorf("%d lines, %v", len(l.kept), err)
	}
}
