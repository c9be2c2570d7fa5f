package lab

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/model"
)

// StartPipe starts an engine whose nodes are goroutines of this process, with
// links in memory. The links carry the same frames as those between processes.
func StartPipe(cfg Config) (*Engine, error) {
	setup, err := cfg.setup()
	if err != nil {
		return nil, err
	}
	trace, err := startTrace(setup)
	if err != nil {
		return nil, err
	}
	m := model.New()
	toPrefill, prefillToRouter := net.Pipe()
	toDecode, decodeToRouter := net.Pipe()
	prefillToDecode, decodeToPrefill := net.Pipe()

	ctx, cancel := context.WithCancel(context.Background())
	var nodes sync.WaitGroup
	var prefillErr, decodeErr error
	nodes.Go(func() { prefillErr = servePrefill(ctx, setup, m, prefillToRouter, prefillToDecode, nil) })
	nodes.Go(func() {
		decodeErr = serveDecode(ctx, setup, m, decodeToRouter, "", nil, func() (net.Conn, error) {
			_, err := shake(ctx, decodeToPrefill, setup, handoff.ToDecode, handoff.ToPrefill, "", nil)
			return decodeToPrefill, err
		})
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
	_, err = shake(ctx, toDecode, setup, handoff.ToRouter, handoff.ToDecode, "", nil)
	if err == nil {
		_, err = shake(ctx, toPrefill, setup, handoff.ToRouter, handoff.ToPrefill, "", nil)
	}
	if err != nil {
		toPrefill.Close()
		toDecode.Close()
		return nil, errors.Join(err, stop(), trace.Close())
	}
	return newEngine(cfg, setup, trace, toPrefill, toDecode, stop), nil
}
