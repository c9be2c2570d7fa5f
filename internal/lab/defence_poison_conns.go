package lab

// poisonConns is the cure of a connection that is one answer behind. Without a
// fault it is on.
var poisonConns = Switch{
	Name: "poison_conns",
	Does: "the gateway hangs up on a connection whose request was given up, in place of using it again",
	Reports: []string{
		"https://github.com/redis/redis-py/pull/2641",
		"https://openai.com/index/march-20-chatgpt-outage/",
	},
	apply: func(_ string, s *Settings) { s.Gateway.Defences |= PoisonConns },
}
