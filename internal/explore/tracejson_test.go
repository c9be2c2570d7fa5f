package explore

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

func anyEvent(t *rapid.T) handoff.Event {
	small := rapid.IntRange(0, 3)
	page := rapid.Int32Range(0, 1<<20)
	return handoff.Event{
		Kind:   handoff.Kind(rapid.IntRange(int(handoff.Open), int(handoff.Reset)).Draw(t, "kind")),
		Room:   handoff.Room(rapid.Uint64Range(0, 1<<50).Draw(t, "room")),
		Tokens: small.Draw(t, "tokens"), MaxNew: small.Draw(t, "max"), Sent: small.Draw(t, "sent"), Prompt: small.Draw(t, "prompt"),
		Made: small.Draw(t, "made"), Pos: small.Draw(t, "pos"), Index: small.Draw(t, "index"),
		From: page.Draw(t, "from"), To: page.Draw(t, "to"), Pages: rapid.SliceOfN(page, 0, 4).Draw(t, "pages"),
		Gen: rapid.Uint64Range(0, 300).Draw(t, "gen"), Token: rapid.Byte().Draw(t, "token"),
		Stop: rapid.Bool().Draw(t, "stop"), Placeholder: rapid.Bool().Draw(t, "placeholder"),
		Summed: rapid.Bool().Draw(t, "summed"), OK: rapid.Bool().Draw(t, "ok"),
		Finish:  handoff.Finish(rapid.IntRange(0, 2).Draw(t, "finish")),
		Refusal: handoff.Refusal{Reason: handoff.Reason(small.Draw(t, "reason")), Have: small.Draw(t, "have"), Limit: small.Draw(t, "limit")},
	}
}

// What encoding/json writes is written and read the same way.
func TestCodecAgainstEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := anyEvent(t)
		want, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if got := "{" + string(appendJSON(nil, &e)) + "}"; got != string(want) {
			t.Fatalf("wrote %s\nwant  %s", got, want)
		}
		r := handoff.Record{By: handoff.ToDecode, In: &e, Name: rapid.StringMatching(`[a-z"\\é]{0,3}`).Draw(t, "name")}
		for range rapid.IntRange(0, 2).Draw(t, "actions") {
			r.Out = append(r.Out, handoff.Action{To: handoff.ToPrefill, Event: anyEvent(t)})
		}
		text := r.AppendLine(nil)
		var got line
		if err := got.parse(text[:len(text)-1]); err != nil {
			t.Fatal(err)
		}
		slow, err := slowLine(text)
		if err != nil {
			t.Fatal(err)
		}
		slow.text = got.text
		if len(got.in.Pages) == 0 {
			got.in.Pages, slow.in.Pages = nil, nil
		}
		if !reflect.DeepEqual(got, slow) {
			t.Fatalf("read  %+v\nwant %+v", got, slow)
		}
	})
}

func TestCodecLeavesOtherFormsToEncodingJSON(t *testing.T) {
	var got line
	err := got.parse([]byte(` { "by" : "decode", "in" : { "room": 1, "kind": "Abort" } } `))
	if err != nil || got.by != handoff.ToDecode || !reflect.DeepEqual(got.in, handoff.Event{Kind: handoff.Abort, Room: 1}) {
		t.Errorf("%+v %v", got, err)
	}
}
