// Package witness asks witnesses to cosign the log of receipts: somebody else
// who sees every checkpoint and that the log only grows, so that there cannot be
// two logs of one name without it being seen (c2sp.org/tlog-witness).
package witness

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kvcanary/kvcanary/internal/receipt"
)

// Patience is how long one witness may take for a cosignature. A run waits for
// it twice, before its first request and after its last.
const Patience = 5 * time.Second

// clockSlack is how far a witness's clock may be from ours.
const clockSlack = 5 * time.Minute

// maxAnswer bounds what is read of a witness's answer, bytes.
const maxAnswer = 64 << 10

// Client asks the witnesses of a policy that have an address.
type Client struct {
	HTTP     *http.Client // must not follow redirects: a checkpoint goes where the policy says
	Policy   *receipt.Policy
	Patience time.Duration
	Now      func() time.Time
}

// Outcome is what came of asking one witness.
type Outcome struct {
	Witness string // its key's name
	Err     error  // nil if it has cosigned
}

// Errors of witnesses that mean more than that there is no cosignature.
var (
	// ErrFork means that a witness has seen another log than the one here.
	ErrFork = errors.New("it has seen another log of this name than the one here")
	// ErrCut means that a witness has seen more of the log than is here.
	ErrCut = errors.New("entries of the log were lost, or an old copy of it was put back")
)

// Cosign asks all witnesses at once to cosign the log as it is, keeps in the log
// what they signed, and returns the log's checkpoint with it. The error says
// that the policy's quorum was not reached, or that the log cannot be read.
func (c *Client) Cosign(ctx context.Context, log *receipt.Log) (*receipt.Checkpoint, []Outcome, error) {
	if err := c.Policy.For(log.Key()); err != nil {
		return nil, nil, err
	}
	for attempt := 0; ; attempt++ {
		now, err := log.Checkpoint(c.Policy)
		if err != nil {
			return nil, nil, err
		}
		if now == nil || now.Tree.N == 0 {
			return nil, nil, errors.New("the log is empty: there is nothing to cosign")
		}
		answers := make([]answer, len(c.Policy.Witnesses))
		var wg sync.WaitGroup
		for i, w := range c.Policy.Witnesses {
			if line, ok := now.Has(w.Key); ok {
				answers[i] = answer{line: line}
			} else if w.URL != "" {
				wg.Go(func() { answers[i] = c.ask(ctx, log, now.Bare(), w) })
			}
		}
		wg.Wait()
		checkpoint, out, err := c.gather(log, now.Bare(), answers)
		if err == nil && attempt < mostAttempts && outrun(log, checkpoint, out) {
			continue
		}
		if err == nil {
			err = c.judge(checkpoint, out)
		}
		return checkpoint, out, err
	}
}

// judge is an error if a witness has shown that the log is not what it was, or
// if too few have cosigned.
func (c *Client) judge(checkpoint *receipt.Checkpoint, all []Outcome) error {
	for _, o := range all {
		if errors.Is(o.Err, ErrFork) || errors.Is(o.Err, ErrCut) {
			return fmt.Errorf("witness %q: %w", o.Witness, o.Err)
		}
	}
	return c.Policy.Met(checkpoint.Cosigned)
}

// mostAttempts is how often witnesses are asked again because others, who write
// to the same log, were faster.
const mostAttempts = 3

// errOutrun means that a witness has seen a newer checkpoint than the one that
// it was asked to cosign, as others may have shown it meanwhile.
var errOutrun = errors.New("the log has grown meanwhile, and it has seen more of it")

// outrun reports whether a witness was shown more of the log by somebody else.
func outrun(log *receipt.Log, c *receipt.Checkpoint, all []Outcome) bool {
	for _, o := range all {
		if errors.Is(o.Err, errOutrun) {
			tree, err := log.Tree()
			return err == nil && tree.N > c.Tree.N
		}
	}
	return false
}

// answer is what a witness has signed, or why it has not; neither of one that
// was not asked.
type answer struct {
	line string
	err  error
}

// gather adds what witnesses have signed to the checkpoint, and keeps it.
func (c *Client) gather(log *receipt.Log, checkpoint *receipt.Checkpoint, answers []answer) (*receipt.Checkpoint, []Outcome, error) {
	var out []Outcome
	for i, w := range c.Policy.Witnesses {
		a := answers[i]
		if a.line == "" && a.err == nil {
			continue
		}
		out = append(out, Outcome{w.Key.Name(), a.err})
		if a.err != nil {
			continue
		}
		with, err := checkpoint.With(w.Key, a.line)
		if err == nil {
			err = log.Keep(checkpoint, w.Key, a.line)
		}
		if err != nil {
			return checkpoint, out, err
		}
		checkpoint = with
	}
	return checkpoint, out, nil
}

// ask asks one witness, from what it is known to have seen on. A witness that
// has seen something else says so, and is asked again from there.
func (c *Client) ask(ctx context.Context, log *receipt.Log, checkpoint *receipt.Checkpoint, w receipt.PolicyWitness) answer {
	ctx, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	var old int64
	if seen, err := log.Seen(w.Key); err == nil && seen != nil && seen.Tree.N <= checkpoint.Tree.N {
		old = seen.Tree.N
	}
	// Others who write to the log have it cosigned meanwhile, so that a witness may
	// have seen more each time; what has seen less again and again is none.
	for less := 0; less < 3; {
		line, size, err := c.post(ctx, log, checkpoint, w, old)
		if !errors.Is(err, errSize) {
			return answer{line, err}
		}
		switch {
		case size == old && size == checkpoint.Tree.N:
			return answer{err: ErrFork}
		case size == old:
			return answer{err: errors.New("it contradicts itself about what it has seen")}
		case size > checkpoint.Tree.N:
			if tree, err := log.Tree(); err == nil && tree.N >= size {
				return answer{err: errOutrun}
			}
			return answer{err: fmt.Errorf("it has seen %d entries and the log here has %d: %w", size, checkpoint.Tree.N, ErrCut)}
		}
		if size < old {
			less++
		}
		old = size
	}
	return answer{err: errors.New("it says another size each time")}
}

// errSize means that a witness has seen another size than was assumed.
var errSize = errors.New("another size")

// post makes one request. With errSize size is what the witness has seen.
func (c *Client) post(ctx context.Context, log *receipt.Log, checkpoint *receipt.Checkpoint, w receipt.PolicyWitness, old int64) (line string, size int64, err error) {
	proof, err := log.Proof(checkpoint, old)
	if err != nil {
		return "", 0, err
	}
	var body bytes.Buffer
	fmt.Fprintf(&body, "old %d\n", old)
	for _, h := range proof {
		fmt.Fprintln(&body, base64.StdEncoding.EncodeToString(h[:]))
	}
	body.WriteByte('\n')
	body.Write(checkpoint.Signed())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(w.URL, "/")+"/add-checkpoint", &body)
	if err != nil {
		return "", 0, errors.New("its address is malformed")
	}
	r.Header.Set("Content-Type", "text/plain; charset=utf-8")
	a, err := c.HTTP.Do(r)
	if err != nil {
		return "", 0, fmt.Errorf("it cannot be reached: %w", bare(err))
	}
	defer a.Body.Close()
	p, err := io.ReadAll(io.LimitReader(a.Body, maxAnswer+1))
	if err != nil {
		return "", 0, fmt.Errorf("its answer broke off: %w", bare(err))
	}
	if len(p) > maxAnswer {
		return "", 0, fmt.Errorf("its answer is longer than %d bytes", maxAnswer)
	}
	return c.read(a.StatusCode, string(p), checkpoint, w.Key)
}

// read turns an answer into a signature line, or into what it means that there
// is none. What else a witness writes is never shown.
func (c *Client) read(status int, body string, checkpoint *receipt.Checkpoint, w *receipt.Witness) (string, int64, error) {
	switch status {
	case http.StatusOK:
		line, err := c.find(body, checkpoint, w)
		return line, 0, err
	case http.StatusConflict:
		size, err := strconv.ParseInt(strings.TrimSuffix(body, "\n"), 10, 64)
		if err != nil || size < 0 {
			return "", 0, ErrFork // the sizes are the same, and the roots are not
		}
		return "", size, errSize
	case http.StatusUnprocessableEntity:
		return "", 0, ErrFork
	case http.StatusNotFound:
		return "", 0, errors.New("it does not know this log (HTTP 404): give its operator the log's public key")
	case http.StatusForbidden:
		return "", 0, errors.New("it knows this log by another key (HTTP 403): give its operator the log's public key")
	}
	return "", 0, fmt.Errorf("it answered HTTP %d", status)
}

// find is the line of a witness's answer that is its cosignature. Lines of
// other keys are left alone.
func (c *Client) find(body string, checkpoint *receipt.Checkpoint, w *receipt.Witness) (string, error) {
	last := errors.New("what it answered is no cosignature with the key that is known of it")
	for line := range strings.Lines(body) {
		with, err := checkpoint.With(w, line)
		if err != nil {
			continue
		}
		at := with.Cosigned[len(with.Cosigned)-1].Time
		if off := at.Sub(c.Now()); off.Abs() > clockSlack {
			last = fmt.Errorf("it says that it is %s, and the clock here is more than %v apart: one is wrong, or it has answered with an old cosignature", at.Format(time.RFC3339), clockSlack)
			continue
		}
		return line, nil
	}
	return "", last
}

// bare is what went wrong, without the address again.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		if u.Timeout() {
			return errors.New("no answer in time")
		}
		return u.Err
	}
	return err
}
