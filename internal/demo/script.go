package demo

import (
	"fmt"
	"strings"

	"github.com/kvcanary/kvcanary/internal/campaign"
	"github.com/kvcanary/kvcanary/internal/lab"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/prose"
	"github.com/kvcanary/kvcanary/internal/report"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// scene is one act before it is played.
type scene struct {
	name, title string
	lab         lab.Config
	protocol    probe.Protocol
	facts       campaign.Facts
	expected    campaign.Verdict
	draw        bool // its leak is drawn
	tell        func(*stage, *campaign.Result) []string
}

// answerTokens is long enough for some twenty leaked words, a token a byte.
const answerTokens = 160

// script is the story. The fault stays on to the end: what changes is the
// defence, then the size of the pool.
func script(faulty lab.Config) []scene {
	faulty.Faults = []string{"stale_reserve"}
	fixed, roomy := faulty, faulty
	fixed.Defences = []string{"retire"}
	roomy.PrefillPool = roomy.DecodePool
	facts := campaign.Facts{Pool: faulty.PrefillPool, Pairs: 1, MaxAnswer: answerTokens}
	clean := facts
	if faulty.Context < 100_000 {
		clean.Pairs = 12 // cheap here, and a bound from one test is hardly one
	}
	return []scene{
		{"classic_smoke", "The published script looks, and sees nothing", faulty, probe.Classic(), campaign.Facts{}, campaign.Clean, false, tellClassic},
		{"straddle", "kvcanary asks just under and just over the pool", faulty, probe.Straddle(), facts, campaign.Leak, true, tellStraddle},
		{"fixed", "The fix: who is refused leaves before anything is reserved or sent", fixed, probe.Straddle(), clean, campaign.Clean, false, tellFixed},
		{"roomy", "The other fix: a pool at least as large as the context", roomy, probe.Straddle(), clean, campaign.Clean, false, tellRoomy},
	}
}

func tellClassic(st *stage, r *campaign.Result) []string {
	c := st.scene.lab
	longest := 0
	for _, e := range st.seen {
		longest = max(longest, e.SentTokens)
	}
	return []string{
		fmt.Sprintf("It plants one secret of 16 characters, asks for five haikus and looks for the secret in the answers: %s, %s tokens. It finds nothing.",
			prose.Plural(r.Spent.Exchanges, "exchange"), prose.Thousands(r.Spent.PromptTokens)),
		fmt.Sprintf("That means little. The engine has the fault, but only a prompt of about %s tokens or more meets it, and the longest one here had %s. Even then one secret lies in 2 or 3 of %s pages.",
			prose.Thousands(c.PrefillPool), prose.Thousands(longest), prose.Thousands(c.DecodePool/c.PageSize)),
	}
}

func tellStraddle(st *stage, r *campaign.Result) []string {
	e := st.first(wire.Over)
	if e == nil || !e.Answer.Served() {
		return []string{"The prompt over the pool was not answered: nothing can leak this way."}
	}
	told := []string{fmt.Sprintf("A prompt of %s tokens, over the prefill pool of %s, was answered: HTTP %d.", prose.Thousands(e.SentTokens), prose.Thousands(st.scene.lab.PrefillPool), e.Answer.Status)}
	for _, f := range r.Findings {
		if f.Kind == oracle.FailOpen && f.Exchange == e.Seq {
			told = append(told, "From this one request, with nobody else's data: "+f.Explain+".")
			break
		}
	}
	if f := longestLeak(r, e.Seq); f != nil {
		what := fmt.Sprintf("%s, from word %d on,", prose.Plural(f.Evidence.Words, "word"), f.Evidence.Offset)
		if f.Evidence.Words == 0 {
			what = "the short canary"
		}
		told = append(told, fmt.Sprintf("And the proof: the answer carries %s that kvcanary had planted for tenant %s in exchange %d: %q.",
			what, f.FromTenant, deref(f.FromExchange), cut(f.Evidence.Text, 8)))
	}
	return told
}

func tellFixed(st *stage, r *campaign.Result) []string {
	e := st.first(wire.Over)
	if e == nil || e.Answer.Refusal == nil {
		return []string{"The prompt over the pool was not refused."}
	}
	return append([]string{
		fmt.Sprintf("The same engine with the same fault and the defence retire. The prompt of %s tokens gets HTTP %d: %q The limit that it names is the pool less the 6 tokens that the engine keeps for itself.", prose.Thousands(e.SentTokens), e.Answer.Refusal.Status, e.Answer.Refusal.Message),
	}, tellBound(r)...)
}

func tellRoomy(st *stage, r *campaign.Result) []string {
	e := st.first(wire.Over)
	if e == nil || !e.Answer.Served() {
		return []string{"The prompt was not served."}
	}
	used := "no usage"
	if u := e.Answer.Usage; u != nil {
		used = prose.Plural(u.Prompt, "prompt token")
	}
	return append([]string{
		fmt.Sprintf("The engine still has the fault, but now its prefill pool holds %s tokens. The prompt of %s is served: it reports %s and echoes its own nonce.",
			prose.Thousands(st.scene.lab.PrefillPool), prose.Thousands(e.SentTokens), used),
	}, tellBound(r)...)
}

func tellBound(r *campaign.Result) []string {
	b := r.Protocols[0].Bound
	if b == nil {
		return nil
	}
	return []string{"Clean is a bound, not a proof: " + report.Bound(b) + "."}
}

// first is the first exchange for a purpose, nil if there is none.
func (st *stage) first(p wire.Purpose) *wire.Exchange {
	for i := range st.seen {
		if st.seen[i].Purpose == p {
			return &st.seen[i].Exchange
		}
	}
	return nil
}

func longestLeak(r *campaign.Result, seq int) *oracle.Finding {
	var best *oracle.Finding
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Kind == oracle.Leak && f.Exchange == seq && (best == nil || f.Evidence.Words > best.Evidence.Words) {
			best = f
		}
	}
	return best
}

func deref(p *int) int {
	if p == nil {
		return -1
	}
	return *p
}

// cut is the first n words of a text.
func cut(text string, n int) string {
	words := strings.Fields(text)
	if len(words) <= n {
		return strings.Join(words, " ")
	}
	return strings.Join(words[:n], " ") + " ..."
}
