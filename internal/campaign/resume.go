package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// Unfinished returns the plan of the run that a directory holds if that run
// was stopped before its end, by a signal, its time limit, a full disk or a
// crash: [Run] goes on with it if Config.Resume is set. It returns nil for a
// directory that is not there or empty, and an error that wraps [ErrConfig]
// for one that a run can neither begin in nor go on in.
func Unfinished(dir string) (*Record, error) {
	if blank, err := isBlank(dir); blank || err != nil {
		return nil, err
	}
	p, err := readPast(dir)
	if err != nil {
		return nil, err
	}
	return &p.plan, nil
}

// past is what an interrupted run has left behind.
type past struct {
	dir  string
	plan Record
	done map[int]*kept // exchanges that came to their end, by seq
}

// readPast reads the directory of an interrupted run.
func readPast(dir string) (*past, error) {
	if _, err := os.Stat(filepath.Join(dir, planFile)); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: run directory %s is not empty and holds no run: name a new one", ErrConfig, dir)
	}
	l, err := Load(dir)
	if err != nil {
		return nil, err
	}
	if l.Result != nil && !l.Result.Resumable {
		return nil, fmt.Errorf("%w: run directory %s is not empty: its run has ended; name a new one", ErrConfig, dir)
	}
	p := &past{dir: dir, plan: l.Plan, done: map[int]*kept{}}
	for i := range l.kept {
		if k := &l.kept[i]; k.ended() {
			p.done[k.Seq] = k
		}
	}
	return p, nil
}

// ended reports whether an exchange came to an end of its own: one that was
// stopped has to be made again.
func (k *kept) ended() bool {
	a := k.Answer
	return a != nil && (k.Left || a.Failure == nil || a.Failure.Kind != wire.FailedCanceled)
}

// fits says in what a plan differs from the one that is to go on, wrapping
// [ErrConfig]; nil if in nothing that matters. Concurrency and time may differ.
func (p *past) fits(now Record) error {
	was := p.plan
	budget := func(r Record) Budget { r.Budget.Time = 0; return r.Budget }
	for _, c := range []struct {
		what     string
		was, now any
	}{
		{"version", was.Version, now.Version},
		{"base URL", was.Target.BaseURL, now.Target.BaseURL},
		{"model", was.Target.Model, now.Target.Model},
		{"dialect", was.Target.Dialect, now.Target.Dialect},
		{"canary key", was.KeyID, now.KeyID},
		{"seed", was.Seed, now.Seed},
		{"protocols", strings.Join(was.Protocols, ", "), strings.Join(now.Protocols, ", ")},
		{"tenants", strings.Join(was.Tenants, ", "), strings.Join(now.Tenants, ", ")},
		{"token budget", budget(was).Tokens, budget(now).Tokens},
		{"request budget", budget(was).Requests, budget(now).Requests},
		{"facts", was.Facts, now.Facts},
		{"oracles", was.Oracles, now.Oracles},
	} {
		if !reflect.DeepEqual(c.was, c.now) {
			return fmt.Errorf("%w: the interrupted run was made with %s %v, this one has %v: give it the same, or name a new directory", ErrConfig, c.what, c.was, c.now)
		}
	}
	return nil
}

// differs names a field in which an exchange that is ready to be sent differs
// from one that was made, "" if there is none.
func differs(ready, made *wire.Exchange) string {
	plan := func(e wire.Exchange) map[string]json.RawMessage {
		e.Answer, e.Left = nil, false
		b, err := json.Marshal(e)
		out := map[string]json.RawMessage{}
		if err = errors.Join(err, json.Unmarshal(b, &out)); err != nil {
			panic("kvcanary: internal error: " + err.Error())
		}
		return out
	}
	a, b := plan(*ready), plan(*made)
	var names []string
	for name := range a {
		names = append(names, name)
	}
	for name := range b {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if string(a[name]) != string(b[name]) {
			return name
		}
	}
	return ""
}

// countLog passes questions on to the target's tokenizer and notes what it
// said, -1 for nothing. Questions that were asked in an earlier sitting are
// answered from memory.
type countLog struct {
	Client
	known, said []int
}

// CountTokens implements Client.
func (l *countLog) CountTokens(ctx context.Context, key, model string, messages []wire.Message) (int, bool, error) {
	if n := len(l.said); n < len(l.known) {
		l.said = append(l.said, l.known[n])
		return l.known[n], l.known[n] >= 0, nil
	}
	n, ok, err := l.Client.CountTokens(ctx, key, model, messages)
	if ok && err == nil && n > 0 {
		l.said = append(l.said, n)
	} else {
		l.said = append(l.said, -1)
	}
	return n, ok, err
}
