package guard

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"

	"github.com/kvcanary/kvcanary/internal/guard/request"
)

// Isolation says what keeps tenants apart within an engine.
type Isolation struct {
	// SaltKey is what each tenant's salt of the prefix cache is derived from: the
	// same for all guards before an engine, and a secret, for who knows a salt can
	// ask what is cached under it. Random by default.
	SaltKey []byte
	// RefuseUnknown refuses fields of a body that no table knows.
	RefuseUnknown bool
	// AllowStored lets a request name what a server keeps: earlier answers, files.
	AllowStored bool
	// AllowPrivateMedia lets media come from hosts that only the engine may reach.
	AllowPrivateMedia bool
	// Allow are fields that request.Table names and that clients may set after
	// all: what a row guards against is then left to the engine.
	Allow []string
	// SharePromptCache leaves on the prompt cache of engines that cannot keep
	// tenants apart in it.
	SharePromptCache bool
}

// fields are what an engine understands of a request's isolation. A hosted
// endpoint refuses fields that it does not know, so that one that is not
// recognised gets none.
type fields struct {
	salt, id []string
	set      []request.Member // unless the prompt cache may be shared
}

// engineFields has a row for each engine that has any.
var engineFields = map[string]fields{
	"vllm":   {salt: []string{"cache_salt"}, id: []string{"request_id"}},
	"sglang": {salt: []string{"cache_salt", "extra_key"}, id: []string{"rid"}},
	"trtllm": {salt: []string{"cache_salt"}},
	// It has slots in place of a cache with keys: what one request leaves there
	// the next one may take up.
	"llamacpp": {set: []request.Member{{Name: "cache_prompt", Value: "false"}}},
}

// salt is a tenant's, in characters that every engine takes.
func (i *Isolation) salt(tenant string) string {
	m := hmac.New(sha256.New, i.SaltKey)
	m.Write([]byte("kvcanary cache salt\x00"))
	m.Write([]byte(tenant))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil)[:18])
}

// policy is what may pass of a body to an upstream.
func (t *trip) policy(u *upstream) request.Policy {
	p := request.Policy{
		Dialect: t.route.dialect, MaxBytes: t.s.Limits.BodyBytes, MaxOpaque: -1,
		AllowStored: t.s.Isolation.AllowStored, RefuseUnknown: t.s.Isolation.RefuseUnknown,
		AllowPrivateMedia: t.s.Isolation.AllowPrivateMedia,
		Allow:             t.s.Isolation.Allow,
		// Nothing is put in before it is known who gets it, nor for a counter, which
		// may not know it.
		Counts: u == nil || t.route.counts,
	}
	if p.Counts {
		return p
	}
	f := engineFields[u.engine()]
	p.SaltFields, p.RequestIDFields, p.RequestID = f.salt, f.id, t.rec.ID
	if len(f.salt) > 0 {
		p.Salt = t.s.Isolation.salt(t.tenant.Name)
	}
	if !t.s.Isolation.SharePromptCache {
		p.Set = f.set
	}
	return p
}
