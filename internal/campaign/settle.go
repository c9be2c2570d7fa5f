package campaign

import (
	"fmt"

	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/stats"
)

// falseAlarms is the chance that a run on a sound target has any finding that
// rests on a statistical test, all its tests together.
const falseAlarms = 0.001

// test is a statistical test of one protocol.
type test struct {
	oracle.Test
	protocol int    // index into the result's protocols
	unsure   string // why the protocol is inconclusive as long as the test finds nothing
}

// settle makes findings of the tests whose p-values are small enough after
// correction for all tests of the run (Holm), and corrects the verdicts of
// their protocols.
func (r *runner) settle() {
	p := make([]float64, len(r.tests))
	for i, t := range r.tests {
		p[i] = t.P
	}
	for i, corrected := range stats.Holm(p) {
		if corrected > falseAlarms {
			continue
		}
		f := r.tests[i].Finding
		f.PValue = &corrected
		f.Explain += fmt.Sprintf(" (p = %.2g over %d tests of this run)", corrected, len(p))
		r.result.Findings = append(r.result.Findings, f)
		out := &r.result.Protocols[r.tests[i].protocol]
		out.Verdict, out.Bound = out.Verdict.worse(Violation), nil
		if out.Reason == r.tests[i].unsure {
			out.Reason = ""
		}
	}
	r.tests = nil
}
