package lab

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/model"
	"github.com/kvcanary/kvcanary/internal/lab/node"
)

// StartPipe starts an engine whose nodes are goroutines of this process, with
// links in memory. The links carry the same frames as those between processes.
func StartPipe(cfg Config) (*Engine, error) {
	setup, trace, err := begin(cfg)
	if err != nil {
		return nil, err
	}
	return pipe(cfg, setup, trace)
}

func pipe(cfg Config, setup node.Setup, trace *node.Tracer) (*Engine, error) {
	m := model.New()
	toPrefill, prefillToRouter := net.Pipe()
	toDecode, decodeToRouter := net.Pipe()
	prefillToDecode, decodeToPrefill := net.Pipe()

	ctx, cancel := context.WithCancel(context.Background())
	var nodes sync.WaitGroup
	var prefillErr, decodeErr error
	nodes.Go(func() {
		peer, err := greetAsPrefill(ctx, setup, prefillToDecode, nil)
		if err != nil {
			prefillErr = errors.Join(err, prefillToRouter.Close())
			return
		}
		prefillErr = servePrefill(ctx, setup, m, prefillToRouter, nil, peer, nil, make(chan node.Peer))
	})
	nodes.Go(func() {
		peers := make(chan node.Peer)
		decodeErr = serveDecode(ctx, setup, m, decodeToRouter, "", nil, peers, func(ctx context.Context, pool string) {
			g := decodeGreeting(pool)
			if _, err := shake(ctx, decodeToPrefill, setup, g, handoff.ToPrefill, nil); err != nil {
				decodeToPrefill.Close()
				return // prefill says why
			}
			hand(ctx, peers, node.Peer{Conn: decodeToPrefill, Epoch: g.Epoch})
		})
		decodeToPrefill.Close()
	})
	stop := func() error {
		cancel()
		nodes.Wait()
		err := errors.Join(prefillErr, decodeErr)
		if errors.Is(err, context.Canceled) {
			return nil // one was told to end before it began to serve
		}
		return err
	}
	_, err := shake(ctx, toDecode, setup, node.Greeting{Role: handoff.ToRouter}, handoff.ToDecode, nil)
	if err == nil {
		_, err = shake(ctx, toPrefill, setup, node.Greeting{Role: handoff.ToRouter}, handoff.ToPrefill, nil)
	}
	if err != nil {
		toPrefill.Close()
		toDecode.Close()
		return nil, errors.Join(err, stop(), trace.Close())
	}
	return newEngine(cfg, setup, trace, toPrefill, toDecode, stop, nil), nil
}
