package campaign

import (
	"fmt"
	"sync"
)

// budget is the purse of a campaign. What an exchange may cost at most is
// taken out before it is sent and what it did cost is settled afterwards, so
// that exchanges under way together never overspend. Safe for concurrent use.
type budget struct {
	limit Budget

	mu       sync.Mutex
	spent    int // tokens settled
	reserved int // tokens of exchanges under way
	requests int // requests made or about to be made
}

// reserve takes the worst cost of one exchange out of the purse: tokens, and
// one request. It returns "" or why it cannot.
func (b *budget) reserve(tokens int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.limit.Tokens; l > 0 && b.spent+b.reserved+tokens > l {
		return fmt.Sprintf("token budget of %d used up: the next exchange needs up to %d and %d are left", l, tokens, max(0, l-b.spent-b.reserved))
	}
	if !b.request() {
		return fmt.Sprintf("request budget of %d used up", b.limit.Requests)
	}
	b.reserved += tokens
	return ""
}

// again takes out one more request for an exchange that is sent again, and the
// tokens that it may cost once more: 0 where what was sent before has cost nothing.
func (b *budget) again(tokens int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.limit.Tokens; l > 0 && tokens > 0 && b.spent+b.reserved+tokens > l || !b.request() {
		return false
	}
	b.reserved += tokens
	return true
}

// unused gives back what again has taken out for a request that was not made.
func (b *budget) unused(tokens int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests--
	b.reserved -= tokens
}

func (b *budget) request() bool {
	if l := b.limit.Requests; l > 0 && b.requests >= l {
		return false
	}
	b.requests++
	return true
}

// settle gives a reservation back and books what was spent of it. An exchange
// that was not sent gives its request back, too.
func (b *budget) settle(reserved, spent int, sent bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reserved < reserved {
		panic("kvcanary: internal error: budget gives back more than it took")
	}
	b.reserved -= reserved
	b.spent += spent
	if !sent {
		b.requests--
	}
}

// left is how many tokens can still be reserved; 0 stands for no limit, and a
// purse that is empty has at least 1 left so that the two are told apart.
func (b *budget) left() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limit.Tokens == 0 {
		return 0
	}
	return max(1, b.limit.Tokens-b.spent-b.reserved)
}

// used is what was spent so far, tokens, and how many requests were made or
// are about to be.
func (b *budget) used() (tokens, requests int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spent, b.requests
}
