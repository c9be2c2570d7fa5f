package probe

import (
	"fmt"
	"strings"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// tally counts what became of prompts.
type tally struct {
	served  int
	longest int      // prompt that was served, tokens
	crowded int      // that were refused for the traffic beside them
	order   []string // other outcomes, as they first came
	others  map[string]int
}

func (t *tally) count(e *wire.Exchange) {
	if e.Answer.Served() {
		t.served++
		t.longest = max(t.longest, e.SentTokens)
		return
	}
	if t.isCrowded(e) {
		t.crowded++
	}
	why := outcome(e)
	if t.others == nil {
		t.others = map[string]int{}
	}
	if t.others[why] == 0 {
		t.order = append(t.order, why)
	}
	t.others[why]++
}

// isCrowded reports whether a prompt was refused although one as long was
// served: together with others it was too much for the target, as it need not
// be when it is sent again.
func (t *tally) isCrowded(e *wire.Exchange) bool {
	if e.Answer == nil || e.SentTokens > t.longest {
		return false
	}
	r := e.Answer.Refusal
	return r.TooLong() || r != nil && r.Kind == wire.RefusedServer
}

// why says what became of those that were not served, "" if all were.
func (t *tally) why() string {
	var parts []string
	for _, o := range t.order {
		parts = append(parts, fmt.Sprintf("%s: %d", o, t.others[o]))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// outcome says in a few words why an exchange was not served.
func outcome(e *wire.Exchange) string {
	switch a := e.Answer; {
	case a == nil:
		return "not sent"
	case a.Failure != nil:
		return string(a.Failure.Kind)
	case a.Refusal != nil:
		return fmt.Sprintf("HTTP %d, %s", a.Refusal.Status, a.Refusal.Kind)
	}
	return "served"
}
