package gateway

import (
	"bufio"
	"context"
	"net"
	"strconv"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// pipelined is how many requests may wait on a connection for the one before.
// A gateway that keeps its connections apart sends none.
const pipelined = 64

// dial makes a connection to the engine, which serves on it until one of both
// hangs up.
func (g *Gateway) dial() (net.Conn, <-chan struct{}, error) {
	near, far := net.Pipe()
	served := make(chan struct{})
	if !g.start(func() {
		defer close(served)
		serve(far, g.engine)
	}) {
		near.Close()
		far.Close()
		return nil, nil, errClosing
	}
	return near, served, nil
}

type named struct {
	name    string
	request lab.Request
}

// serve answers the requests that come over a connection, one after the other.
// When the other end hangs up, so is what is under way given up.
func serve(conn net.Conn, b lab.Backend) {
	ctx, cancel := context.WithCancel(context.Background())
	requests := make(chan named, pipelined)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(requests)
		defer cancel()
		for in := bufio.NewReader(conn); ; {
			name, r, err := readRequest(in)
			if err != nil {
				return
			}
			select {
			case requests <- named{name, r}:
			case <-ctx.Done():
				return
			}
		}
	}()
	for r := range requests {
		if respond(ctx, conn, b, r) != nil {
			break
		}
	}
	cancel()
	conn.Close()
	<-ended
}

// batch is how many tokens go into one event at most.
const batch = 64

// respond answers one request.
func respond(ctx context.Context, conn net.Conn, b lab.Backend, r named) error {
	ctx, cancel := context.WithCancel(ctx)
	events := b.Submit(ctx, r.request)
	defer func() {
		cancel()
		for range events {
		}
	}()
	text, said := message{id: r.name}, false
	for e := range events {
		last := e.Done != nil || e.Error != nil
		if e.Cached > 0 && !said {
			said = true
			if err := (message{r.name, eventCached, strconv.AppendInt(nil, int64(e.Cached), 10)}).write(conn); err != nil {
				return err
			}
		}
		if !last {
			text.data = append(text.data, e.Token)
		}
		if len(text.data) > 0 && (last || len(events) == 0 || len(text.data) == batch) {
			if err := text.write(conn); err != nil {
				return err
			}
			text.data = text.data[:0]
		}
		if !last {
			continue
		}
		m, err := messageOf(r.name, e)
		if err != nil {
			return err
		}
		if err := m.write(conn); err != nil {
			return err
		}
	}
	return writeChunk(conn, nil)
}
