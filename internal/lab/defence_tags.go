package lab

import "github.com/kvcanary/kvcanary/internal/lab/handoff"

// tags are those of package pagetag. By whom they are written decides what they
// are worth. Without a fault they are on, written by the writer.
var tags = Switch{
	Name:  "tags",
	Modes: []string{"by_writer", "at_reserve"},
	Does: "every page carries a tag that says whose it is, which decode compares before the first token and at every " +
		"step; it is written by whoever writes the page, or by decode when it gives the page out",
	Reports: []string{"https://github.com/sgl-project/sglang/pull/39229"},
	apply: func(mode string, s *Settings) {
		if mode == "at_reserve" {
			s.Handoff.Defences |= handoff.TagsAtReserve
		} else {
			s.Handoff.Defences |= handoff.TagsByWriter
		}
	},
}
