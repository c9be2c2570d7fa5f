package oracle_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// named adds an answered request that bears an id and asks for its last nonce.
func (w *world) named(tenant int, id, text string) *wire.Exchange {
	e := w.served(tenant, "content", text)
	e.RequestID, e.Asked, e.Arm = id, 2, wire.ArmLoad
	return e
}

// echo is what an exchange ought to say.
func echo(e *wire.Exchange) string { return "The value is " + e.Nonces[2] + "." }

// says makes an exchange say something else.
func says(e *wire.Exchange, text string) { e.Answer.Pieces[0].Text = text }

func TestAnAnswerRepeatedForItsIDWithinATenantIsNoFinding(t *testing.T) {
	w := newWorld(t)
	w.named(0, "x", "")
	says(&w.all[0], echo(&w.all[0]))
	w.named(0, "x", echo(&w.all[0]))
	w.named(0, "x", echo(&w.all[0]))
	w.expect(w.judge("misroute"))
	if j := w.judge("contamination"); !strings.Contains(j.Unsure, "2 requests were answered with the answer to an earlier one of the same tenant") || len(j.Tests) > 0 {
		t.Errorf("unsure %q, tests %v", j.Unsure, j.Tests)
	}
	// An id that two tenants have used, each with its own answer, settles it.
	w.named(1, "x", "")
	says(&w.all[3], echo(&w.all[3]))
	if j := w.judge("contamination"); j.Unsure != "" {
		t.Errorf("unsure %q", j.Unsure)
	}
}

func TestAnAnswerFoundByItsIDFromAnotherTenantIsAFinding(t *testing.T) {
	w := newWorld(t)
	w.named(0, "x", "")
	says(&w.all[0], echo(&w.all[0]))
	w.named(1, "x", echo(&w.all[0]))
	j := w.judge("misroute")
	w.expect(j, "leak 1/bob from 0/ada in content, 0 words at 0")
	if !strings.Contains(j.Findings[0].Explain, "both requests bear one id") {
		t.Errorf("%q", j.Findings[0].Explain)
	}
}

// A repeat is a whole answer: what holds a part of another's, or its own value
// besides, is none; nor is an answer to another id.
func TestWhatIsNoRepeat(t *testing.T) {
	for name, change := range map[string]func(e, first *wire.Exchange){
		"part":     func(e, first *wire.Exchange) { says(e, first.Nonces[2]) },
		"and more": func(e, first *wire.Exchange) { says(e, echo(first)+" "+e.Nonces[2]) },
		"other id": func(e, first *wire.Exchange) { e.RequestID = "y" },
		"no id":    func(e, first *wire.Exchange) { e.RequestID, first.RequestID = "", "" },
		"later":    func(e, first *wire.Exchange) { first.Answer.Start = e.Answer.End.Add(time.Hour) },
	} {
		w := newWorld(t)
		w.named(0, "x", "")
		says(&w.all[0], echo(&w.all[0]))
		w.named(0, "x", echo(&w.all[0]))
		change(&w.all[1], &w.all[0])
		if n := len(w.judge("misroute").Findings); n != 1 {
			t.Errorf("%s: %d findings", name, n)
		}
	}
}

// A client that has left has seen the beginning of the answer, or nothing.
func TestTheAnswerToAClientThatHasLeft(t *testing.T) {
	for _, seen := range []string{"", "The val"} {
		w := newWorld(t)
		w.named(0, "x", seen).Left = true
		w.named(0, "x", echo(&w.all[0]))
		w.expect(w.judge("misroute"))
		w.named(0, "x", "something else "+w.all[0].Nonces[2])
		if n := len(w.judge("misroute").Findings); (n == 0) != (seen == "") {
			t.Errorf("%q seen: %d findings", seen, n)
		}
	}
}
