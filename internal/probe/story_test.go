package probe_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// TestStories replays each protocol against scripted targets and compares the
// exchanges that it makes, in order. The files are read as stories; after a
// change that is meant, run with -rewrite and review the difference.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "run": // Example: run boundary limit=10633 over=refuse pool=10640
				return runStory(t, d)
			case "prompt": // Example: prompt tokens=640
				return promptStory(t, d)
			}
			t.Fatalf("no such command: %s", d.Cmd)
			return ""
		})
	})
}

func named(t *testing.T, name string) probe.Protocol {
	t.Helper()
	for _, p := range probe.All() {
		if p.Name == name {
			return p
		}
	}
	switch name {
	case "classic":
		return probe.Classic()
	case "secret":
		return probe.SecretStraddle()
	}
	t.Fatalf("no such protocol: %s", name)
	return probe.Protocol{}
}

func runStory(t *testing.T, d *datadriven.TestData) string {
	target := newTarget()
	env := probe.Env{Tenants: 2, Seed: 1, MaxAnswer: 192}
	for _, arg := range d.CmdArgs[1:] {
		switch arg.Key {
		case "limit":
			arg.Scan(t, 0, &target.limit)
		case "over":
			arg.Scan(t, 0, &target.over)
		case "usage":
			arg.Scan(t, 0, &target.usage)
		case "mute":
			target.mute = true
		case "deaf":
			target.deaf = true
		case "adapters":
			env.Adapters = arg.Vals
		case "extras":
			target.extras = true
		case "estimated":
			target.counts = false
		case "blur":
			arg.Scan(t, 0, &target.blur)
		case "failing":
			target.failing = map[int]bool{}
			for _, v := range arg.Vals {
				var n int
				if _, err := fmt.Sscan(v, &n); err != nil {
					t.Fatal(err)
				}
				target.failing[n] = true
			}
		case "context":
			arg.Scan(t, 0, &env.Context)
		case "pool":
			arg.Scan(t, 0, &env.Pool)
		case "page":
			arg.Scan(t, 0, &env.PageSize)
		case "accepted":
			arg.Scan(t, 0, &env.Found.AcceptedMax)
		case "tenants":
			arg.Scan(t, 0, &env.Tenants)
		case "seed":
			arg.Scan(t, 0, &env.Seed)
		case "budget":
			arg.Scan(t, 0, &env.MaxPrompt)
		case "pairs":
			arg.Scan(t, 0, &env.Pairs)
		default:
			t.Fatalf("no such argument: %s", arg.Key)
		}
	}
	plan := target.drive(named(t, d.CmdArgs[0].Key), env)
	return tell(target, plan)
}

// tell prints what was sent and what came of it.
func tell(target *target, plan probe.Plan) string {
	var b strings.Builder
	tokens := 0
	for i := range target.sent {
		e := &target.sent[i]
		tokens += e.SentTokens
		fmt.Fprintf(&b, "%-2d %-9s %-18s %s %6d", e.Seq, e.Purpose, e.Label, e.Tenant, e.SentTokens)
		if e.Limit > 0 {
			fmt.Fprintf(&b, " (limit %d)", e.Limit)
		}
		if e.Arm != "" {
			fmt.Fprintf(&b, " [%d %s]", e.Group, e.Arm)
		}
		if len(e.Holds) > 0 {
			fmt.Fprintf(&b, " after %v", e.Holds)
		}
		fmt.Fprintf(&b, " %s/%d: %s\n", e.Tail, e.Asked, outcome(e))
	}
	fmt.Fprintf(&b, "%d exchanges, %d tokens\n", len(target.sent), tokens)
	if l, ok := plan.(probe.Limiter); ok {
		f := l.Found()
		fmt.Fprintf(&b, "found {AcceptedMax:%d RejectedMin:%d}", f.AcceptedMax, f.RejectedMin)
		if f.Estimated {
			b.WriteString(", estimated")
		}
		b.WriteString("\n")
	}
	if m := plan.Missing(); m != "" {
		fmt.Fprintf(&b, "missing: %s\n", m)
	}
	return b.String()
}

func outcome(e *wire.Exchange) string {
	a := e.Answer
	switch {
	case a.Failure != nil:
		return string(a.Failure.Kind)
	case a.Refusal != nil:
		s := "refused, " + string(a.Refusal.Kind)
		if a.Refusal.Limit > 0 {
			s += fmt.Sprintf(" %d", a.Refusal.Limit)
		}
		return s
	}
	s := "served"
	if a.Usage != nil {
		s += fmt.Sprintf(" %d", a.Usage.Prompt)
	}
	if e.EchoLost() {
		s += ", no echo"
	}
	return s
}

// promptStory prints a filled prompt with its filler left out.
func promptStory(t *testing.T, d *datadriven.TestData) string {
	tokens := 0
	d.ScanArgs(t, "tokens", &tokens)
	env := probe.Env{Tenants: 1, MaxAnswer: 192, Pairs: 1, Context: tokens + 208}
	target := newTarget()
	target.drive(probe.Straddle(), env)
	var b strings.Builder
	for _, s := range target.sends {
		if s.Purpose == wire.Under {
			writePrompt(&b, s)
		}
	}
	return b.String()
}

func writePrompt(b *strings.Builder, s probe.Send) {
	for _, turn := range s.Turns {
		fmt.Fprintf(b, "[%s] ", turn.Role)
		for _, p := range turn.Parts {
			switch p.Kind {
			case probe.Literal:
				b.WriteString(strings.ReplaceAll(p.Text, "\n", "\n    "))
			case probe.Filler:
				fmt.Fprintf(b, "<words*%d>", p.N)
			case probe.Nonce:
				fmt.Fprintf(b, "<nonce %d>", p.N)
			case probe.Token:
				b.WriteString("<token>")
			}
		}
		b.WriteString("\n")
	}
}
