package report

import (
	"fmt"
	"strings"

	"github.com/kvcanary/kvcanary/internal/diagnose"
)

// diagnosis writes what the findings look like and where to look; nothing if
// nothing is known.
func diagnosis(b *strings.Builder, all []diagnose.Diagnosis) {
	if len(all) == 0 {
		return
	}
	b.WriteString("\nlooks like, of the faults that the lab has (a hint, no finding):\n")
	for i, d := range all {
		name := d.Fault
		if d.Mode != "" {
			name += ":" + d.Mode
		}
		paragraph(b, "  ", fmt.Sprintf("%s, %.0f %%: %s", name, 100*d.Probability, d.Means))
		if i > 0 {
			continue // what to check of the likeliest is enough; the rest is in the JSON
		}
		for _, line := range d.Check {
			paragraph(b, "    ", "- "+line)
		}
	}
}
