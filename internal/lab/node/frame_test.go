package node

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/model"
	"github.com/kvcanary/kvcanary/pagetag"
)

var testShape = Shape{PageSize: 2, PageBytes: 32, Context: 100, Pages: 50}

func anyFrame(t *rapid.T) Frame {
	num := rapid.IntRange(0, maxNumber)
	if rapid.Bool().Draw(t, "stats") {
		return Frame{Stats: &Stats{
			UsedPages: num.Draw(t, "used"), Running: num.Draw(t, "running"), Waiting: num.Draw(t, "waiting"),
			Failed: rapid.Int64Min(0).Draw(t, "failed"), DrainingPages: num.Draw(t, "draining"), Epoch: rapid.Uint64().Draw(t, "epoch"),
		}}
	}
	if rapid.IntRange(0, 9).Draw(t, "meet") == 0 {
		return Frame{Meet: rapid.StringN(1, 40, 255).Draw(t, "addr")}
	}
	page := rapid.Int32Range(0, int32(testShape.Pages-1))
	f := Frame{Event: handoff.Event{
		Kind: handoff.Kind(rapid.IntRange(int(handoff.Open), int(handoff.Reset)).Draw(t, "kind")),
		Room: handoff.Room(rapid.Uint64Min(1).Draw(t, "room")), Tokens: num.Draw(t, "tokens"), MaxNew: num.Draw(t, "max"),
		Sent: num.Draw(t, "sent"), Prompt: num.Draw(t, "prompt"), Made: num.Draw(t, "made"), Pos: num.Draw(t, "pos"),
		Index: num.Draw(t, "index"), From: page.Draw(t, "from"), To: page.Draw(t, "to"), Token: rapid.Byte().Draw(t, "token"),
		Stop: rapid.Bool().Draw(t, "stop"), Placeholder: rapid.Bool().Draw(t, "placeholder"),
		Gen: rapid.Uint64().Draw(t, "gen"), OK: rapid.Bool().Draw(t, "ok"),
		Finish: handoff.Finish(rapid.IntRange(0, 2).Draw(t, "finish")),
		Refusal: handoff.Refusal{
			Reason: handoff.Reason(rapid.IntRange(0, int(handoff.NotOwned)).Draw(t, "reason")),
			Have:   num.Draw(t, "have"), Extra: num.Draw(t, "extra"), Limit: num.Draw(t, "limit"),
		},
	}}
	if n := rapid.IntRange(0, testShape.Pages).Draw(t, "pages"); n > 0 {
		f.Event.Pages = rapid.SliceOfN(page, n, n).Draw(t, "list")
	}
	switch f.Event.Kind {
	case handoff.Meta:
		if f.Event.Summed = rapid.Bool().Draw(t, "summed"); f.Event.Summed {
			f.Data = rapid.SliceOfN(rapid.Byte(), sumBytes, sumBytes).Draw(t, "sum")
		}
	case handoff.Page:
		f.Mark = pagetag.Mark{Owner: rapid.Uint64().Draw(t, "owner"), Place: rapid.Uint64().Draw(t, "place")}
		f.Data = rapid.SliceOfN(rapid.Byte(), testShape.PageBytes, testShape.PageBytes).Draw(t, "data")
	case handoff.Submit:
		f.Of = anyOrigin(t)
		f.Sampling = Sampling{rapid.Float64().Draw(t, "temperature"), rapid.Uint64().Draw(t, "seed")}
		if f.Data = rapid.SliceOfN(rapid.Byte(), 1, testShape.Context).Draw(t, "data"); rapid.Bool().Draw(t, "empty") {
			f.Data = nil
		} else {
			f.Event.Tokens = len(f.Data)
		}
	}
	if tellsCached(f.Event.Kind) {
		f.Cached = num.Draw(t, "cached")
	}
	return f
}

func anyOrigin(t *rapid.T) Origin {
	o := Origin{Tenant: rapid.StringN(0, -1, MaxName).Draw(t, "tenant"), Adapter: rapid.StringN(0, -1, MaxName).Draw(t, "adapter")}
	o.Salt = rapid.StringN(0, -1, MaxName).Draw(t, "salt")
	for range rapid.IntRange(0, MaxImages).Draw(t, "pictures") {
		m := Image{At: rapid.IntRange(0, maxNumber).Draw(t, "at"), Sees: make([]byte, rapid.IntRange(0, model.ImageTokens).Draw(t, "sees"))}
		m.Digest[0] = rapid.Byte().Draw(t, "digest")
		o.Images = append(o.Images, m)
	}
	return o
}

func TestFramesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyFrame(t)
		b := appendFrame([]byte("before"), &f)[len("before"):]
		if n := int(binary.LittleEndian.Uint32(b)); n != len(b)-4 || n > testShape.maxBody() {
			t.Fatalf("%d bytes say that they are %d", len(b)-4, n)
		}
		got, err := parseFrame(b[4:], testShape)
		if err != nil || !reflect.DeepEqual(got, f) {
			t.Fatalf("got %+v, %v\nwant %+v", got, err, f)
		}
		// A frame that is cut anywhere is none.
		if cut := rapid.IntRange(0, len(b)-5).Draw(t, "cut"); f.Event.Kind != handoff.Submit && f.Meet == "" || f.Meet == "" && cut < len(b)-4-len(f.Data) {
			if _, err := parseFrame(b[4:4+cut], testShape); !errors.Is(err, ErrFrame) {
				t.Fatalf("cut to %d of %d: %v", cut, len(b)-4, err)
			}
		}
	})
}

func TestBadFramesSayWhatIsWrong(t *testing.T) {
	event := func(change func(*Frame)) []byte {
		f := Frame{Event: handoff.Event{Kind: handoff.Ack, Room: 1}}
		change(&f)
		return appendFrame(nil, &f)[4:]
	}
	for want, body := range map[string][]byte{
		"ends too early":                {},
		"type 9 is not known":           {9, 0},
		"bytes after statistics":        append(appendFrame(nil, &Frame{Stats: &Stats{}})[4:], 0),
		"a checksum of 15 bytes":        event(func(f *Frame) { f.Event.Kind, f.Event.Summed, f.Data = handoff.Meta, true, make([]byte, 15) }),
		"a checksum of 0 bytes":         event(func(f *Frame) { f.Event.Kind, f.Event.Summed = handoff.Meta, true }),
		"an address of 0 bytes":         {frameMeet},
		"a number is cut":               {frameStats, 0x80},
		"of room 0":                     event(func(f *Frame) { f.Event.Room = 0 }),
		"kind(99)":                      event(func(f *Frame) { f.Event.Kind = 99 }),
		"where a page has 32":           event(func(f *Frame) { f.Event.Kind, f.Data = handoff.Page, make([]byte, 31) }),
		"says it has 9 tokens":          event(func(f *Frame) { f.Event.Kind, f.Event.Tokens, f.Data = handoff.Submit, 9, make([]byte, 8) }),
		"1 bytes after event Ack":       event(func(f *Frame) { f.Data = []byte{1} }),
		"51 pages where the pool has":   event(func(f *Frame) { f.Event.Pages = make([]int32, 51) }),
		"a number is cut or above 49":   event(func(f *Frame) { f.Event.Pages = []int32{50} }),
		"has a field that is not known": event(func(f *Frame) { f.Event.Refusal.Reason = 200 }),
	} {
		if _, err := parseFrame(body, testShape); !errors.Is(err, ErrFrame) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// FuzzParseFrame feeds a decoder what a peer might send. Whatever is taken for
// a frame must be within bounds and survive being written and read again.
func FuzzParseFrame(f *testing.F) {
	for _, frame := range []Frame{
		{Stats: &Stats{UsedPages: 3, Failed: 1, Epoch: 9}},
		{Event: handoff.Event{Kind: handoff.Ack, Room: 1}},
		{Event: handoff.Event{Kind: handoff.Submit, Room: 2, Tokens: 3}, Sampling: Sampling{1, 7}, Data: []byte("abc")},
		{Event: handoff.Event{Kind: handoff.Submit, Room: 2, Tokens: 1}, Of: Origin{"a", "ada", []Image{{1, [16]byte{2}, []byte("word")}}, "salt"}, Data: []byte("x")},
		{Event: handoff.Event{Kind: handoff.Done, Room: 2}, Cached: 16},
		{Event: handoff.Event{Kind: handoff.Page, Room: 2, Index: 1, From: 3, To: 4}, Data: make([]byte, testShape.PageBytes)},
		{Event: handoff.Event{Kind: handoff.Reserved, Room: 2, Pages: []int32{4, 1, 3}}},
		{Event: handoff.Event{Kind: handoff.Refused, Room: 2, Refusal: handoff.Refusal{Reason: handoff.OverInput, Have: 9, Limit: 8}}},
	} {
		f.Add(appendFrame(nil, &frame)[4:])
	}
	f.Add([]byte{frameMeet, '1', ':', '2'})
	f.Add([]byte{frameEvent, byte(handoff.Page), 255, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, body []byte) {
		frame, err := parseFrame(body, testShape)
		if err != nil {
			if !errors.Is(err, ErrFrame) {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		if len(frame.Event.Pages) > testShape.Pages || len(frame.Data) > len(body) {
			t.Fatalf("out of bounds: %+v", frame)
		}
		again, err := parseFrame(appendFrame(nil, &frame)[4:], testShape)
		if math.IsNaN(frame.Sampling.Temperature) {
			frame.Sampling.Temperature, again.Sampling.Temperature = 0, 0
		}
		if err != nil || !reflect.DeepEqual(again, frame) {
			t.Fatalf("%+v comes back as %+v, %v", frame, again, err)
		}
	})
}

func BenchmarkPageFrame(b *testing.B) {
	shape := Shape{PageSize: 64, PageBytes: 25_600, Context: 1 << 20, Pages: 20_480}
	f := Frame{Event: handoff.Event{Kind: handoff.Page, Room: 1, Index: 5, From: 7, To: 9}, Data: bytes.Repeat([]byte{7}, shape.PageBytes)}
	var buf []byte
	b.SetBytes(int64(shape.PageBytes))
	for b.Loop() {
		buf = appendFrame(buf[:0], &f)
		if _, err := parseFrame(buf[4:], shape); err != nil {
			b.Fatal(err)
		}
	}
}
