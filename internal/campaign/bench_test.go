package campaign

import (
	"context"
	"testing"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// conversation is a prompt of many turns, as the protocols write long ones.
func conversation(tokens int) probe.Send {
	s := probe.Send{Purpose: wire.Over, Tokens: tokens, Asked: -1}
	for range 96 {
		s.Turns = append(s.Turns,
			probe.Turn{Role: "user", Parts: []probe.Part{{Kind: probe.Literal, Text: "Ref: "}, {Kind: probe.Filler, N: 2}}},
			probe.Turn{Role: "assistant", Parts: []probe.Part{{Kind: probe.Filler, N: 1}}})
	}
	return s
}

// bySize counts tokens without reading: what is measured is the fitting.
type bySize struct{ ok bool }

func (bySize) Do(context.Context, wire.Request) *wire.Answer { return nil }

func (b bySize) CountTokens(_ context.Context, _, _ string, m []wire.Message) (int, bool, error) {
	return int(totalSize(m)) + 3*len(m), b.ok, nil
}

func BenchmarkFitMillionTokens(b *testing.B) {
	coder := canary.New(testKey())
	for name, ok := range map[string]bool{"counted": true, "estimated": false} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f := newFitter(bySize{ok}, coder, "fake")
				f.fit(context.Background(), "", conversation(1_000_000), canary.MakeID(1, 0, 0), prefix{})
			}
		})
	}
}
