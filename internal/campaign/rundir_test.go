package campaign

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

func TestRunDirectoryHoldsTheRun(t *testing.T) {
	f := &fakeTarget{answer: func(_ context.Context, call int, _ string) *wire.Answer {
		if call == 0 {
			return served("raw bytes of the first")
		}
		return nil
	}}
	cfg := config(f, (&script{batches: [][]probe.Send{sends(1, 400), sends(6, 400)}}).protocol("smoke"))
	cfg.OutDir = filepath.Join(t.TempDir(), "runs", "one")
	res := mustRun(t, cfg)
	l, err := Load(cfg.OutDir)
	if err != nil {
		t.Fatal(err)
	}
	if l.Cut || l.Result == nil || l.Result.Verdict != res.Verdict || l.Result.Spent != res.Spent {
		t.Errorf("loaded %+v", l.Result)
	}
	if p := l.Plan; p.Seed != 7 || p.Run != res.Run || p.Protocols[0] != "smoke" || p.Tenants[0] != "a" || p.Oracles[0] != "scan" || len(p.Controls) != controlIDs {
		t.Errorf("plan %+v", p)
	}
	if len(l.Exchanges) != 7 {
		t.Fatalf("%d exchanges kept", len(l.Exchanges))
	}
	for i, e := range l.Exchanges {
		if e.Seq != i || e.Answer.Status != 200 || e.SentTokens == 0 || e.Nonces[2] == "" {
			t.Errorf("exchange %d: %+v", i, e)
		}
	}
	raw, err := l.Raw(&l.Exchanges[0])
	if err != nil || string(raw) != "raw bytes of the first" {
		t.Errorf("raw answer %q, %v", raw, err)
	}
}

func TestRunDirectoryIsNeverOverwritten(t *testing.T) {
	cfg := config(&fakeTarget{}, one().protocol("smoke"))
	cfg.OutDir = t.TempDir() // empty: may be taken
	mustRun(t, cfg)
	before, err := os.ReadFile(filepath.Join(cfg.OutDir, resultFile))
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeTarget{}
	cfg.Client, cfg.Protocols = f, []probe.Protocol{one().protocol("boundary")}
	if _, err := Run(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("error %v", err)
	}
	if after, _ := os.ReadFile(filepath.Join(cfg.OutDir, resultFile)); !bytes.Equal(before, after) || f.calls != 0 {
		t.Errorf("the run that was there has changed, or %d exchanges were made for nothing", f.calls)
	}
	cfg.OutDir = filepath.Join(cfg.OutDir, planFile, "x")
	if _, err := Run(context.Background(), cfg); err == nil {
		t.Error("a file was taken for a directory")
	}
}

func TestDirectoryMadeBeforehand(t *testing.T) {
	cfg := config(&fakeTarget{}, one().protocol("smoke"))
	cfg.OutDir = filepath.Join(t.TempDir(), "run")
	spill, err := MakeDir(cfg.OutDir)
	if err != nil || spill != filepath.Join(cfg.OutDir, rawFolder) {
		t.Fatalf("%q, %v", spill, err)
	}
	mustRun(t, cfg)
	if _, err := MakeDir(cfg.OutDir); err == nil {
		t.Error("a run would be overwritten")
	}
}

func TestFilesAreForTheirOwnerAlone(t *testing.T) {
	cfg := config(&fakeTarget{}, one().protocol("smoke"))
	cfg.OutDir = filepath.Join(t.TempDir(), "run")
	mustRun(t, cfg)
	err := filepath.WalkDir(cfg.OutDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if strings.HasPrefix(d.Name(), ".") {
			t.Errorf("%s was left behind", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Targets echo what they are sent, also keys, their own or another tenant's.
func TestNoSecretIsKept(t *testing.T) {
	const mine, other = "sk-marked-0123456789", "sk-also-marked-987654"
	dir := filepath.Join(t.TempDir(), "run")
	f := &fakeTarget{answer: func(_ context.Context, call int, _ string) *wire.Answer {
		a := served("your key is " + mine + " and theirs " + other)
		a.ID, a.Model = mine, other
		a.Header = map[string][]string{"X-Key": {mine}}
		switch call {
		case 1:
			a.Refusal = &wire.Refusal{Kind: wire.RefusedOther, Status: 418, Message: "not " + other}
		case 2:
			a.Failure = &wire.Failure{Kind: wire.FailedCut, Message: "cut at " + mine}
		case 3: // spilled by the client
			a.Raw.Path = filepath.Join(dir, rawFolder, "answer-1.raw")
			if err := os.WriteFile(a.Raw.Path, a.Raw.Bytes, 0o600); err != nil {
				t.Error(err)
			}
			a.Raw.Bytes = nil
		case 4:
			return refused(wire.RefusedQuota, 402, "no balance for "+other)
		}
		return a
	}}
	batches := [][]probe.Send{sends(1, 400), sends(1, 400), sends(1, 400), sends(1, 400), sends(1, 400)}
	cfg := config(f, (&script{batches: batches}).protocol("smoke"))
	cfg.Tenants = []Tenant{{"a", mine}, {"b", other}}
	cfg.Target.BaseURL = "http://user:" + mine + "@127.0.0.1:1/v1?key=" + other
	cfg.OutDir = dir
	res := mustRun(t, cfg)
	if f.calls != 5 || res.Target.BaseURL != "http://127.0.0.1:1/v1" {
		t.Errorf("%d calls, target %+v", f.calls, res.Target)
	}
	shown, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"result": shown}
	walkErr := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[path], err = os.ReadFile(path)
		return err
	})
	if walkErr != nil || len(files) < 7 {
		t.Fatalf("%d files, %v", len(files), walkErr)
	}
	key := cfg.Key
	for name, b := range files {
		for _, secret := range []string{mine, other, string(key[:])} {
			if bytes.Contains(b, []byte(secret)) {
				t.Errorf("%s holds a secret", name)
			}
		}
	}
	l, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := l.Raw(&l.Exchanges[3]); err != nil || !strings.HasPrefix(string(raw), "your key is *") {
		t.Errorf("spilled answer %q, %v", raw, err)
	}
}

func TestOraclesReadRawBytesBack(t *testing.T) {
	f := &fakeTarget{}
	f.answer = func(_ context.Context, call int, _ string) *wire.Answer {
		if call == 1 {
			a := served("nothing to see") // the leak stands in the raw bytes alone
			a.Raw.Bytes = []byte(strings.Join(strings.Fields(f.texts[0])[5:25], " "))
			return a
		}
		return nil
	}
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "run")} {
		f.calls, f.texts = 0, nil
		cfg := config(f, (&script{batches: [][]probe.Send{sends(1, 400), sends(1, 400)}}).protocol("smoke"))
		cfg.OutDir = dir
		if res := mustRun(t, cfg); res.Verdict != Leak {
			t.Errorf("with directory %q: verdict %s", dir, res.Verdict)
		}
	}
}

func TestDirectoryThatCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	f := &fakeTarget{answer: func(_ context.Context, call int, _ string) *wire.Answer {
		if call == 1 {
			if err := os.RemoveAll(filepath.Join(dir, rawFolder)); err != nil {
				t.Error(err)
			}
		}
		return nil
	}}
	cfg := config(f, (&script{batches: [][]probe.Send{sends(1, 400), sends(1, 400), sends(1, 400)}}).protocol("smoke"))
	cfg.OutDir = dir
	res, err := Run(context.Background(), cfg)
	if err == nil || !strings.Contains(err.Error(), "exchange 1") {
		t.Errorf("error %v", err)
	}
	if res == nil || res.Verdict != Inconclusive || f.calls != 2 {
		t.Errorf("result %+v after %d calls", res, f.calls)
	}
}

func TestLoadOfBrokenDirectories(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "run")
	cfg := config(&fakeTarget{}, (&script{batches: [][]probe.Send{sends(3, 400)}}).protocol("smoke"))
	cfg.OutDir = whole
	mustRun(t, cfg)
	for name, c := range map[string]struct {
		spoil     func(dir string) error
		fails     string
		exchanges int
		cut       bool
	}{
		"no plan":       {spoil: func(d string) error { return os.Remove(filepath.Join(d, planFile)) }, fails: "no run directory"},
		"other schema":  {spoil: func(d string) error { return os.WriteFile(filepath.Join(d, planFile), []byte(`{"schema":"x"}`), 0o600) }, fails: `schema "x"`},
		"no exchanges":  {spoil: func(d string) error { return os.Remove(filepath.Join(d, exchangesFile)) }},
		"last line cut": {spoil: func(d string) error { return cutFile(filepath.Join(d, exchangesFile), 10) }, exchanges: 2, cut: true},
		"line broken": {spoil: func(d string) error {
			return os.WriteFile(filepath.Join(d, exchangesFile), []byte("{}\nnot json\n"), 0o600)
		}, fails: "line 2"},
		"half a result": {spoil: func(d string) error { return cutFile(filepath.Join(d, resultFile), 10) }, fails: resultFile},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			if err := c.spoil(dir); err != nil {
				t.Fatal(err)
			}
			l, err := Load(dir)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || len(l.Exchanges) != c.exchanges || l.Cut != c.cut {
				t.Errorf("loaded %+v, %v", l, err)
			}
		})
	}
}

func cutFile(path string, bytes int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Truncate(path, info.Size()-bytes)
}

func TestRawPathsDoNotLeadOut(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(outside, "run")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l := &Loaded{Path: dir}
	for _, path := range []string{"../secret", filepath.Join(outside, "secret")} {
		e := wire.Exchange{Answer: &wire.Answer{Raw: wire.Blob{Path: path}}}
		if b, err := l.Raw(&e); err == nil {
			t.Errorf("%s was read: %q", path, b)
		}
	}
}

// killedRun is what the helper process of TestKilledRunCanBeLoaded does.
const killedRun = "KVCANARY_TEST_KILLED_RUN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(killedRun); dir != "" {
		f := &fakeTarget{answer: func(context.Context, int, string) *wire.Answer {
			time.Sleep(time.Millisecond)
			return nil
		}}
		cfg := config(f, (&script{batches: slices.Repeat([][]probe.Send{sends(8, 400)}, 10_000)}).protocol("smoke"))
		cfg.OutDir = dir
		if _, err := Run(context.Background(), cfg); err != nil {
			os.Stderr.WriteString(err.Error())
		}
		os.Exit(1) // should have been killed long before
	}
	os.Exit(m.Run())
}

func TestKilledRunCanBeLoaded(t *testing.T) {
	for _, lines := range []int{0, 1, 40} {
		dir := filepath.Join(t.TempDir(), "run")
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), killedRun+"="+dir)
		var said bytes.Buffer
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for start := time.Now(); ; time.Sleep(time.Millisecond) {
			b, err := os.ReadFile(filepath.Join(dir, exchangesFile))
			if err == nil && bytes.Count(b, []byte("\n")) >= lines {
				break
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) || time.Since(start) > time.Minute {
				t.Fatalf("the run does not get on: %v %s", err, said.String())
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the run ended by itself")
		}
		l, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		if l.Result != nil || len(l.Exchanges) < lines || l.Plan.Seed != 7 {
			t.Errorf("%d exchanges, result %+v", len(l.Exchanges), l.Result)
		}
		for i := range l.Exchanges {
			if _, err := l.Raw(&l.Exchanges[i]); err != nil {
				t.Error(err)
			}
		}
	}
}
