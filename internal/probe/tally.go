package probe

import (
	"fmt"
	"strings"

	"github.com/kvcanary/kvcanary/internal/wire"
)

// tally counts what became of prompts.
type tally struct {
	served int
	order  []string // other outcomes, as they first came
	others map[string]int
}

func (t *tally) count(e *wire.Exchange) {
	if e.Answer.Served() {
		t.served++
		return
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
