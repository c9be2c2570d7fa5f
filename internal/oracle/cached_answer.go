package oracle

import (
	"fmt"
	"strings"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// cacheHeaders are what gateways say of an answer that they have kept: Cloudflare's
// AI Gateway, Helicone, Portkey, and caches in general (RFC 9211 names theirs).
var cacheHeaders = []string{"cf-aig-cache-status", "helicone-cache", "x-portkey-cache-status", "x-cache", "cache-status"}

// keptAnswer is what a target says of an answer that it has kept, as a header
// and its value; empty if it says nothing of the kind.
func keptAnswer(e *wire.Exchange) string {
	for _, p := range e.Answer.Pieces {
		if p.Channel != wire.Header {
			continue
		}
		for line := range strings.Lines(p.Text) {
			name, value, ok := strings.Cut(line, ":")
			name, value = strings.ToLower(strings.TrimSpace(name)), strings.ToLower(strings.TrimSpace(value))
			for _, h := range cacheHeaders {
				if ok && name == h && hit(value) {
					return h
				}
			}
		}
	}
	return ""
}

// hit reports whether a value has hit as one of its words: "HIT", "Semantic HIT",
// "HIT from node", "ours; hit".
func hit(value string) bool {
	for word := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ' ' || r == ';' || r == ',' }) {
		if word == "hit" {
			return true
		}
	}
	return false
}

// kept finds prompts that another tenant has begun and whose answer the target
// says it has kept from before, where it says so of no new prompt. An answer
// cache that is as slow as the engine shows in nothing else: with the same words,
// the same answer is what a model gives anyway.
func (j *Judgement) kept(a arms, bySeq map[int]*wire.Exchange) {
	for _, e := range a.miss {
		if keptAnswer(e) != "" {
			return
		}
	}
	for _, e := range a.hit {
		h := keptAnswer(e)
		f := sharingFinding(e, bySeq)
		if h == "" || f.FromTenant == "" || f.FromTenant == f.Tenant {
			continue
		}
		f.Explain = fmt.Sprintf("the target says in the header %s that it has kept this answer from before, and only %s has sent this prompt; it says so of none of %d new ones: one tenant is given what another was answered",
			h, f.sender(), len(a.miss))
		j.Findings = append(j.Findings, f)
	}
}
