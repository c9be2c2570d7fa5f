package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
)

// names are the headers by which a client names its request: X-Request-Id, as
// gateways and engines take it, and traceparent (W3C Trace Context).
func (r Request) names() http.Header {
	h := http.Header{}
	if r.RequestID != "" {
		h.Set("X-Request-Id", r.RequestID)
	}
	if r.TraceID != "" {
		h.Set("Traceparent", traceparent(r.TraceID))
	}
	return h
}

// traceparent is a header of version 00 whose trace and parent are both made
// from the id, so that equal ids make equal headers.
func traceparent(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "00-" + hex.EncodeToString(sum[:16]) + "-" + hex.EncodeToString(sum[16:24]) + "-01"
}
