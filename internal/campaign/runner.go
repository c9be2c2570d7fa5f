package campaign

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// runner is a campaign under way. All its fields belong to the goroutine that
// runs the campaign, but for those under mu and what says that it is safe.
type runner struct {
	cfg      Config
	coder    *canary.Coder
	id       int // run part of the canary ids
	controls []canary.ID
	budget   *budget
	holds    holds
	fit      *fitter
	redact   *redactor
	dir      *runDir // nil if nothing is kept
	past     *past   // nil if the run begins anew
	silent   int     // requests in a row that got not one byte
	broken   error   // why an interrupted run cannot go on
	cut      bool    // the run was stopped before its end
	// do makes one exchange that is ready to go; a dry run puts its own here.
	do func(ctx context.Context, e *wire.Exchange, r wire.Request) *wire.Answer

	all       []wire.Exchange
	made      map[int]made   // how the prompts of served exchanges were made, by seq
	prompts   map[int]prompt // of the protocol under way, by seq
	overdrawn string         // which budget an exchange did not fit into, "" while all do
	found     probe.Found
	tests     []test
	room      room             // what answers need
	rest      map[string]price // what the protocols behind each need, as far as it was asked for
	usable    bool             // the target has answered or refused something as an API does
	result    *Result

	mu       sync.Mutex
	progress Progress
}

var errMaxTime = errors.New("time limit")

func newRunner(cfg Config) *runner {
	id := int(hash(cfg.Seed, "run") >> (64 - 13))
	coder := canary.New(cfg.Key)
	r := &runner{
		cfg:    cfg,
		coder:  coder,
		id:     id,
		budget: &budget{limit: cfg.Budget, spent: cfg.Before.Tokens, requests: cfg.Before.Requests},
		fit:    newFitter(cfg.Client, coder, cfg.Target.Model),
		redact: newRedactor(cfg.Tenants),
		made:   map[int]made{},
		result: &Result{
			Schema: Schema, Target: cfg.Target, Seed: cfg.Seed, Run: id, KeyID: cfg.Key.ID(),
			Started: cfg.Now(), Version: cfg.Version, Choices: cfg.Choices,
			Protocols: []ProtocolResult{}, Findings: []oracle.Finding{},
		},
		progress: Progress{BudgetTokens: cfg.Budget.Tokens, BudgetCalls: cfg.Budget.Requests},
	}
	for i := range controlIDs {
		r.controls = append(r.controls, canary.MakeID(id, 0, seqSpace-1-i))
	}
	r.result.Controls.NeverSent = len(r.controls)
	r.do = func(ctx context.Context, _ *wire.Exchange, q wire.Request) *wire.Answer { return cfg.Client.Do(ctx, q) }
	return r
}

// hash derives the numbers of a run from its seed, one for each use.
func hash(seed uint64, use string) uint64 {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("kvcanary campaign "+use+" "), seed))
	return binary.BigEndian.Uint64(sum[:])
}

// record is the plan as it is kept.
func (r *runner) record() Record {
	c := r.cfg
	out := Record{
		Schema: PlanSchema, Target: c.Target, Facts: c.Facts, Budget: c.Budget, Before: c.Before, Choices: c.Choices, Concurrency: c.Concurrency,
		Seed: c.Seed, Run: r.id, KeyID: c.Key.ID(), Started: r.result.Started, Version: c.Version,
	}
	for _, t := range c.Tenants {
		out.Tenants = append(out.Tenants, t.Name)
	}
	for _, p := range c.Protocols {
		out.Protocols = append(out.Protocols, p.Name)
	}
	for _, o := range c.Oracles {
		out.Oracles = append(out.Oracles, o.Name)
	}
	for _, id := range r.controls {
		out.Controls = append(out.Controls, uint64(id))
	}
	return out
}

// run makes all protocols one after the other and fills in the result.
func (r *runner) run(ctx context.Context) *TargetError {
	if t := r.cfg.Budget.Time; t > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, t-r.cfg.Before.Time, errMaxTime)
		defer cancel()
	}
	var targetErr *TargetError
	for _, p := range r.cfg.Protocols {
		if targetErr = r.protocol(ctx, p); targetErr != nil {
			break
		}
		if r.dir != nil {
			r.dir.sync()
		}
	}
	r.finish(ctx)
	return targetErr
}

// protocol makes one protocol and judges it.
func (r *runner) protocol(ctx context.Context, p probe.Protocol) *TargetError {
	began := r.cfg.Now()
	r.progress.Protocol = p.Name
	r.prompts = map[int]prompt{}
	plan := p.Start(r.env(p.Name))
	from := len(r.all)
	var targetErr *TargetError
	var done []wire.Exchange
	why := r.stopped(ctx)
	for why == "" {
		sends := plan.Next(done)
		if len(sends) == 0 {
			break
		}
		if sends[0].Spare && !r.spares(p.Name, sends) {
			done, why = nil, r.stopped(ctx)
			continue
		}
		done, why = r.batch(ctx, p.Name, sends)
		if targetErr = r.unusable(done); targetErr != nil {
			why = targetErr.Reason
		}
		if why != "" {
			// The plan is told what came back, so that it knows what is missing.
			plan.Next(done)
		}
	}
	if l, ok := plan.(probe.Limiter); ok {
		r.learnLimits(l.Found())
	}
	r.cut = r.cut || why != "" && why == r.stopped(ctx)
	if why == "" {
		why = plan.Missing()
	}
	r.soFar()
	out := r.judge(ctx, p.Name, from, why)
	r.cut = r.cut || out.Verdict == Inconclusive && r.stopped(ctx) != "" // while it was judged
	out.Seconds = max(0, r.cfg.Now().Sub(began).Seconds())
	r.result.Protocols = append(r.result.Protocols, out)
	r.progress.Findings = len(r.result.Findings)
	return targetErr
}

// soFar writes the result as it stands before a protocol is judged: looking
// through hostile answers may take long, and a killed run shall not lose what
// it had found.
func (r *runner) soFar() {
	if r.dir == nil {
		return
	}
	res := *r.result
	res.Verdict, res.Reason, res.Resumable = Inconclusive, "not at its end", true
	for _, p := range res.Protocols {
		res.Verdict = res.Verdict.worse(p.Verdict)
	}
	res.Limits = r.limits()
	_, res.Spent.Requests = r.budget.used()
	res.Ended = r.ended()
	if err := r.dir.writeResult(&res); err != nil {
		r.dir.fail(err)
	}
}

// learnLimits takes over what a protocol has measured; what it did not measure
// stays as an earlier one has.
func (r *runner) learnLimits(f probe.Found) {
	if f.AcceptedMax > 0 {
		r.found.AcceptedMax = f.AcceptedMax
	}
	if f.RejectedMin > 0 {
		r.found.RejectedMin, r.found.Estimated = f.RejectedMin, f.Estimated
	}
}

func (r *runner) env(protocol string) probe.Env {
	f := r.cfg.Facts
	env := probe.Env{
		Context: f.Context, Pool: f.Pool, PageSize: f.PageSize,
		Found: r.found, Tenants: len(r.cfg.Tenants),
		Seed: hash(r.cfg.Seed, "protocol "+protocol), MaxAnswer: f.MaxAnswer, Pairs: f.Pairs, Adapters: f.Adapters,
	}
	if left := r.budget.left(); left > 0 {
		env.MaxPrompt = max(1, int(float64(left-f.MaxAnswer-slackTokens)/(1+estimateSlack)))
	}
	return env
}

// stopped says why nothing more may be sent, "" if it may.
func (r *runner) stopped(ctx context.Context) string {
	if ctx.Err() != nil {
		if context.Cause(ctx) == errMaxTime {
			return fmt.Sprintf("time limit of %v reached", r.cfg.Budget.Time)
		}
		return "interrupted"
	}
	if r.broken != nil {
		return r.broken.Error()
	}
	return r.unkept()
}

// unkept says what could not be kept in the run directory, "" if all could.
func (r *runner) unkept() string {
	if r.dir == nil || r.dir.failed() == nil {
		return ""
	}
	return r.dir.failed().Error()
}

// unusable looks for the reason why a target that has not yet done anything
// as an API does cannot be used at all.
func (r *runner) unusable(done []wire.Exchange) *TargetError {
	var first *TargetError
	for i := range done {
		reason, api := unusable(done[i].Answer)
		r.usable = r.usable || api
		if reason != "" && first == nil {
			first = &TargetError{Reason: reason}
		}
	}
	if r.usable {
		return nil
	}
	return first
}

// unusable says why an answer shows a target that nobody can use, or whether
// it shows a working API.
func unusable(a *wire.Answer) (reason string, api bool) {
	if f := a.Failure; f != nil {
		switch f.Kind {
		case wire.FailedConnect, wire.FailedTLS, wire.FailedNotAPI:
			return f.Message, false
		}
		return "", false
	}
	if f := a.Refusal; f != nil {
		switch f.Kind {
		case wire.RefusedAuth:
			return fmt.Sprintf("the target let nobody in (HTTP %d): check the key; it says: %s", f.Status, f.Message), false
		case wire.RefusedModel:
			return fmt.Sprintf("the target has no such model or path (HTTP %d): check the model, the base URL (most end in /v1) and the dialect; it says: %s", f.Status, f.Message), false
		case wire.RefusedOther, wire.RefusedParameter:
			return fmt.Sprintf("the target refuses every request (HTTP %d): check the base URL and the model; it says: %s", f.Status, f.Message), false
		case wire.RefusedServer:
			return "", false
		}
	}
	return "", true
}

// finish fills in what is known only at the end.
func (r *runner) finish(ctx context.Context) {
	res := r.result
	r.settle()
	res.Verdict = Clean
	for _, p := range res.Protocols {
		res.Verdict = res.Verdict.worse(p.Verdict)
	}
	if len(res.Protocols) < len(r.cfg.Protocols) {
		res.Verdict = res.Verdict.worse(Inconclusive)
	}
	leftOut := r.cfg.leftOut()
	if leftOut != "" {
		res.Verdict = res.Verdict.worse(Inconclusive)
	}
	if why := r.stopped(ctx); why != "" && res.Verdict != Clean {
		res.Reason = why
	}
	for _, p := range res.Protocols {
		if res.Verdict == Inconclusive && res.Reason == "" && p.Verdict == Inconclusive {
			res.Reason = p.Name + ": " + p.Reason
		}
	}
	if res.Verdict == Inconclusive && res.Reason == "" {
		res.Reason = leftOut
	}
	if n := res.Controls.NeverSentHits; n > 0 {
		res.Verdict = Inconclusive
		res.Reason = controlsReason(n)
	}
	res.Limits = r.limits()
	res.Diagnosis = r.diagnosis()
	_, res.Spent.Requests = r.budget.used()
	res.Resumable = r.cut && r.dir != nil
	res.Ended = r.ended()
}

// ended is the time, as it is long after the start; not what the clock on the
// wall says, which may have been set meanwhile.
func (r *runner) ended() time.Time {
	return r.result.Started.Add(max(0, r.cfg.Now().Sub(r.result.Started)))
}
