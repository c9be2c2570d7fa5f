package prefix

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// Stories: what becomes of prompts, one after the other, in a cache of pages of
// four tokens. Each line is a tenant and a prompt, with /adapter behind the tenant
// and !n at the end for one that is aborted when n blocks are computed.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var m *memory
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "cache" {
				cfg := Config{PageSize: 4, Switches: switches(t, d)}
				d.ScanArgs(t, "pages", &cfg.Pages)
				d.MaybeScanArgs(t, "blobs", &cfg.Blobs)
				m = newMemory(cfg)
				return ""
			}
			var out strings.Builder
			for line := range strings.SplitSeq(d.Input, "\n") {
				out.WriteString(m.tell(line))
			}
			return out.String()
		})
	})
}

func switches(t *testing.T, d *datadriven.TestData) (s Switches) {
	t.Helper()
	for i, name := range []string{"never_written", "last_slot", "copy_race", "weak_hash", "omit_media", "omit_adapter", "shared", "shared_blobs", "stale_blob"} {
		if d.HasArg(name) {
			s.Faults |= 1 << i
		}
	}
	for i, name := range []string{"salt", "salt_cache_only", "full_compare", "after_commit", "blob_generations", "tags", "tags_at_reserve"} {
		if d.HasArg(name) {
			s.Defences |= 1 << i
		}
	}
	return s
}

func (m *memory) tell(line string) string {
	who, tokens, _ := strings.Cut(line, " ")
	tokens, stop, aborted := strings.Cut(tokens, " !")
	p := &Prompt{Tokens: []byte(tokens)}
	p.Tenant, p.Adapter, _ = strings.Cut(who, "/")
	blocks := len(tokens) / m.size
	if aborted {
		fmt.Sscan(stop, &blocks)
	}
	hits, wrong := m.serve(p, blocks)
	out := fmt.Sprintf("%s: %d of %d blocks found", line, hits, len(tokens)/m.size)
	if hits > 0 && slices.ContainsFunc(wrong, func(s string) bool { return s != "" }) {
		out += fmt.Sprintf(", of which %q is another's", wrong)
	}
	return out + "\n"
}
