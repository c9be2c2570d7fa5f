package oracle

import (
	"fmt"
	"strings"

	"github.com/kvcanary/kvcanary/internal/stats"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// Stock phrases.
//
// Some services answer with a text of their own in place of the model's, and call
// it a success: that they are busy, that a filter stopped the prompt. Under load
// they do so more often, which says nothing of what the engine does with prompts.

// stockWords is how many words a text has at least that is taken for one: a model
// that finds no value says less, and the same each time.
const stockWords = 6

// phrases are texts that answer prompts which ask for different things.
type phrases map[string]int

func stockPhrases(exchanges []wire.Exchange) phrases {
	asked := map[string]map[string]bool{}
	for i := range exchanges {
		e := &exchanges[i]
		if !e.EchoLost() {
			continue
		}
		text, ok := stockWording(e)
		if !ok {
			continue
		}
		if asked[text] == nil {
			asked[text] = map[string]bool{}
		}
		asked[text][e.Nonces[e.Asked]] = true
	}
	out := phrases{}
	for text, values := range asked {
		if len(values) > 1 {
			out[text] = len(values)
		}
	}
	return out
}

func (p phrases) has(e *wire.Exchange) bool {
	if len(p) == 0 || !e.EchoLost() {
		return false
	}
	text, ok := stockWording(e)
	return ok && p[text] > 0
}

// stockWording is what an answer says that ended by itself; ok is false if that
// is too little to go by. A model that has lost its prompt goes on without end, or
// says what questions have in common.
func stockWording(e *wire.Exchange) (text string, ok bool) {
	text = strings.TrimSpace(e.Answer.Text(wire.Content))
	return text, e.Answer.EndedByItself() && len(strings.Fields(text)) >= stockWords && !strings.Contains(text, ":")
}

// stock says of a group that its answers differ by arm only for stock phrases, if
// they do: a model that does not find a value may say so in the same words each
// time, so such answers are not clean either.
func (j *Judgement) stock(exchanges []wire.Exchange, groups, n int) {
	tables, alone, beside, able := compared(exchanges)
	if !able || alone.n() == 0 || beside.n() == 0 || stats.FisherStrata(tables)*float64(groups) > suspicious {
		return
	}
	counted, _ := told(alone, beside)
	j.Unsure = fmt.Sprintf("%s; %d of all these say the same words, whatever they were asked: the service may be busy, or filter, or the model may not have read its prompt", counted, n)
}
