package api

import (
	"context"
	"net/http"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// generation is how an answer ended.
type generation struct {
	finish string // "stop" or "length"
	stop   string // the stop string that ended it, "" for none
	usage  usage
}

type usage struct {
	PromptTokens     int           `json:"prompt_tokens"`
	CompletionTokens int           `json:"completion_tokens"`
	TotalTokens      int           `json:"total_tokens"`
	Details          *usageDetails `json:"prompt_tokens_details"`
}

type usageDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

func usageOf(d lab.Done) usage {
	u := usage{PromptTokens: d.PromptTokens, CompletionTokens: d.CompletionTokens, TotalTokens: d.PromptTokens + d.CompletionTokens}
	if d.CachedTokens > 0 {
		u.Details = &usageDetails{d.CachedTokens}
	}
	return u
}

// generate runs a request and hands its text to emit as it comes, in pieces of
// what is ready at one moment. It returns when the engine has let go of the
// request. An error of emit means that the client is gone.
func generate(ctx context.Context, b lab.Backend, r lab.Request, emit func(string) error) (generation, *lab.Error) {
	ctx, cancel := context.WithCancel(ctx)
	events := b.Submit(ctx, r)
	defer func() {
		cancel()
		for range events {
		}
	}()
	a := answer{stopper: stopper{stops: r.Stop}}
	for event := range events {
		if event.Error != nil {
			if a.ready != "" {
				emit(a.ready) // a failure in the middle does not take back what came before
			}
			return generation{}, event.Error
		}
		g := a.take(event, len(r.Tokens))
		if g == nil && len(events) > 0 && len(a.ready) < maxPiece {
			continue
		}
		if a.ready != "" {
			if err := emit(a.ready); err != nil {
				return generation{}, clientGone
			}
			a.ready = ""
		}
		if g != nil {
			return *g, nil
		}
	}
	if ctx.Err() != nil {
		return generation{}, clientGone
	}
	return generation{}, &lab.Error{Status: http.StatusInternalServerError, Type: "InternalServerError",
		Message: "the engine ended the answer without saying how"}
}

// maxPiece bounds what is held back while more tokens are ready, in bytes.
const maxPiece = 256

// clientGone ends a generation that nobody waits for.
var clientGone = &lab.Error{Status: 499, Type: "ClientClosedRequest", Message: "the client has gone"}

// answer assembles the text of one answer.
type answer struct {
	detokenizer
	stopper
	ready  string // text that can be shown and has not been
	tokens int
}

// take adds an event; it returns how the answer ended, or nil.
func (a *answer) take(e lab.Event, promptTokens int) *generation {
	var text []byte
	if e.Done != nil {
		text = a.flush(text)
	} else {
		text = a.token(text, e.Token)
		a.tokens++
	}
	show, hit := a.write(string(text))
	a.ready += show
	if hit != "" {
		// The engine is told to stop and reports nothing more: count here.
		return &generation{"stop", hit, usageOf(lab.Done{PromptTokens: promptTokens, CompletionTokens: a.tokens, CachedTokens: e.Cached})}
	}
	if e.Done == nil {
		return nil
	}
	a.ready += a.close()
	return &generation{e.Done.Finish, "", usageOf(*e.Done)}
}
