package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/kvcanary/kvcanary/internal/guard/shape"
)

// anonymous is the tenant of those who show no key, where any are let in.
const anonymous = "anonymous"

var errUnknownKey = shape.Error{Status: http.StatusUnauthorized, Code: "unknown_key",
	Message: "this key is not known here: send a valid one as Authorization: Bearer KEY, or as X-Api-Key: KEY"}

// of finds out whose request it is.
func (t *Tenants) of(h http.Header) (Tenant, error) {
	switch {
	case len(t.Keys) > 0:
		key, ok := keyOf(h)
		// Keys are looked up by their digest, so that the time it takes tells nothing of them.
		if tenant, known := t.Keys[sha256.Sum256([]byte(key))]; ok && known && key != "" {
			return tenant, nil
		}
		return Tenant{}, errUnknownKey
	case t.Header != "":
		if v := h.Values(t.Header); len(v) == 1 && len(v[0]) <= 256 && visible(v[0]) {
			return Tenant{Name: v[0]}, nil
		}
		return Tenant{}, shape.Error{Status: http.StatusUnauthorized, Code: "unknown_tenant",
			Message: "the request does not say once, and in plain characters, whose it is: the gateway in front must set the tenant's header"}
	default:
		key, ok := keyOf(h)
		switch {
		case !ok:
			return Tenant{}, errUnknownKey
		case key == "":
			return Tenant{Name: anonymous}, nil
		}
		sum := sha256.Sum256([]byte("kvcanary tenant\x00" + key))
		return Tenant{Name: "key-" + hex.EncodeToString(sum[:8])}, nil
	}
}

// keyHeaders are those that a client may show its key in.
var keyHeaders = []string{"Authorization", "X-Api-Key", "Api-Key"}

// keyOf is the key that a client shows, "" for none. It is not ok if two places
// hold different keys: the upstream might believe the other one.
func keyOf(h http.Header) (key string, ok bool) {
	for _, name := range keyHeaders {
		for _, v := range h[name] {
			if name == "Authorization" {
				scheme, rest, _ := strings.Cut(v, " ")
				if !strings.EqualFold(scheme, "Bearer") {
					return "", false
				}
				v = strings.TrimSpace(rest)
			}
			if v == "" || key != "" && key != v {
				return "", false
			}
			key = v
		}
	}
	return key, true
}
