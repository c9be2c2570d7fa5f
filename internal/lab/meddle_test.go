package lab

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// meddled is a node whose link to the other one runs through somebody who drops
// frames, repeats, exchanges, forges and cuts them.
func meddled() error {
	o, err := readOrders(os.Stdin)
	if err != nil {
		return err
	}
	secret, err := hex.DecodeString(o.Secret)
	if err != nil {
		return err
	}
	if o.Role == handoff.ToPrefill {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close()
		decode := o.Decode
		o.Decode = l.Addr().String()
		go func() {
			prefill, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", decode)
			if err != nil {
				prefill.Close()
				return
			}
			seed := uint64(os.Getpid()) // another one after each start
			go meddle(rand.New(rand.NewPCG(seed, 1)), to, prefill)
			meddle(rand.New(rand.NewPCG(seed, 2)), prefill, to)
		}()
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return o.run(ctx, secret)
}

// meddle passes a link's greeting and proof on as they are, and what follows as
// it likes, until either end hangs up.
func meddle(rng *rand.Rand, to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	in := bufio.NewReader(from)
	greeting := make([]byte, 8)
	if _, err := io.ReadFull(in, greeting); err != nil {
		return
	}
	rest := int(binary.LittleEndian.Uint16(greeting[6:])) + 32
	to.Write(greeting)
	if _, err := io.CopyN(to, in, int64(rest)); err != nil {
		return
	}
	var held []byte
	for {
		var size [4]byte
		if _, err := io.ReadFull(in, size[:]); err != nil {
			return
		}
		frame := append(size[:], make([]byte, binary.LittleEndian.Uint32(size[:]))...)
		if _, err := io.ReadFull(in, frame[4:]); err != nil {
			return
		}
		switch rng.IntN(150) {
		case 0:
			continue
		case 1:
			frame = append(frame, frame...)
		case 2:
			held = append(held, frame...)
			continue
		case 3:
			frame[4+rng.IntN(min(len(frame)-4, 30))] ^= 1 << rng.IntN(8)
		case 4:
			to.Write(frame[:rng.IntN(len(frame))])
			return
		}
		if _, err := to.Write(append(frame, held...)); err != nil {
			return
		}
		held = nil
	}
}

// Whatever becomes of the frames between the nodes, on either transport, nobody
// is told anything of anybody else's, and the engine goes on.
func TestMeddledLinks(t *testing.T) {
	for name, oneSided := range map[string]bool{"tcp": false, "shm": true} {
		t.Run(name, func(t *testing.T) {
			cfg := busy()
			cfg.OneSided, cfg.Lag, cfg.Restart, cfg.TimeLimit = oneSided, 5*time.Millisecond, true, 2*time.Second
			var replaced atomic.Int64
			cfg.Replaced = func(string, error) { replaced.Add(1) }
			e, err := StartProcesses(cfg, os.Args[0], "lab-meddled")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { e.Close() })
			c := (&crowd{engine: e}).gather(t, 8, 2*time.Minute, func(c *crowd) bool {
				return c.served.Load() > 30 && c.failed.Load() > 0 && replaced.Load() > 1
			})
			if c.leaks.Load() > 0 {
				t.Error(c)
			}
			// What waits for a message that was lost is free once the other end is dead.
			eventually(t, "a prefill to kill", func() bool { return e.Pids()["prefill"] != 0 && e.State().Broken == "" })
			syscall.Kill(e.Pids()["prefill"], syscall.SIGKILL)
			idle(t, e)
		})
	}
}
