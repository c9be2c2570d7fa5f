package watch

import "fmt"

// Bounds of a collapse, tokens. An upstream that answers a prompt of
// collapseCounted or more and says that it has read no more than collapseRead
// of it, or 1 %, has not read it: the incident's counted 1 of 681,281. Tokens
// that it took from a cache count as read.
const (
	collapseCounted = 512
	collapseRead    = 64
	// collapseBound is from when on a bound on the tokens of a prompt will do in
	// place of a count: of a body of a million bytes, more than 16,000 for each
	// token read are no schema or other field that is not part of the prompt.
	collapseBound = 1 << 20
)

// counts takes what the walker has read of usage. The largest counts: some
// servers begin with placeholders.
func (w *Watch) counts() {
	for c, n := range w.walk.count {
		w.count[c] = max(w.count[c], n)
	}
}

// prompt is how many tokens of the prompt the upstream says it has read, and
// with those it says it took from a cache: a server may or may not count these
// among the former.
func (w *Watch) prompt() (read, all int) {
	c := &w.count
	read = max(c[promptTokens], c[inputTokens]+c[cacheRead]+c[cacheCreation], c[evalCount])
	if c[cacheN] > 0 { // without it, what a cache held is not counted
		read = max(read, c[promptN]+c[cacheN])
	}
	return read, read + max(c[cachedTokens], c[cacheHit])
}

// judge holds what the upstream says it has read against what was sent.
func (w *Watch) judge() {
	read, all := w.prompt()
	if w.judged || w.errored && !w.said || read == 0 {
		return
	}
	w.judged = true
	if w.o.Limit > 0 && read > w.o.Limit {
		w.add(Finding{Kind: OverSize, Channel: Raw,
			Explain: fmt.Sprintf("the upstream says it has read %d prompt tokens, over the limit of %d: limit or count is wrong", read, w.o.Limit)})
	}
	// Ollama does not count, nor say, what it took from its cache.
	counted, sure := w.o.Counted, w.o.Exact && w.o.Counted >= collapseCounted || w.o.Counted >= collapseBound
	most := collapseRead
	if w.o.Exact {
		most = max(most, counted/100)
	}
	if sure && all <= most && w.o.Dialect != "ollama" {
		w.add(Finding{Kind: FailOpen, Channel: Raw, Stops: true,
			Explain: fmt.Sprintf("the upstream says it has read %d of %d prompt tokens, and answered: up to %d it cannot have read the prompt", all, counted, most)})
	}
}

// says takes notice of a text of the answer in a channel.
func (w *Watch) says(c Channel, text []byte) {
	if !c.says() || blank(text) {
		return
	}
	w.said = true
	switch {
	case w.ended:
		w.add(Finding{Kind: Broken, Channel: c, Stops: true, Explain: "the answer goes on after it has said that it ends: it may be another's"})
	case w.errored:
		w.add(Finding{Kind: FailOpen, Channel: c, Stops: true, Explain: "the answer says something after it has said that it is an error"})
	}
}

// fail takes notice that the answer says it is an error.
func (w *Watch) fail() {
	w.errored = true
	if !w.o.Failed {
		w.add(Finding{Kind: Trouble, Channel: ErrorBody, Explain: "the answer says that it is an error, after a status of success"})
	}
}

// end takes notice that the answer says that it ends.
func (w *Watch) end() {
	w.settle()
	w.judge()
	w.ended = true
}
