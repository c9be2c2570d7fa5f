package lab

import "github.com/kvcanary/kvcanary/internal/lab/prefix"

// blockTags carry the idea of tags over to the prefix cache. Without a fault they
// are on, written by the writer.
var blockTags = Switch{
	Name:  "block_tags",
	Modes: []string{"by_writer", "at_reserve"},
	Does: "every block of the prefix cache carries for whom it was computed (tenant, adapter, pictures), which is " +
		"compared when it is found; it is written by whoever writes the block, or when its page is given out",
	apply: func(mode string, s *Settings) {
		if mode == "at_reserve" {
			s.Prefix.Defences |= prefix.TagsAtReserve
		} else {
			s.Prefix.Defences |= prefix.TagsByWriter
		}
	},
}
