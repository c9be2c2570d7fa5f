package matrix

import "strings"

// limits say what keeps a fault from being found more often, for those of which
// the mechanism gives a reason.
var limits = map[string]string{
	"late_write": "A write shows only if it lands after the page's new owner has written it and before that has read it: those right behind one that left have to be computed " +
		"while its transfer is under way, and on a busy engine they wait behind others.",
	"double_owner": "It takes an abort within a step of decode, and then two requests that get the same page and write it.",
	"id_reuse": "The next of a name has to come when the front of the engine has forgotten the first and the rest has not: within a transfer, or a step of an answer. In some of these " +
		"cases fewer words cross than make a proof.",
	"id_reuse:metadata_slot": "A record of another's transfer gives a prompt another's length, and another's text only where pages of that are still there: where prompts are counted as others are, churn looks on, " +
		"and where the count alone shows it, the run is inconclusive.",
	"stale_source":            "The source has to be given to another prompt, and written, within the time of one transfer; how often that happens to the prober's own prompts depends on what else is served.",
	"stream_desync":           "A reader has to take a buffer, or a parser, at the moment at which another still fills it.",
	"early_publish:last_slot": "One slot of a page in a row of them is another's, and no text comes of it: only an answer that rests on that one token shows it, in a conversation that goes on.",
	"early_publish":           "What is missing is one slot of a page, or what a prompt that was given up has not written: that shows only where the answer rests on it, and has another's text only where the page had.",
	"row_skew":                "Rows change places only in the steps in which a request joins or leaves the batch.",
	"dirty_slot":              "The short state holds no text: it shifts what the model says next, where an answer begins while others are under way, and that has to happen often enough to be told from a model that varies.",
	"answer_cache":            "An equal prompt of another tenant is answered with the same words either way where the model says the same each time: only time tells, and it takes many pairs on a busy machine to be sure.",
	"shared_prefix":           "Only time tells where the second tier is not reported, and the prefix has to have been pushed out of the first.",
	"thin_key":                "Keys of few bits collide by chance.",
}

// limitOf is the reason for a fault, or for all of its modes.
func limitOf(fault string) string {
	if why, ok := limits[fault]; ok {
		return why
	}
	name, _, _ := strings.Cut(fault, ":")
	return limits[name]
}
