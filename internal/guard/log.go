package guard

import (
	"context"
	"log/slog"
	"time"
)

// Log writes one line of a request that was refused, failed, given up or showed
// something; what passed is a line only at debug level. No line holds text of a
// prompt or an answer, a key, or what a client has named.
func (r *Record) Log(l *slog.Logger) {
	level, message := slog.LevelDebug, "passed"
	switch {
	case suspicions(r.Findings):
		level, message = slog.LevelWarn, "finding"
	case len(r.Findings) > 0:
		level, message = slog.LevelError, "finding"
	case r.Code == codeGone:
		level, message = slog.LevelInfo, "client left"
	case r.Code != "" && r.Status >= 500:
		level, message = slog.LevelError, "failed"
	case r.Code != "":
		level, message = slog.LevelWarn, "refused"
	}
	ctx := context.Background()
	if !l.Enabled(ctx, level) {
		return
	}
	line := []slog.Attr{slog.String("request", r.ID), slog.Int("status", r.Status)}
	text := func(name, value string) {
		if value != "" {
			line = append(line, slog.String(name, value))
		}
	}
	number := func(name string, n int) {
		if n != 0 {
			line = append(line, slog.Int(name, n))
		}
	}
	text("code", r.Code)
	text("trouble", r.Trouble)
	text("tenant", r.Tenant)
	text("upstream", r.Upstream)
	text("dialect", r.Dialect)
	text("admission", r.Verdict)
	text("reason", r.Reason)
	number("body_bytes", int(r.BodyBytes))
	number("counted_tokens", r.CountedTokens)
	number("limit_tokens", r.LimitTokens)
	number("prompt_tokens", r.PromptTokens)
	line = append(line, slog.Float64("seconds", r.Total.Seconds()), slog.Float64("own_seconds", own(r).Seconds()))
	if len(r.Findings) == 0 {
		l.LogAttrs(ctx, level, message, line...)
		return
	}
	for _, f := range r.Findings {
		l.LogAttrs(ctx, level, message, append(line[:len(line):len(line)],
			slog.String("kind", f.Kind), slog.String("channel", f.Channel), slog.String("from", f.From),
			slog.Int("words", f.Words), slog.String("explain", f.Explain))...)
	}
}

// own is the guard's share of a request.
func own(r *Record) time.Duration { return max(0, r.Total-r.Blocked) }
