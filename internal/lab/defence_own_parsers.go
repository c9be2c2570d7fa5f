package lab

// ownParsers is the cure of streams that meet in a parser or a buffer. Without
// a fault it is on.
var ownParsers = Switch{
	Name: "own_parsers",
	Does: "each stream through the gateway has a parser of its own, and a buffer that is made free once, by " +
		"whoever has read into it",
	Reports: []string{
		"https://github.com/maximhq/bifrost/pull/6383",
		"https://github.com/waybarrios/vllm-mlx/pull/654",
	},
	apply: func(_ string, s *Settings) { s.Gateway.Defences |= OwnParsers },
}
