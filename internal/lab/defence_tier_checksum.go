package lab

import "github.com/kvcanary/kvcanary/internal/lab/prefix"

// tierChecksum shows what a checksum is worth by what it is kept with. Without a
// fault it is on, with the key.
var tierChecksum = Switch{
	Name:  "tier_checksum",
	Modes: []string{"key", "hop"},
	Does: "a checksum is taken of what is put away in the second tier and compared when it is read back; it is kept " +
		"with the key, or with the bytes, whose it then always is",
	apply: func(mode string, s *Settings) {
		if mode == "hop" {
			s.Prefix.Defences |= prefix.ChecksumOfHop
		} else {
			s.Prefix.Defences |= prefix.ChecksumOfKey
		}
	},
}
