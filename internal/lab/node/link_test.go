package node

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func pageFrame(i int) *Frame {
	return &Frame{
		Event: handoff.Event{Kind: handoff.Page, Room: 1, Index: i},
		Data:  bytes.Repeat([]byte{byte(i)}, testShape.PageBytes),
	}
}

func linkPair() (a, b *Link, inA, inB chan Inbound) {
	x, y := net.Pipe()
	inA, inB = make(chan Inbound, 4), make(chan Inbound, 4)
	return NewLink(x, handoff.ToDecode, testShape, inA), NewLink(y, handoff.ToPrefill, testShape, inB), inA, inB
}

// A receiver that takes nothing stops the sender of pages, not the sender of
// small frames, and nothing is lost or out of order once it takes again.
func TestLinkHoldsPagesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, _, in := linkPair()
		defer a.Close()
		defer b.Close()
		sent := 0
		for {
			synctest.Wait()
			if !a.SendPage(pageFrame(sent)) {
				break
			}
			sent++
		}
		if limit := 4 * buffers(testShape.PageBytes); sent == 0 || sent > limit {
			t.Fatalf("%d pages sent to somebody who takes none; %d buffers", sent, limit)
		}
		a.Send(&Frame{Event: handoff.Event{Kind: handoff.Meta, Room: 1}})
		for i := range sent {
			f := <-in
			if f.Frame.Event.Kind != handoff.Page || f.Frame.Event.Index != i || f.Frame.Data[0] != byte(i) || f.From != handoff.ToPrefill {
				t.Fatalf("frame %d is %+v", i, f)
			}
			f.Release()
		}
		if f := <-in; f.Frame.Event.Kind != handoff.Meta {
			t.Fatalf("got %+v", f)
		}
		synctest.Wait()
		if !a.SendPage(pageFrame(1)) {
			t.Error("no buffer came back")
		}
	})
}

// Both ends send all they can before either takes anything.
func TestLinksCannotLockUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, inA, inB := linkPair()
		defer a.Close()
		defer b.Close()
		const n = 5000
		for i := range n {
			f := Frame{Event: handoff.Event{Kind: handoff.Ack, Room: handoff.Room(i + 1)}}
			a.Send(&f)
			b.Send(&f)
		}
		for _, in := range []chan Inbound{inA, inB} {
			for i := range n {
				if f := <-in; f.Frame.Event.Room != handoff.Room(i+1) {
					t.Fatalf("frame %d is %+v", i, f)
				}
			}
		}
	})
}

func TestReportsReplaceEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, _, in := linkPair()
		defer a.Close()
		defer b.Close()
		for i := range 10_000 {
			a.Report(Stats{Running: i})
		}
		seen, last := 0, -1
		for last != 9999 {
			f := <-in
			if f.Frame.Stats.Running <= last {
				t.Fatalf("report %d after %d", f.Frame.Stats.Running, last)
			}
			last = f.Frame.Stats.Running
			seen++
		}
		if seen == 10_000 {
			t.Error("every report was sent")
		}
	})
}

func TestLinkTellsOfItsEnd(t *testing.T) {
	long := binary.LittleEndian.AppendUint32(nil, uint32(testShape.maxBody()+1))
	cut := appendFrame(nil, pageFrame(1))
	for name, c := range map[string]struct {
		says []byte
		want error
	}{
		"hangs up":                {nil, io.EOF},
		"too long":                {long, ErrFrame},
		"no body":                 {[]byte{1, 0, 0, 0, 9}, ErrFrame},
		"not a frame":             {[]byte{2, 0, 0, 0, 9, 9}, ErrFrame},
		"cut in its length":       {cut[:3], ErrFrame},
		"cut in a page":           {cut[:len(cut)-1], ErrFrame},
		"a page that is too long": {append(binary.LittleEndian.AppendUint32(nil, uint32(len(cut)-3)), append(cut[4:], 0)...), ErrFrame},
	} {
		x, y := net.Pipe()
		in := make(chan Inbound, 1)
		l := NewLink(x, handoff.ToDecode, testShape, in)
		go func() {
			y.Write(c.says)
			y.Close()
		}()
		if got := <-in; !errors.Is(got.Err, c.want) || got.From != handoff.ToDecode {
			t.Errorf("%s: got %+v", name, got)
		}
		l.Close()
	}
}
