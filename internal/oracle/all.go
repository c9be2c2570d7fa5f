package oracle

// All lists the oracles: proof first, then what rests on accounting.
func All() []Oracle {
	return []Oracle{
		{"leak", "finds canary text of one exchange in the answer to another", judgeLeak},
		{"misroute", "finds the nonce of one exchange in the answer to another", judgeMisroute},
		{"fragments", "finds too little of another's canary text for a proof, so that no answer that has it is called clean", judgeFragments},
		{"fail_open", "finds prompts over the limit that were answered as if they were served", judgeFailOpen},
		{"truncation", "finds prompts that were shortened without a word", judgeTruncation},
		{"sharing", "finds that one tenant's prompts are answered from what another has sent: by reported cached tokens, else by time", judgeSharing},
		{"contamination", "finds answers that lose the value asked for when others run beside them", judgeContamination},
		{"replay", "finds answers to one prompt that change when others were answered in between", judgeReplay},
	}
}
