package lab

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/kvcanary/kvcanary/internal/lab/model"
)

func TestSmoke(t *testing.T) {
	defer goleak.VerifyNone(t)
	e, err := StartPipe(Small())
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	tokens := model.Template(nil, []model.Message{{Role: "user", Text: "Internal ref for this session: HORSE-4711\nblah blah blah whatever is here\nInternal ref for this session:"}})
	for ev := range e.Submit(t.Context(), Request{Tokens: tokens, MaxTokens: 100}) {
		switch {
		case ev.Error != nil:
			t.Fatal(ev.Error)
		case ev.Done != nil:
			t.Logf("%+v", *ev.Done)
		default:
			out = append(out, ev.Token)
		}
	}
	t.Logf("%q %+v", out, e.State())
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
