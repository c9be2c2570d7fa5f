package wire

import (
	"io"
	"net/http"
	"time"
)

// The answers of counters and refusals, for whoever sends such requests with
// bodies of its own rather than by a [Client].

// ReadCount finds a count of tokens, a member of the JSON object that r holds,
// without keeping the rest. It is positive, or there is an error.
func ReadCount(r io.Reader, member string) (int, error) { return readCount(r, member) }

// ReadLength counts the entries of a list that is a member of the JSON object
// that r holds, without keeping them. It is positive, or there is an error.
func ReadLength(r io.Reader, member string) (int, error) { return readLength(r, member) }

// ReadRefusal reads the answer of a target whose status is none of success.
// What it says is not redacted: it may repeat what it was sent.
func ReadRefusal(resp *http.Response, now time.Time) *Refusal {
	doc, _ := io.ReadAll(io.LimitReader(resp.Body, maxError))
	r, _ := classify(resp.StatusCode, resp.Header, doc, false, now)
	return r
}
