package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/campaign"
	"github.com/kvcanary/kvcanary/internal/wire"
)

func TestConsent(t *testing.T) {
	half := 500_000
	for _, c := range []struct {
		name   string
		cmd    runCmd
		tokens int
		tty    bool
		says   string // typed by the user
		ok     bool
		budget int // of the campaign afterwards
	}{
		{"this machine", runCmd{BaseURL: "http://127.0.0.1:8000/v1"}, 5_000_000, false, "", true, 0},
		{"localhost", runCmd{BaseURL: "http://localhost/v1"}, 5_000_000, false, "", true, 0},
		{"few tokens elsewhere end at a million", runCmd{BaseURL: "https://api.example.com/v1"}, 20_000, false, "", true, askAbove},
		{"a million and nobody to ask", runCmd{BaseURL: "https://api.example.com/v1"}, 1_000_001, false, "", false, 0},
		{"told to", runCmd{BaseURL: "https://api.example.com/v1", Yes: true}, 5_000_000, false, "", true, 0},
		{"a budget below a million", runCmd{BaseURL: "https://api.example.com/v1", BudgetTokens: &half}, 5_000_000, false, "", true, 500_000},
		{"asked, and yes", runCmd{BaseURL: "https://api.example.com/v1"}, 2_000_000, true, "y\n", true, 0},
		{"asked, and no", runCmd{BaseURL: "https://api.example.com/v1"}, 2_000_000, true, "\n", false, 0},
		{"asked, and gone", runCmd{BaseURL: "https://api.example.com/v1"}, 2_000_000, true, "", false, 0},
	} {
		var errs bytes.Buffer
		s := &session{ctx: t.Context(), stdin: strings.NewReader(c.says), stderr: &errs, tty: c.tty}
		cfg := campaign.Config{Budget: campaign.Budget{Tokens: orZero(c.cmd.BudgetTokens)}}
		err := c.cmd.consent(s, c.tokens, &cfg)
		if (err == nil) != c.ok || cfg.Budget.Tokens != c.budget {
			t.Errorf("%s: %v, budget %d, want ok %v and %d", c.name, err, cfg.Budget.Tokens, c.ok, c.budget)
		}
		if asked := strings.Contains(errs.String(), "Go on?"); asked != (c.tty && c.tokens > askAbove) {
			t.Errorf("%s: stderr %q", c.name, errs.String())
		}
	}
}

// Nobody has to answer a question to be let go.
func TestConsentInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in, out := io.Pipe() // says nothing
	defer out.Close()
	s := &session{ctx: ctx, stdin: in, stderr: io.Discard, tty: true}
	err := runCmd{BaseURL: "https://api.example.com/v1"}.consent(s, 2_000_000, &campaign.Config{})
	var e exitError
	if !errors.As(err, &e) || e.code != exitInconclusive {
		t.Errorf("error %v", err)
	}
}

// Progress is for a terminal; a pipe gets nothing of it.
func TestProgressIsForTerminals(t *testing.T) {
	var errs bytes.Buffer
	if progress(&session{stderr: &errs}) != nil {
		t.Error("progress is shown where there is no terminal")
	}
	s := &session{stderr: &errs, tty: true}
	progress(s)(campaign.Progress{Protocol: "straddle", Sent: 1, SpentTokens: 500, BudgetTokens: 2000, Findings: 2})
	if got := errs.String(); !strings.Contains(got, "straddle: 1 exchange, 500 tokens of 2000, 2 findings") {
		t.Errorf("progress line %q", got)
	}
	errs.Reset()
	endProgress(&session{stderr: &errs})
	if errs.Len() > 0 {
		t.Errorf("a pipe gets %q at the end", errs.String())
	}
}

// A tag of a model's name is no adapter: it may be the same model once more.
func TestAdaptersAreNoTags(t *testing.T) {
	list := func(ids ...string) (out []wire.ModelInfo) {
		for _, id := range ids {
			out = append(out, wire.ModelInfo{ID: id})
		}
		return out
	}
	for _, c := range []struct {
		models []wire.ModelInfo
		engine string
		want   string
	}{
		{list("m", "m:ada", "m:ben", "m:cyd", "n:x"), "sglang", "ada ben"},
		{list("m", "m:ada"), "", "ada"},
		{list("m:latest", "n:latest"), "", ""},
		{list("m:8b", "m:70b"), "ollama", ""},
		{list("m:8b", "n:latest"), "", ""},
	} {
		if got := strings.Join(adapters(c.models, "m", c.engine), " "); got != c.want {
			t.Errorf("%v on %q: %q, want %q", c.models, c.engine, got, c.want)
		}
	}
}
