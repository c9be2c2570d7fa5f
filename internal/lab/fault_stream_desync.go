package lab

// streamDesync mixes answers on their way from a healthy engine.
var streamDesync = Switch{
	Name:  "stream_desync",
	Modes: []string{"off_by_one", "buffer", "parser"},
	Does: "the gateway uses a connection again whose request was cancelled, with the answer still to come; or makes " +
		"the buffer of such a request free twice, for the next two; or has one parser for all streams",
	Reports: []string{
		"https://openai.com/index/march-20-chatgpt-outage/",
		"https://github.com/redis/redis-py/issues/2624",
		"https://github.com/maximhq/bifrost/issues/6143",
		"https://github.com/waybarrios/vllm-mlx/issues/649",
		"https://github.com/inferencerlabs/inferencer-feedback/issues/127",
	},
	apply: func(mode string, s *Settings) {
		switch mode {
		case "buffer":
			s.Gateway.Faults |= GiveTwice
		case "parser":
			s.Gateway.Faults |= SharedParser
		default:
			s.Gateway.Faults |= KeepCancelled
		}
	},
}
