package campaign

import (
	"bytes"
	"context"
	"image/png"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// recorder is a fake target that keeps the requests.
type recorder struct {
	*fakeTarget
	requests []wire.Request
}

func (r *recorder) Do(ctx context.Context, q wire.Request) *wire.Answer {
	r.requests = append(r.requests, q)
	return r.fakeTarget.Do(ctx, q)
}

func textsOf(messages []wire.Message) []string {
	var out []string
	for _, m := range messages {
		b, _ := io.ReadAll(m.Text.Open())
		out = append(out, m.Role+": "+string(b))
	}
	return out
}

// drive runs batches against a target that answers with what say returns.
func drive(t *testing.T, say func(call int) string, batches ...[]probe.Send) (*recorder, []wire.Exchange) {
	t.Helper()
	r := &recorder{fakeTarget: &fakeTarget{counts: true, answer: func(_ context.Context, call int, _ string) *wire.Answer {
		return served(say(call))
	}}}
	s := &script{batches: batches}
	cfg := config(r.fakeTarget, s.protocol("p"))
	cfg.Client, cfg.Concurrency = r, 1
	cfg.Tenants = append(cfg.Tenants, Tenant{Name: "b"})
	mustRun(t, cfg)
	var all []wire.Exchange
	for _, b := range s.seen {
		all = append(all, b...)
	}
	return r, all
}

func noted(int) string { return "noted" }

// A prompt begins with turns of another tenant's, word for word, and then goes
// on with text of its own to the length that was asked for.
func TestPrefixIsRepeatedWordForWord(t *testing.T) {
	next := fillerSend(3000)
	next.Tenant, next.Prefix, next.Arm, next.Group = 1, &probe.Prefix{Seq: 0, Turns: 2}, "hit", 4
	next.Turns = []probe.Turn{{Role: "user", Parts: []probe.Part{{Kind: probe.Nonce, N: 2}, {Kind: probe.Filler, N: 1}}}}
	third := probe.Send{Purpose: wire.Plant, Asked: 0, Prefix: &probe.Prefix{Seq: 1}}
	r, all := drive(t, noted, []probe.Send{fillerSend(1200)}, []probe.Send{next}, []probe.Send{third})
	first, second := textsOf(r.requests[0].Messages), textsOf(r.requests[1].Messages)
	if !reflect.DeepEqual(first[:2], second[:2]) || len(second) != 3 {
		t.Errorf("%d turns, which do not begin as the %d before", len(second), len(first))
	}
	e := all[1]
	if e.SentTokens != 3000 || !reflect.DeepEqual(e.Holds, []int{0}) || e.Arm != "hit" || e.Group != 4 {
		t.Errorf("%d tokens, holds %v, arm %s of %d", e.SentTokens, e.Holds, e.Arm, e.Group)
	}
	if e.Nonces[0] != all[0].Nonces[0] || e.Nonces[0] == "" || e.Nonces[2] == all[0].Nonces[2] {
		t.Errorf("nonces %v of a prompt that begins like that of %v", e.Nonces, all[0].Nonces)
	}
	if got := textsOf(r.requests[2].Messages); !reflect.DeepEqual(got, second) {
		t.Error("a whole prompt was not repeated as it was")
	}
	if e := all[2]; !reflect.DeepEqual(e.Holds, []int{0, 1}) || e.Nonces != all[1].Nonces || e.SentTokens != 3000 {
		t.Errorf("holds %v, nonces %v, %d tokens", e.Holds, e.Nonces, e.SentTokens)
	}
}

// A session goes on with what was answered; whoever's text that was, it is sent now.
func TestPrefixWithItsAnswer(t *testing.T) {
	var stray string
	say := func(call int) string {
		if call == 1 {
			return "it is " + strings.ToUpper(stray)
		}
		return "noted"
	}
	probeFirst, first := drive(t, noted, sends(1, 600))
	stray = first[0].Nonces[2]
	next := probe.Send{Purpose: wire.Plant, Asked: 2, Prefix: &probe.Prefix{Seq: 1, Answer: true},
		Turns: []probe.Turn{{Role: "user", Parts: []probe.Part{{Kind: probe.Literal, Text: "go on"}}}}}
	r, all := drive(t, say, sends(2, 600), []probe.Send{next})
	if !reflect.DeepEqual(textsOf(probeFirst.requests[0].Messages), textsOf(r.requests[0].Messages)) {
		t.Fatal("same seed, another prompt")
	}
	got := textsOf(r.requests[2].Messages)
	if want := append(textsOf(r.requests[1].Messages), "assistant: it is "+strings.ToUpper(stray), "user: go on"); !reflect.DeepEqual(got, want) {
		t.Errorf("sent %q", got[len(got)-2:])
	}
	if e := all[2]; !reflect.DeepEqual(e.Holds, []int{0, 1}) {
		t.Errorf("holds %v", e.Holds)
	}
}

func TestPrefixOfWhatWasNotSent(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.HasPrefix(r.(string), "kvcanary: internal error: ") {
			t.Errorf("recovered %v", r)
		}
	}()
	drive(t, noted, []probe.Send{{Prefix: &probe.Prefix{Seq: 5}}})
}

// A client that goes away is no failure of the target; one that is stopped from
// outside has not left on purpose.
func TestLeftOnPurpose(t *testing.T) {
	gone := fillerSend(300)
	gone.Hangup, gone.RequestID, gone.TraceID, gone.Pace = wire.Hangup{Sent: true}, "id", "trace", time.Millisecond
	r := &recorder{fakeTarget: &fakeTarget{counts: true, answer: func(_ context.Context, call int, _ string) *wire.Answer {
		if call == 0 {
			return nil
		}
		return failed(wire.FailedCanceled, "stopped")
	}}}
	s := &script{batches: [][]probe.Send{sends(1, 300), {gone}, sends(1, 300)}}
	cfg := config(r.fakeTarget, s.protocol("p"))
	cfg.Client = r
	res := mustRun(t, cfg)
	if q := r.requests[1]; q.Hangup != gone.Hangup || q.RequestID != "id" || q.TraceID != "trace" || q.Pace != time.Millisecond {
		t.Errorf("request %+v", q)
	}
	if !s.seen[1][0].Left || s.seen[2][0].Left {
		t.Errorf("left: %v, %v", s.seen[1][0].Left, s.seen[2][0].Left)
	}
	if p := res.Protocols[0]; p.Exchanges != 3 || p.Reason != "" {
		t.Errorf("%+v", p)
	}
}

// A target without adapters or pictures serves the rest.
func TestWhatATargetNeedNotHave(t *testing.T) {
	with := fillerSend(300)
	with.Adapter, with.Image = "red", 7
	r := &recorder{fakeTarget: &fakeTarget{counts: true, answer: func(_ context.Context, call int, _ string) *wire.Answer {
		if call == 1 {
			return refused(wire.RefusedModel, 404, "no such model")
		}
		return nil
	}}}
	s := &script{batches: [][]probe.Send{sends(1, 300), {with}, sends(1, 300)}}
	cfg := config(r.fakeTarget, s.protocol("p"))
	cfg.Client = r
	mustRun(t, cfg)
	if len(s.seen) != 3 {
		t.Fatalf("ended after %d exchanges", len(s.seen))
	}
	q, e := r.requests[1], s.seen[1][0]
	if q.Model != "fake:red" || e.Nonces[1] == "" || len(q.Messages[2].Images) != 1 || len(q.Messages[0].Images) > 0 {
		t.Errorf("model %s, nonces %v, pictures of the last turn %d", q.Model, e.Nonces, len(q.Messages[2].Images))
	}
}

// Pictures are PNG files of one shape that differ, and show letters.
func TestPictures(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(8) {
		p := picture(seed, "abcde-yz234")
		m, err := png.Decode(bytes.NewReader(p))
		if err != nil || m.Bounds().Dx() != pictureWidth || m.Bounds().Dy() != pictureHeight {
			t.Fatalf("%v", err)
		}
		black := 0
		for x := range pictureWidth {
			for y := range pictureHeight {
				if c, _, _, _ := m.At(x, y).RGBA(); c == 0 {
					black++
				}
			}
		}
		if black < 11*5*dot*dot || len(p) > 16<<10 || !bytes.Equal(p, picture(seed, "abcde-yz234")) {
			t.Errorf("%d black dots in %d bytes", black, len(p))
		}
		seen[string(p)] = true
	}
	if len(seen) != 8 {
		t.Errorf("%d different pictures", len(seen))
	}
	for _, c := range "abcdefghijklmnopqrstuvwxyz234567-" {
		if glyphs[byte(c)] == ([5]byte{}) {
			t.Errorf("no letter %c", c)
		}
	}
}
