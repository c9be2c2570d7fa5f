package api

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// serveLab serves an engine of the small scale.
func serveLab(t *testing.T, change func(*lab.Config)) (*lab.Engine, string) {
	t.Helper()
	cfg := lab.Small()
	if change != nil {
		change(&cfg)
	}
	engine, err := lab.StartPipe(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // after the server's own
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return engine, serve(t, engine, nil).URL + "/v1/chat/completions"
}

// A prompt in the incident's window: over the prefill pool, within the context.
func inWindow() string {
	return `{"temperature":0,"max_tokens":30,"messages":[{"role":"user","content":"` + strings.Repeat("plain words ", 1000) + `"}]}`
}

func TestTheIncidentOverHTTP(t *testing.T) {
	// Another tenant's chat, with many turns: each is a place where a user's turn goes on.
	plant := `{"temperature":0,"max_tokens":1,"messages":[` + strings.Repeat(`{"role":"user","content":"the vault opens with violet-otter-88"},{"role":"assistant","content":"ok"},`, 240) +
		`{"role":"user","content":"thanks"}]}`
	for _, c := range []struct {
		name            string
		fault, defence  string
		status          int
		words, notWords string
	}{
		{"fault", "stale_reserve", "", 200, `"prompt_tokens":1,`, "exceeds"},
		{"fault, counted by decode", "stale_reserve:decode_usage", "", 200, `"prompt_tokens":12002,`, "exceeds"},
		{"fault and defence", "stale_reserve", "retire", 400, "Input length (12002 tokens) exceeds the maximum allowed length (10634 tokens).", "violet"},
		{"no fault", "", "", 400, "Input length (12002 tokens) exceeds the maximum allowed length (10634 tokens).", "violet"},
	} {
		_, url := serveLab(t, func(cfg *lab.Config) {
			cfg.Policy = "lifo" // the pages freed last are the first to be used again
			if c.fault != "" {
				cfg.Faults = []string{c.fault}
			}
			if c.defence != "" {
				cfg.Defences = []string{c.defence}
			}
		})
		if status, body := post(t, url, plant); status != 200 {
			t.Fatalf("%s: %d %s", c.name, status, body)
		}
		status, body := post(t, url, inWindow())
		if status != c.status || !strings.Contains(body, c.words) || strings.Contains(body, c.notWords) {
			t.Errorf("%s: %d %s", c.name, status, body)
		}
		if leaked := strings.Contains(body, "violet"); leaked != (c.status == 200) {
			t.Errorf("%s: leaked %v: %s", c.name, leaked, body)
		}
	}
}

func TestDisconnectFreesThePages(t *testing.T) {
	engine, url := serveLab(t, nil)
	// An endless loop of a prompt: the model goes on with it up to max_tokens.
	body := `{"stream":true,"temperature":0,"max_tokens":6000,"messages":[{"role":"user","content":"` + strings.Repeat("round and round it goes, ", 200) + `"}]}`
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || !strings.Contains(line, `"content"`) {
			t.Fatalf("%q %v", line, err)
		}
		if engine.State().DecodeUsed == 0 {
			t.Error("no pages are owned while the answer is under way")
		}
		cancel()
		res.Body.Close()
		// The test hangs if the pages are never freed.
		for s := engine.State(); s.PrefillUsed+s.DecodeUsed+s.Running+s.Waiting > 0; s = engine.State() {
			time.Sleep(time.Millisecond)
		}
	}
}
