package oracle

import (
	"context"
	"fmt"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// judgeTruncation finds prompts that were answered from a part of them. What
// the target counted is held against what it counted of short prompts, so a
// target that counts wrongly by a constant or a factor is not blamed.
func judgeTruncation(_ context.Context, c Case) Judgement {
	var j Judgement
	all := own(c.run())
	b := booksOf(all)
	exchanges := own(c.Exchanges)
	for i := range exchanges {
		e := &exchanges[i]
		if !e.Answer.Served() || b.line.Collapsed(e) {
			continue
		}
		why := b.truncated(e)
		if why == "" {
			if b.unknown(e) {
				used, _ := e.Used()
				j.Unsure = fmt.Sprintf("the target counted %d tokens of a prompt of %d, and its counts of shorter ones do not tell how many it should have", used, e.SentTokens)
			}
			continue
		}
		if doubt := b.doubtful(e); doubt != "" {
			used, expect, _ := counted(e, b.line)
			j.Unsure = fmt.Sprintf("the target counted %d tokens of a prompt of which %.0f were to be expected from others, and %s: its counts do not tell whether prompts are shortened", used, expect, doubt)
			continue
		}
		j.Findings = append(j.Findings, Finding{
			Kind:     Truncation,
			Protocol: e.Protocol,
			Exchange: e.Seq,
			Tenant:   e.Tenant,
			Explain:  why,
		})
	}
	if len(j.Findings) == 0 {
		unsure := j.Unsure
		if j.lost(c); j.Unsure == "" {
			j.Unsure = unsure
		}
	}
	return j
}

// truncated says how a served prompt was shortened, "" if it was not.
func (b *books) truncated(e *wire.Exchange) string {
	if b.mayBeHeld(e) {
		return ""
	}
	if why := shortened(e, b.line); why != "" {
		return why
	}
	return beheaded(e, b.line, b.ends)
}

// surelyLost is how much of a prompt has to be missing where its length is
// known to the token, tokens. Fewer may have come from a cache that is not
// reported.
const surelyLost = 32

// shortened says that the target counted markedly less than it was sent.
func shortened(e *wire.Exchange, line wire.Baseline) string {
	if e.Again != nil && !e.SentExact {
		return "" // it asks how padding counts: that it counts for less is the answer
	}
	if line.Shortest(e) {
		return "" // there is nothing to hold it against
	}
	used, expect, ok := counted(e, line)
	lost, exact := line.Lost(e)
	least := max(surelyLost, line.Rounding())
	tenth := ok && 10*used < 9*e.SentTokens && 10*float64(used) < 9*expect && expect-float64(used) >= float64(least)
	if !tenth && !(exact && lost >= least) {
		return ""
	}
	return fmt.Sprintf("a prompt of %s tokens was answered although the target counted only %d of them (%.0f expected from shorter prompts): the rest was dropped without a word",
		length(e, expect), used, expect)
}

// length is how long a prompt was, in words: what was expected of it where it
// could not be counted.
func length(e *wire.Exchange, expect float64) string {
	if e.SentExact || expect <= 0 {
		return fmt.Sprint(e.SentTokens)
	}
	return fmt.Sprintf("about %.0f", expect)
}

// beheaded says that a part of a prompt is gone with the nonce in it: it is not
// echoed where those at the end of prompts are, and the count is short, be it
// by less than would be proof by itself.
func beheaded(e *wire.Exchange, line wire.Baseline, ends int) string {
	used, expect, ok := counted(e, line)
	if !ok || ends == 0 || !e.EchoLost() {
		return ""
	}
	lost, exact := line.Lost(e)
	clearly := e.Asked == 0 && expect-float64(used) > max(32, 0.02*expect, float64(line.Rounding()))
	if !clearly && !(exact && lost > line.Rounding()) {
		return ""
	}
	return fmt.Sprintf("a prompt of %s tokens was answered without the nonce at its %s, %d prompts with the one at their end, and the target counted %d of %.0f tokens expected: a part of it was dropped",
		length(e, expect), placeNames[e.Asked], ends, used, expect)
}

var placeNames = [3]string{"start", "middle", "end"}

// counted is what the target counted of a prompt and what shorter ones lead to
// expect. Without short prompts to learn from, only a length counted by the
// target itself can be held against it.
func counted(e *wire.Exchange, line wire.Baseline) (used int, expect float64, ok bool) {
	used, ok = e.Used()
	if !ok || e.SentTokens == 0 {
		return 0, 0, false
	}
	if expect, ok = line.Expect(e); ok {
		return used, expect, true
	}
	return used, float64(e.SentTokens), e.SentExact && !line.Known()
}

// endEchoes counts the prompts whose last nonce was asked for and echoed.
func endEchoes(exchanges []wire.Exchange) int {
	n := 0
	for i := range exchanges {
		if e := &exchanges[i]; e.Asked == 2 && e.Echoes(2) {
			n++
		}
	}
	return n
}
