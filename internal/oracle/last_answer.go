package oracle

import (
	"slices"
	"strings"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// sayAgain reports whether every conversation of a group that goes on past an
// answer is answered with that answer: small models do so, whatever else runs.
// Where any is answered with its value, the model does not.
func sayAgain(exchanges []wire.Exchange, bySeq map[int]*wire.Exchange) bool {
	again := 0
	for i := range exchanges {
		e := &exchanges[i]
		if e.Arm != wire.ArmLoad || !e.Answer.Served() || e.Asked < 0 || e.Left {
			continue
		}
		said := strings.TrimSpace(e.Answer.Text(wire.Content))
		if said == "" || !e.EchoLost() || !slices.ContainsFunc(e.Holds, func(seq int) bool {
			h := bySeq[seq]
			return h != nil && h.Answer.Served() && h.Messages < e.Messages && strings.TrimSpace(h.Answer.Text(wire.Content)) == said
		}) {
			return false
		}
		again++
	}
	return again > 0
}
