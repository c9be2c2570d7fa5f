package campaign

import (
	"context"
	"fmt"
	"slices"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// Forecast is what a campaign would send to a target that serves every prompt
// within the known context window and refuses longer ones. A protocol that
// looks for limits sends less where they are lower.
type Forecast struct {
	Sends            []PlannedSend `json:"sends"`
	PromptTokens     int           `json:"prompt_tokens"`
	CompletionTokens int           `json:"completion_tokens"` // the most that is asked for
	// More says of protocols what may follow on these sends, and when.
	More []string `json:"more,omitempty"`
	// Stopped says which budget ends the campaign early, "" if none does.
	Stopped string `json:"stopped,omitempty"`
}

// PlannedSend is one exchange of a forecast.
type PlannedSend struct {
	Protocol  string       `json:"protocol"`
	Purpose   wire.Purpose `json:"purpose"`
	Label     string       `json:"label,omitempty"`
	Tenant    string       `json:"tenant"`
	Tokens    int          `json:"tokens"`
	MaxTokens int          `json:"max_tokens"`
}

// DryRun forecasts a campaign without sending anything: every protocol is
// driven by simulated answers. Only token counts are estimates.
func DryRun(cfg Config) (*Forecast, error) {
	r, err := rehearsal(cfg)
	if err != nil {
		return nil, err
	}
	r.run(context.Background())
	return r.forecast(), nil
}

// forecast is what a rehearsal has come to.
func (r *runner) forecast() *Forecast {
	out := &Forecast{Sends: []PlannedSend{}}
	for i := range r.all {
		e := &r.all[i]
		out.Sends = append(out.Sends, PlannedSend{e.Protocol, e.Purpose, e.Label, e.Tenant, e.SentTokens, e.MaxTokens})
		out.PromptTokens += e.SentTokens
		if e.Answer.Served() {
			out.CompletionTokens += e.MaxTokens
		}
	}
	for _, p := range r.cfg.Protocols {
		began := slices.ContainsFunc(r.result.Protocols, func(q ProtocolResult) bool { return q.Name == p.Name })
		if p.More != "" && began {
			out.More = append(out.More, p.Name+": "+p.More)
		}
	}
	out.Stopped = r.overdrawn
	return out
}

// simulation counts tokens as most tokenizers do on canary text, roughly.
type simulation struct{}

const bytesPerToken = 4

func (simulation) Do(context.Context, wire.Request) *wire.Answer {
	panic("kvcanary: internal error: a dry run sends")
}

func (simulation) CountTokens(_ context.Context, _, _ string, messages []wire.Message) (int, bool, error) {
	return int(totalSize(messages)/bytesPerToken) + 4*len(messages), true, nil
}

// simulate answers an exchange as a sound target would.
func simulate(e *wire.Exchange, limit int) *wire.Answer {
	if limit > 0 && e.SentTokens+e.MaxTokens > limit {
		return &wire.Answer{Status: 400, Refusal: &wire.Refusal{
			Kind: wire.RefusedContext, Status: 400, Limit: limit, Sent: e.SentTokens,
			Message: fmt.Sprintf("simulated: over %d tokens", limit),
		}}
	}
	echo := "noted"
	if e.Asked >= 0 && e.Asked < len(e.Nonces) {
		echo = e.Nonces[e.Asked]
	}
	return &wire.Answer{
		Status: 200, Finish: "stop",
		Pieces: []wire.Piece{{Channel: wire.Content, Text: echo}},
		Usage:  &wire.Usage{Prompt: e.SentTokens, Completion: e.MaxTokens},
	}
}
