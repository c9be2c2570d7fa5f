package oracle_test

import (
	"strings"
	"testing"
	"time"
)

func TestNonceOfAnOverlappingExchangeIsAMisroute(t *testing.T) {
	w := newWorld(t)
	a := w.served(0)
	b := w.served(1, "content", "The value is "+a.Nonces[1]+".")
	a.Answer.End = b.Answer.Start.Add(time.Millisecond)
	j := w.judge("misroute")
	w.expect(j, "misroute 1/bob from 0/ada in content, 0 words at 0")
	if f := j.Findings[0]; f.Evidence.Text != a.Nonces[1] || !strings.Contains(f.Explain, "same time") {
		t.Errorf("%+v", f)
	}
}

func TestNonceOfAnExchangeThatIsOverIsALeak(t *testing.T) {
	w := newWorld(t)
	a := w.served(0)
	w.served(1, "content", a.Nonces[2])
	w.expect(w.judge("misroute"), "leak 1/bob from 0/ada in content, 0 words at 0")
}

// Two tenants with each other's answers: both directions are told.
func TestSwappedAnswers(t *testing.T) {
	w := newWorld(t)
	w.served(0)
	w.served(1)
	a, b := &w.all[0], &w.all[1]
	a.Answer.Start, a.Answer.End = b.Answer.Start, b.Answer.End
	a.Answer.Pieces = nil
	w.all[0].Answer.Pieces = append(a.Answer.Pieces, piece("content", b.Nonces[0]))
	w.all[1].Answer.Pieces = append(b.Answer.Pieces, piece("reasoning", a.Nonces[0]))
	w.expect(w.judge("misroute"),
		"misroute 0/ada from 1/bob in content, 0 words at 0",
		"misroute 1/bob from 0/ada in reasoning, 0 words at 0")
}

// Whatever stands around a nonce and however it is written, it is told once
// for each sender.
func TestNoncesAreFoundAnywhereAndToldOnce(t *testing.T) {
	w := newWorld(t)
	a := w.served(0)
	b := w.served(1)
	text := "\\n" + a.Nonces[0] + "X " + strings.ToUpper(a.Nonces[1]) + " _" + b.Nonces[2] + "_"
	w.served(2, "content", text, "reasoning", text)
	w.expect(w.judge("misroute"),
		"leak 2/cyd from 0/ada in content, 0 words at 0",
		"leak 2/cyd from 1/bob in content, 0 words at 0")
}

func TestOwnAndUnknownNoncesAreNone(t *testing.T) {
	w := newWorld(t)
	e := w.served(0)
	e.Answer.Pieces = append(e.Answer.Pieces, piece("content", e.Nonces[0]+" "+e.Nonces[1]+" abcde-fghij "+e.Nonces[2][:9]))
	w.served(1).Answer = nil
	w.expect(w.judge("misroute"))
}
