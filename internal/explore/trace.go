package explore

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// TraceReport is what a trace shows.
type TraceReport struct {
	Lines    int `json:"lines"`
	Steps    int `json:"steps"`
	Requests int `json:"requests"`
	Answers  int `json:"answers"`
	Refusals int `json:"refusals"`
	Cancels  int `json:"cancels"`
	Restarts int `json:"restarts"` // of nodes
	Engines  int `json:"engines"`  // runs, one after the other
	// Faults are those that the engines say they were started with.
	Faults handoff.Faults `json:"faults,omitzero"`
}

// CheckTrace checks that what a live engine wrote down is a behaviour of the
// machines: each of them, given its events again, does the same; what it
// receives was sent to it and comes in order; what its node tells it, it was
// asked for. Along the way the invariants are looked at, and at the end that
// each request has ended and the engine was closed, so that a trace which is
// empty or cut fails. The error names the line.
func CheckTrace(r io.Reader) (TraceReport, error) {
	stop, used := make(chan struct{}), make(chan lineBatch, 8)
	defer close(stop)
	c := &checker{}
	for b := range readLines(r, stop, used) {
		for i := range b.lines {
			c.report.Lines++
			if err := c.line(&b.lines[i]); err != nil {
				return c.report, fmt.Errorf("line %d: %w", c.report.Lines, err)
			}
		}
		if b.err != nil {
			return c.report, b.err
		}
		select {
		case used <- b:
		default:
		}
	}
	if c.report.Steps == 0 {
		return c.report, errors.New("the trace is empty")
	}
	return c.report, c.end()
}

// checker follows one engine.
type checker struct {
	report  TraceReport
	cfg     handoff.Config
	router  *handoff.Router
	prefill *handoff.Prefill
	decode  *handoff.Decode
	posts   [8][8][2]post // by sender, receiver, and whether it is for pages
	clients map[handoff.Room]*customer
	lost    map[handoff.Reason]bool // as the router knows
	source  source
	pages   holding
	buf     []byte
	ends    []int
	arena   []byte
}

// customer is a client who waits for an answer.
type customer struct {
	req    int
	tokens int // of the prompt
	got    int // tokens of the answer
}

func (c *checker) begin(cfg handoff.Config) error {
	if c.router != nil {
		if err := c.end(); err != nil {
			return fmt.Errorf("another engine begins: %w", err)
		}
	}
	if err := cfg.Validate(); err != nil {
		return err
	}
	if cfg.DecodePages > 1<<24 || cfg.PrefillPages > 1<<24 {
		return errors.New("pools of more than 2^24 pages")
	}
	report := c.report
	*c = checker{
		report: report, cfg: cfg, router: handoff.NewRouter(cfg),
		clients: map[handoff.Room]*customer{}, lost: map[handoff.Reason]bool{},
	}
	c.report.Engines++
	c.report.Faults |= cfg.Switches.Faults
	return nil
}

func (c *checker) post(from, to handoff.Role, k handoff.Kind) *post {
	return &c.posts[from][to][pagesApart(k)]
}

// lose takes note that a receiver has lost its link from a sender.
func (c *checker) lose(from, to handoff.Role) {
	c.post(from, to, handoff.None).lost = true
	c.post(from, to, handoff.Page).lost = true
}

// line takes the next line.
func (c *checker) line(l *line) error {
	switch {
	case l.config != nil:
		return c.begin(*l.config)
	case c.router == nil:
		return errors.New("the trace does not begin with an engine's configuration")
	case l.start:
		return c.start(l.by)
	case !l.has:
		return errors.New("a record of nothing")
	}
	c.report.Steps++
	req, err := c.allowed(l)
	if err != nil {
		return err
	}
	actions, err := c.step(l)
	if err != nil {
		return err
	}
	if err := c.compare(l, actions); err != nil {
		return err
	}
	switch l.by {
	case handoff.ToPrefill:
		return c.prefillDid(l, actions, req)
	case handoff.ToDecode:
		return c.decodeDid(l, actions, req)
	}
	return c.routerDid(l, actions, req)
}

// start takes note of a new process, which knows nothing.
func (c *checker) start(by handoff.Role) error {
	switch by {
	case handoff.ToPrefill:
		if c.prefill != nil {
			c.report.Restarts++
		}
		c.prefill = handoff.NewPrefill(c.cfg)
		c.source.restart()
	case handoff.ToDecode:
		if c.decode != nil {
			c.report.Restarts++
			c.source.decodeStarts()
		}
		c.decode = handoff.NewDecode(c.cfg)
		c.pages = newHolding(c.cfg)
	default:
		return fmt.Errorf("%v cannot start anew", by)
	}
	for _, from := range []handoff.Role{handoff.ToRouter, handoff.ToPrefill, handoff.ToDecode} {
		c.lose(from, by)
	}
	return nil
}

// step has the machine do its step.
func (c *checker) step(l *line) (actions []handoff.Action, err error) {
	defer func() {
		if said := recover(); said != nil {
			err = fmt.Errorf("%v: %v", Books, said)
		}
	}()
	switch {
	case l.by == handoff.ToRouter:
		return c.router.Step(l.in), nil
	case l.by == handoff.ToPrefill && c.prefill != nil:
		return c.prefill.Step(l.in), nil
	case l.by == handoff.ToDecode && c.decode != nil:
		return c.decode.Step(l.in), nil
	}
	return nil, fmt.Errorf("a step of %v, which has not started", l.by)
}

// compare holds what the machine does against what the trace says.
func (c *checker) compare(l *line, actions []handoff.Action) error {
	c.buf, c.ends = c.buf[:0], c.ends[:0]
	for i := range actions {
		sep := byte(',')
		if i == 0 {
			sep = '['
		}
		c.buf = append(append(append(append(c.buf, sep), `{"to_role":"`...), actions[i].To.String()...), `",`...)
		from := len(c.buf)
		c.buf = appendJSON(c.buf, &actions[i].Event)
		c.ends = append(c.ends, from, len(c.buf))
		c.buf = append(c.buf, '}')
	}
	if len(actions) > 0 {
		c.buf = append(c.buf, ']')
	}
	if bytes.Equal(c.buf, l.out) {
		return nil
	}
	slow, err := slowLine(l.text) // it may be written in another way
	if err != nil {
		return err
	}
	if !bytes.Equal(c.buf, slow.out) {
		return fmt.Errorf("%v given %v does %s, and the trace says %s", l.by, l.in, c.buf, l.out)
	}
	return nil
}

// text is action i as it was written, to keep.
func (c *checker) text(i int) []byte {
	t := c.buf[c.ends[2*i]:c.ends[2*i+1]]
	if cap(c.arena)-len(c.arena) < len(t) {
		c.arena = make([]byte, 0, max(1<<16, len(t)))
	}
	from := len(c.arena)
	c.arena = append(c.arena, t...)
	return c.arena[from:len(c.arena):len(c.arena)]
}

func (c *checker) send(from handoff.Role, i int, a *handoff.Action, req int) {
	c.post(from, a.To, a.Kind).send(mail{text: c.text(i), kind: a.Kind, room: a.Room, req: req})
}

// end looks at the engine when its trace is over.
func (c *checker) end() error {
	ended := c.lost[handoff.Closing] || c.lost[handoff.PrefillGone] || c.lost[handoff.DecodeGone]
	switch {
	case len(c.clients) > 0:
		return fmt.Errorf("%v: %d requests have neither an answer nor an error when the trace ends", I5, len(c.clients))
	case !ended:
		return errors.New("the trace is cut: its engine had not ended; end it (Ctrl-C) before its trace is checked")
	case c.quiet() && (c.prefill.Pool().Used() > 0 || c.decode.Pool().Used() > 0):
		return fmt.Errorf("%v: nothing more happens, and %d pages of prefill and %d of decode are not free", I8,
			c.prefill.Pool().Used(), c.decode.Pool().Used())
	}
	return nil
}

// quiet reports whether both nodes have taken all that was sent to them, and
// nothing is under way.
func (c *checker) quiet() bool {
	for from := range c.posts {
		for to := range c.posts[from] {
			for _, p := range c.posts[from][to] {
				if len(p.mail) > 0 {
					return false
				}
			}
		}
	}
	return c.prefill != nil && c.decode != nil && c.source.idle() && len(c.pages.work) == 0
}
