package lab

// echoIDs notices an answer that is another request's, whatever has mixed them
// up on the way. Without a fault it is on.
var echoIDs = Switch{
	Name:    "echo_ids",
	Does:    "each event of an answer carries the id of its request, and the gateway compares it with the one it waits for",
	Reports: []string{"https://github.com/redis/redis-py/issues/2665"},
	apply:   func(_ string, s *Settings) { s.Gateway.Defences |= EchoIDs },
}
