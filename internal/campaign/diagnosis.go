package campaign

import (
	"slices"

	"github.com/kvcanary/kvcanary/internal/diagnose"
	"github.com/kvcanary/kvcanary/internal/oracle"
)

// diagnosis says what the findings look like; nil if there are none. A protocol
// that has found nothing counts only if it reached its coverage.
func (r *runner) diagnosis() []diagnose.Diagnosis {
	if len(r.result.Findings) == 0 {
		return nil
	}
	seen := diagnose.Seen{}
	for _, p := range r.result.Protocols {
		if p.Verdict == Inconclusive {
			continue
		}
		mine := slices.DeleteFunc(slices.Clone(r.result.Findings), func(f oracle.Finding) bool { return f.Protocol != p.Name })
		seen[p.Name] = diagnose.SignsOf(mine, r.all)
	}
	return diagnose.Measured().Of(seen)
}
