package oracle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// Some targets give the first answer again to whoever sends a request id again,
// whatever else the request asks for: clients that try again rely on it. Others
// keep answers for prompts that are much alike, and say so in a header. Within
// a tenant that is a feature, and from outside cannot be told from a late answer
// that has found the next request of its name; another tenant's answer is never one.

// repeated maps the seqs of exchanges that may have been answered with the
// answer to another one of the same tenant and request id to that one: their
// texts are the same, or that one's begins it if its client has left, and
// nothing of their own is in it.
func repeated(exchanges []wire.Exchange) map[int]*wire.Exchange {
	named := map[[2]string][]*wire.Exchange{}
	out := keptForTheirOwn(exchanges)
	for i := range exchanges {
		if e := &exchanges[i]; e.RequestID != "" && e.Answer != nil {
			name := [2]string{e.Tenant, e.RequestID}
			named[name] = append(named[name], e)
		}
	}
	for _, same := range named {
		for _, e := range same {
			for _, first := range same {
				// One that says its own value is no repeat itself.
				if first != e && repeats(e, first) && (out[e.Seq] == nil || first.Echoes(first.Asked)) {
					out[e.Seq] = first
				}
			}
		}
	}
	return out
}

// keptForTheirOwn maps exchanges that were answered with the whole answer to an
// earlier one of the same tenant, where the target says in a header that it has
// kept it: a cache that takes prompts for each other that are much alike.
func keptForTheirOwn(exchanges []wire.Exchange) map[int]*wire.Exchange {
	out := map[int]*wire.Exchange{}
	for i := range exchanges {
		e := &exchanges[i]
		if !e.Answer.Served() || keptAnswer(e) == "" {
			continue
		}
		for k := range exchanges {
			first := &exchanges[k]
			if first.Seq < e.Seq && first.Tenant == e.Tenant && first.Answer.Served() && repeats(e, first) {
				out[e.Seq] = first
				break
			}
		}
	}
	return out
}

func repeats(e, first *wire.Exchange) bool {
	if !e.Answer.Served() || !first.Answer.Start.Before(e.Answer.End) {
		return false
	}
	for place := range e.Nonces {
		if e.Echoes(place) {
			return false
		}
	}
	said, was := e.Answer.Text(wire.Content), first.Answer.Text(wire.Content)
	if first.Left || first.Answer.Failure != nil {
		return said != "" && strings.HasPrefix(said, was)
	}
	return said != "" && said == was
}

// own are exchanges that were answered for themselves, those left out that may
// not have been: what was counted of them is another's.
func own(exchanges []wire.Exchange) []wire.Exchange {
	of := repeated(exchanges)
	if len(of) == 0 {
		return exchanges
	}
	return slices.DeleteFunc(slices.Clone(exchanges), func(e wire.Exchange) bool { return of[e.Seq] != nil })
}

// surely reports whether an exchange that may repeat another's answer does: it
// says something of that one's.
func (r *reader) surely(e, first *wire.Exchange) bool {
	said := e.Answer.Text(wire.Content)
	if said != "" && said == first.Answer.Text(wire.Content) {
		return true
	}
	for _, n := range first.Nonces {
		if n != "" && strings.Contains(strings.ToLower(said), n) {
			return true
		}
	}
	return slices.ContainsFunc(r.longestEach(said, nil), func(h canary.Hit) bool { return h.ID == canary.ID(first.ID) })
}

// without are the exchanges that do not surely repeat another's answer, for
// oracles that count what answers lack, and how many do.
func (r *reader) without(exchanges []wire.Exchange) (others []wire.Exchange, repeats int) {
	of := repeated(exchanges)
	if len(of) == 0 {
		return exchanges, 0
	}
	for _, e := range exchanges {
		if first := of[e.Seq]; first != nil && r.surely(&e, first) {
			repeats++
			continue
		}
		others = append(others, e)
	}
	return others, repeats
}

// keptApart reports whether a request id that one tenant had used was answered
// to another with what that one had asked for.
func keptApart(exchanges []wire.Exchange) bool {
	tenants := map[string]string{} // by request id, the first that was answered
	for i := range exchanges {
		e := &exchanges[i]
		if e.RequestID == "" || e.Asked < 0 || !e.Echoes(e.Asked) {
			continue
		}
		if t, ok := tenants[e.RequestID]; ok && t != e.Tenant {
			return true
		}
		tenants[e.RequestID] = e.Tenant
	}
	return false
}

// repeatedOnly says that answers were repeated within tenants and nothing shows
// that they are not between tenants, "" if that is not so.
func repeatedOnly(exchanges []wire.Exchange, repeats int) string {
	if repeats == 0 || keptApart(exchanges) {
		return ""
	}
	return fmt.Sprintf("%d requests were answered with the answer to an earlier one of the same tenant and request id, or that the target says it has kept, as one does that lets clients try again or keeps answers; no id was answered to two tenants, so nothing shows that it looks at the tenant, too", repeats)
}

// oneName says of a finding between two tenants that their requests had one id.
func oneName(e, from *wire.Exchange) string {
	if from == nil || e.RequestID == "" || e.RequestID != from.RequestID || e.Tenant == from.Tenant {
		return ""
	}
	return "; both requests bear one id, by which the target seems to find answers, whoever asks"
}
