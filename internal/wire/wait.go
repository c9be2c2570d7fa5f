package wire

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter bounds what a target may ask a client to wait.
const maxRetryAfter = 24 * time.Hour

// retryAfter reads how long the target asks to wait: retry-after-ms, or
// Retry-After in seconds or as a date (RFC 9110 10.2.3).
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return bounded(ms * float64(time.Millisecond))
	}
	if v := strings.TrimSpace(h.Get("Retry-After")); v != "" {
		if s, err := strconv.ParseFloat(v, 64); err == nil {
			return bounded(s * float64(time.Second))
		}
		if t, err := http.ParseTime(v); err == nil {
			return bounded(float64(t.Sub(serverTime(h, now))))
		}
	}
	return 0
}

// rateReset reads when a rate limit ends, which servers give as seconds, as a
// Unix time in seconds or milliseconds, or as a duration.
func rateReset(h http.Header, now time.Time) time.Duration {
	for _, name := range []string{"X-Ratelimit-Reset", "X-Ratelimit-Reset-Requests", "X-Ratelimit-Reset-Tokens"} {
		v := strings.TrimSpace(h.Get(name))
		if s, err := strconv.ParseFloat(v, 64); err == nil {
			switch {
			case s > 1e11: // Unix time in milliseconds
				return bounded(s*float64(time.Millisecond) - float64(now.UnixNano()))
			case s > 1e8: // Unix time in seconds
				return bounded(s*float64(time.Second) - float64(now.UnixNano()))
			}
			return bounded(s * float64(time.Second))
		}
		if d, err := time.ParseDuration(v); err == nil {
			return bounded(float64(d))
		}
	}
	return 0
}

// serverTime is the target's own clock, if it tells the time.
func serverTime(h http.Header, now time.Time) time.Time {
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		return t
	}
	return now
}

// bounded makes a duration of nanoseconds that may be anything, NaN included.
func bounded(ns float64) time.Duration {
	if !(ns > 0) {
		return 0
	}
	return time.Duration(min(ns, float64(maxRetryAfter)))
}
