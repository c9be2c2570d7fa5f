package guard

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/kvcanary/kvcanary/internal/receipt"
)

func newSealer(t *testing.T, dir string) *receipt.Sealer {
	t.Helper()
	private, _, err := receipt.NewKey(rand.Reader, "guard.test")
	if err != nil {
		t.Fatal(err)
	}
	key, err := receipt.ParseSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	log, err := receipt.Open(filepath.Join(dir, "log"), key.Verifier())
	if err != nil {
		t.Fatal(err)
	}
	return &receipt.Sealer{Log: log, Key: key, Now: time.Now}
}

func seen(id string) *Record {
	return &Record{
		ID: id, Start: time.Unix(1_700_000_000, 5), Total: time.Second, Tenant: "alpha", Upstream: "glm", Dialect: "openai", Status: 200, Code: "leak_stopped",
		Model: "not kept", Findings: []Finding{{Kind: "leak", Channel: "content", From: "run/7", Words: 12, Explain: "twelve words of another exchange"}},
	}
}

func TestFindingsAreKeptAndSealed(t *testing.T) {
	dir := t.TempDir()
	seal := newSealer(t, dir)
	var written bytes.Buffer
	k := NewKeeper(Keeping{Lines: &written, Dir: filepath.Join(dir, "findings"), Seal: seal, Version: "1.0"})
	k.Keep(seen("kvg-1"))
	k.Keep(&Record{ID: "kvg-nothing"})
	k.Keep(seen("kvg/../2"))
	k.Close()
	if n := strings.Count(written.String(), "\n"); n != 2 {
		t.Fatalf("%d lines\n%s", n, written.String())
	}
	var first kept
	if err := json.Unmarshal(bytes.SplitN(written.Bytes(), []byte("\n"), 2)[0], &first); err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.NewCompiler().Compile("../../docs/schema/finding.v1.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(written.String()) {
		instance, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(instance); err != nil {
			t.Error(err)
		}
	}
	if first.Schema != FindingSchema || first.Request != "kvg-1" || first.Findings[0].From != "run/7" || first.Time.IsZero() {
		t.Errorf("%+v", first)
	}
	folders, err := os.ReadDir(filepath.Join(dir, "findings"))
	if err != nil || len(folders) != 2 {
		t.Fatalf("%d folders, %v", len(folders), err)
	}
	for _, f := range folders {
		at := filepath.Join(dir, "findings", f.Name())
		all, err := receipt.VerifyDir(at, receipt.Against{Key: seal.Key.Verifier()})
		if err != nil || len(all) != 1 || len(all[0].Problems) > 0 || all[0].Entry.Kind != "finding" {
			t.Errorf("%s: %+v, %v", f.Name(), all, err)
		}
	}
	// A changed finding does not verify.
	at := filepath.Join(dir, "findings", folders[0].Name())
	p, err := os.ReadFile(filepath.Join(at, "finding.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, "finding.json"), bytes.Replace(p, []byte("alpha"), []byte("gamma"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := receipt.VerifyDir(at, receipt.Against{Key: seal.Key.Verifier()}); err != nil || len(all[0].Problems) != 1 {
		t.Errorf("a changed finding: %+v, %v", all, err)
	}
}

// A disk is not filled by an engine that is broken in every answer.
func TestFoldersOfFindingsHaveAnEnd(t *testing.T) {
	dir := t.TempDir()
	_, m := newTestMetrics(State{})
	k := &Keeper{to: Keeping{Dir: dir, Metrics: m}, folders: maxFolders - 1}
	if err := k.write(keptOf(seen("kvg-1"))); err != nil {
		t.Fatal(err)
	}
	if err := k.write(keptOf(seen("kvg-2"))); err == nil {
		t.Error("one more was made")
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("%d folders, %v", len(all), err)
	}
}

func suspected(id string) *Record {
	r := seen(id)
	r.Findings = []Finding{{Kind: "overlap", Channel: "content", Explain: "200 letters"}}
	return r
}

// A client that has others' answers suspected takes the place of no proof.
func TestSuspicionsLeaveRoomForProofs(t *testing.T) {
	dir := t.TempDir()
	_, m := newTestMetrics(State{})
	k := &Keeper{to: Keeping{Dir: dir, Metrics: m}, folders: maxSuspicions - 1, suspected: maxSuspicions - 1}
	for i, want := range []bool{true, false, false} {
		if err := k.write(keptOf(suspected(fmt.Sprint("kvg-", i)))); (err == nil) != want {
			t.Errorf("suspicion %d: %v", i, err)
		}
	}
	both := suspected("kvg-8")
	both.Findings = append(both.Findings, seen("kvg-8").Findings...)
	for _, r := range []*Record{seen("kvg-7"), both} {
		if err := k.write(keptOf(r)); err != nil {
			t.Errorf("a proof: %v", err)
		}
	}
	disk := slow{make(chan struct{})}
	k = NewKeeper(Keeping{Lines: disk, Metrics: m, Log: jsonLogger(io.Discard)})
	for range queued {
		k.Keep(suspected("kvg-1"))
	}
	dropped := testutil.ToFloat64(m.dropped)
	for range queued / 2 {
		k.Keep(seen("kvg-2"))
	}
	if after := testutil.ToFloat64(m.dropped); dropped < queued/2-1 || after != dropped {
		t.Errorf("%v suspicions are dropped, and %v proofs", dropped, after-dropped)
	}
	close(disk.go_)
	k.Close()
}

// slow is a disk that takes nothing until it is told to, and then nothing well.
type slow struct{ go_ chan struct{} }

func (s slow) Write([]byte) (int, error) {
	<-s.go_
	return 0, errors.New("the disk\nis full")
}

// Requests wait for no disk: what cannot be kept is counted and logged.
func TestWhatCannotBeKeptIsCounted(t *testing.T) {
	_, m := newTestMetrics(State{})
	var logged bytes.Buffer
	disk := slow{make(chan struct{})}
	k := NewKeeper(Keeping{Lines: disk, Metrics: m, Log: jsonLogger(&logged)})
	const n = queued + 50
	for range n {
		k.Keep(seen("kvg-1"))
	}
	dropped := testutil.ToFloat64(m.dropped)
	if dropped < 49 || dropped > 50 { // one may be in the writer's hands
		t.Errorf("%v dropped, want 49 or 50", dropped)
	}
	close(disk.go_)
	k.Close()
	if got := testutil.ToFloat64(m.dropped); got != n {
		t.Errorf("%v counted, want %d", got, n)
	}
	if got := strings.Count(logged.String(), "\n"); got != n {
		t.Errorf("%d lines logged, want %d", got, n)
	}
	k.Keep(seen("kvg-late"))
	if got := testutil.ToFloat64(m.dropped); got != n+1 {
		t.Errorf("a finding after the end is not counted: %v", got)
	}
	k.Close() // once more does no harm
}
