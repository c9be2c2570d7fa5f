package guard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/kvcanary/kvcanary/internal/guard/overlap"
	"github.com/kvcanary/kvcanary/internal/receipt"
	"github.com/kvcanary/kvcanary/internal/wholefile"
)

// FindingSchema names the form of a kept finding.
const FindingSchema = "kvcanary.finding/v1"

// kept is what is kept of a request whose answer showed something. Texts of
// prompts and answers are no part of it.
type kept struct {
	Schema   string        `json:"schema"`
	Request  string        `json:"request"`
	Time     time.Time     `json:"time"`
	Tenant   string        `json:"tenant,omitempty"`
	Upstream string        `json:"upstream,omitempty"`
	Dialect  string        `json:"dialect,omitempty"`
	Stream   bool          `json:"stream"`
	Status   int           `json:"status"`
	Code     string        `json:"code,omitempty"`
	Seconds  float64       `json:"seconds"`
	Counted  int           `json:"counted_tokens,omitempty"`
	Limit    int           `json:"limit_tokens,omitempty"`
	Prompt   int           `json:"prompt_tokens,omitempty"`
	Output   int           `json:"output_tokens,omitempty"`
	Findings []keptFinding `json:"findings"`

	suspicion bool // nothing is proved
}

type keptFinding struct {
	Kind    string `json:"kind"`
	Channel string `json:"channel,omitempty"`
	From    string `json:"from_exchange,omitempty"`
	Words   int    `json:"words,omitempty"`
	Explain string `json:"explain,omitempty"`
}

// Keeping is where findings are kept. Any of it may be nil or empty.
type Keeping struct {
	Lines   io.Writer       // takes a line of JSON for each
	Dir     string          // gets a folder for each, with its receipt
	Seal    *receipt.Sealer // seals what is in Dir
	Version string          // of kvcanary, for receipts
	Log     *slog.Logger    // is told what could not be kept; nil for nobody
	Metrics *Metrics        // counts what could not be kept; nil for nobody
}

// Keeper writes findings down beside the requests, which never wait for it: a
// finding that comes while too many wait is counted and logged, and not kept.
// Whether a guard serves does not depend on it either, or whoever can bring
// about findings could take the fence down.
type Keeper struct {
	to    Keeping
	queue chan kept
	done  chan struct{}

	folders   int // that were made; only run touches it
	suspected int // of these, for suspicions

	mu     sync.Mutex
	closed bool
}

// maxFolders bounds the folders of one start: an engine that is broken in each
// answer must not fill the disk with them. Lines go on.
const maxFolders = 10_000

// Suspicions, which a client can bring about, leave room for what is proved:
// half of the queue, and nine of ten folders.
const (
	maxSuspicions    = maxFolders / 10
	queuedSuspicions = queued / 2
)

// suspicions reports whether there is nothing but suspicions among findings.
func suspicions(all []Finding) bool {
	return len(all) > 0 && !slices.ContainsFunc(all, func(f Finding) bool { return f.Kind != overlap.Kind })
}

// queued is how many findings may wait. Sealing takes some milliseconds each.
const queued = 256

// NewKeeper starts a keeper; Close ends it.
func NewKeeper(to Keeping) *Keeper {
	k := &Keeper{to: to, queue: make(chan kept, queued), done: make(chan struct{})}
	go k.run()
	return k
}

// Keep takes what a request showed, if it did. It never blocks.
func (k *Keeper) Keep(r *Record) {
	if k == nil || len(r.Findings) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed && (len(k.queue) < queuedSuspicions || !suspicions(r.Findings)) {
		select {
		case k.queue <- keptOf(r):
			return
		default:
		}
	}
	k.lost(r.ID, errors.New("too many findings at once"))
}

// Close returns when all that was taken is kept.
func (k *Keeper) Close() {
	k.mu.Lock()
	if !k.closed {
		k.closed = true
		close(k.queue)
	}
	k.mu.Unlock()
	<-k.done
}

func (k *Keeper) run() {
	defer close(k.done)
	for f := range k.queue {
		if err := k.write(f); err != nil {
			k.lost(f.Request, err)
		}
	}
}

// write keeps a finding in each place, whatever becomes of the others.
func (k *Keeper) write(f kept) error {
	line, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("write the finding as JSON: %w", err)
	}
	line = append(line, '\n')
	var errs []error
	if k.to.Lines != nil {
		if _, err := k.to.Lines.Write(line); err != nil {
			errs = append(errs, fmt.Errorf("write the line of a finding: %w", err))
		}
	}
	if k.to.Dir != "" {
		errs = append(errs, k.file(f, line))
	}
	return errors.Join(errs...)
}

// file makes the folder of a finding and seals it.
func (k *Keeper) file(f kept, line []byte) error {
	if k.folders == maxFolders {
		return fmt.Errorf("%d findings have folders since the start: no more are made", maxFolders)
	}
	if f.suspicion {
		if k.suspected == maxSuspicions {
			return fmt.Errorf("%d suspicions have folders since the start: no more are made", maxSuspicions)
		}
		k.suspected++
	}
	k.folders++
	dir := filepath.Join(k.to.Dir, f.Time.Format("20060102T150405.000000000Z")+"-"+plainName(f.Request))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make a folder for a finding: %w", err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, line, "", "  "); err != nil {
		panic("kvcanary: internal error: " + err.Error())
	}
	const name = "finding.json"
	if err := wholefile.WriteBytes(filepath.Join(dir, name), 0o600, pretty.Bytes()); err != nil {
		return err
	}
	if k.to.Seal == nil {
		return nil
	}
	var kinds []string
	for _, x := range f.Findings {
		kinds = append(kinds, x.Kind)
	}
	if err := k.to.Seal.Finding(dir, name, receipt.Finding{Guard: k.to.Version, Request: f.Request, Kinds: kinds, Seen: f.Time}); err != nil {
		return fmt.Errorf("seal a finding: %w", err)
	}
	return nil
}

func (k *Keeper) lost(request string, err error) {
	k.to.Metrics.Dropped()
	if k.to.Log != nil {
		k.to.Log.Error("finding not kept", "request", request, "trouble", oneLine(err))
	}
}

func keptOf(r *Record) kept {
	f := kept{
		Schema: FindingSchema, Request: r.ID, Time: r.Start.UTC(), Tenant: r.Tenant, Upstream: r.Upstream, Dialect: r.Dialect, Stream: r.Stream,
		Status: r.Status, Code: r.Code, Seconds: r.Total.Seconds(), Counted: r.CountedTokens, Limit: r.LimitTokens, Prompt: r.PromptTokens, Output: r.OutputTokens,
	}
	f.suspicion = suspicions(r.Findings)
	for _, x := range r.Findings {
		f.Findings = append(f.Findings, keptFinding(x))
	}
	return f
}

// plainName is a name that no file system takes for a path.
func plainName(s string) string {
	b := []byte(s[:min(len(s), 64)])
	for i, c := range b {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			b[i] = '_'
		}
	}
	return string(b)
}

// oneLine is an error for a log line.
func oneLine(err error) string {
	b := []byte(err.Error())
	for i, c := range b {
		if c == '\n' || c == '\r' {
			b[i] = ';'
		}
	}
	return string(b)
}
