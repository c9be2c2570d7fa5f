package lab

import "github.com/kvcanary/kvcanary/internal/lab/prefix"

// publishAfterCommit is the cure of early publishing. Without a fault it is on.
var publishAfterCommit = Switch{
	Name:    "publish_after_commit",
	Does:    "a block of the prefix cache can be found once all of it has been computed and copied, and not before",
	Reports: []string{"https://github.com/vllm-project/vllm/pull/56525"},
	apply:   func(_ string, s *Settings) { s.Prefix.Defences |= prefix.AfterCommit },
}
