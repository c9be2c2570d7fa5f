package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/kvcanary/kvcanary/internal/campaign"
	"github.com/kvcanary/kvcanary/internal/prose"
)

// Plan writes what a run would send: one line an exchange, then the sums.
func Plan(w io.Writer, f *campaign.Forecast) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%-10s %-10s %-24s %-12s %10s %8s\n", "protocol", "purpose", "what", "tenant", "prompt", "answer")
	for _, s := range f.Sends {
		fmt.Fprintf(&b, "%-10s %-10s %-24s %-12s %10s %8s\n", s.Protocol, s.Purpose, s.Label, prose.Printable(s.Tenant), prose.Thousands(s.Tokens), prose.Thousands(s.MaxTokens))
	}
	fmt.Fprintf(&b, "\n%s, about %s prompt tokens and at most %s answer tokens\n", prose.Plural(len(f.Sends), "exchange"), prose.Thousands(f.PromptTokens), prose.Thousands(f.CompletionTokens))
	for _, more := range f.More {
		paragraph(&b, "", more)
	}
	if f.Stopped != "" {
		paragraph(&b, "", f.Stopped)
	}
	b.WriteString("Nothing was sent.\n")
	_, err := io.WriteString(w, b.String())
	return err
}
