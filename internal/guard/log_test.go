package guard

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func lines(level slog.Level, r *Record) []map[string]any {
	var b bytes.Buffer
	r.Log(slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: level})))
	var out []map[string]any
	for line := range strings.Lines(b.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			panic(err)
		}
		out = append(out, m)
	}
	return out
}

func TestOneLineForEachRequestThatIsNotPlain(t *testing.T) {
	for _, c := range []struct {
		name   string
		record Record
		want   map[string]any // of the line; nil for none
	}{
		{"passed", Record{ID: "a", Status: 200}, nil},
		{"an engine's own refusal", Record{ID: "a", Status: 400}, nil},
		{"refused", Record{ID: "a", Status: 400, Code: "prompt_too_long", Verdict: "refuse", CountedTokens: 12_000, LimitTokens: 10_640, Tenant: "alpha", Upstream: "glm", Total: time.Second, Blocked: time.Second},
			map[string]any{"level": "WARN", "msg": "refused", "request": "a", "status": 400., "code": "prompt_too_long", "counted_tokens": 12_000., "limit_tokens": 10_640., "tenant": "alpha", "upstream": "glm", "own_seconds": 0., "seconds": 1.}},
		{"client left", Record{Status: 200, Code: "client_gone"}, map[string]any{"level": "INFO", "msg": "client left", "status": 200.}},
		{"failed", Record{Status: 502, Code: "upstream_failed", Trouble: "it broke off"}, map[string]any{"level": "ERROR", "msg": "failed", "trouble": "it broke off"}},
		{"finding", Record{Status: 200, Code: "leak_stopped", Findings: []Finding{{Kind: "leak", Channel: "reasoning", From: "r/3", Words: 9, Explain: "nine words"}}},
			map[string]any{"level": "ERROR", "msg": "finding", "kind": "leak", "channel": "reasoning", "from": "r/3", "words": 9., "explain": "nine words", "code": "leak_stopped"}},
		{"suspicion", Record{Status: 200, Findings: []Finding{{Kind: "overlap", Channel: "content", Explain: "160 letters"}}},
			map[string]any{"level": "WARN", "msg": "finding", "kind": "overlap", "channel": "content", "explain": "160 letters"}},
	} {
		got := lines(slog.LevelInfo, &c.record)
		if c.want == nil {
			if len(got) != 0 {
				t.Errorf("%s: %v", c.name, got)
			}
			if len(lines(slog.LevelDebug, &c.record)) != 1 {
				t.Errorf("%s: no line at debug level", c.name)
			}
			continue
		}
		if len(got) != 1 {
			t.Errorf("%s: %d lines", c.name, len(got))
			continue
		}
		for name, want := range c.want {
			if got[0][name] != want {
				t.Errorf("%s: %s is %v, want %v", c.name, name, got[0][name], want)
			}
		}
	}
}

func TestEachFindingHasALineOfItsOwn(t *testing.T) {
	got := lines(slog.LevelInfo, &Record{ID: "a", Findings: []Finding{{Kind: "leak"}, {Kind: "fail_open"}}})
	if len(got) != 2 || got[0]["kind"] != "leak" || got[1]["kind"] != "fail_open" || got[1]["request"] != "a" {
		t.Errorf("%v", got)
	}
}
