package lab

// liveIDs is half a cure of reused ids: what has left the door is not gone.
var liveIDs = Switch{
	Name: "live_ids",
	Does: "a request is refused while another of its id is under way, in place of waiting for its end; one that has been " +
		"given up is under way no more, as far as the door can see, whatever is still on its way for it",
	Reports: []string{"https://github.com/vllm-project/vllm/pull/27987"},
	apply:   func(_ string, s *Settings) { s.IDs.Refuse = true },
}
