package handoff

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func TestTraceRoundTrip(t *testing.T) {
	cfg := Config{Context: 64, PageSize: 4, PrefillPages: 8, DecodePages: 16, Policy: Sort}
	in := Event{Kind: Meta, Room: 7, Token: 65, Sent: 9, Prompt: 9, Pages: []int32{3, 0, 2}, Finish: Length, Refusal: Refusal{Reason: OverInput, Have: 9, Limit: 8}}
	want := []Record{
		{By: ToRouter, Config: &cfg},
		{By: ToRouter, Name: "chatcmpl-1", In: &Event{Kind: Open, Room: 7, Tokens: 9, MaxNew: 4}},
		{By: ToDecode, In: &in, Out: []Action{{ToPrefill, Event{Kind: Ack, Room: 7}}, {Self, Event{Kind: Zero, Room: 7, To: 5}}}},
	}
	var file []byte
	for _, r := range want {
		file = r.AppendLine(file)
	}
	var got []Record
	if err := ReadTrace(bytes.NewReader(file), func(r Record) error { got = append(got, r); return nil }); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

func TestBadTraceNamesTheLine(t *testing.T) {
	good := string(Record{By: ToDecode, In: &Event{Kind: Abort, Room: 1}}.AppendLine(nil))
	for _, bad := range []string{"{", "x", `{"by":"nobody here"}`, `{"in":{"kind":"Nonsense","room":1}}`, good[:len(good)/2]} {
		err := ReadTrace(strings.NewReader(good+bad), func(Record) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// The pages of a request that decode never got are those of whoever had them before.
func TestOriginsOfTheIncident(t *testing.T) {
	cfg := Config{Context: 64, PageSize: 4, PrefillPages: 4, DecodePages: 8, Policy: LIFO, Switches: Switches{Faults: StaleReserve}}
	d := NewDecode(cfg)
	o := NewOrigins(cfg)
	got := map[Room][]Origin{}
	o.OnCommit = func(room Room, _ []int32, origins []Origin) { got[room] = origins }
	step := func(in Event) {
		if r := (Record{By: ToDecode, In: &in, Out: d.Step(in)}); !o.Step(r) {
			t.Fatalf("the machine would not have done %v", r)
		}
	}
	// Room 1 has three pages, all of them sent.
	step(Event{Kind: Submit, Room: 1, Tokens: 12, MaxNew: 1})
	step(Event{Kind: Hello, Room: 1, Tokens: 12})
	for i, page := range d.Table(1) {
		step(Event{Kind: Page, Room: 1, Index: i, To: page})
	}
	step(Event{Kind: Meta, Room: 1, Token: 'x', Sent: 12, Prompt: 12})
	// Room 2 gets the same pages back; only the first is sent.
	step(Event{Kind: Submit, Room: 2, Tokens: 12, MaxNew: 1})
	step(Event{Kind: Hello, Room: 2, Tokens: 1})
	step(Event{Kind: Page, Room: 2, Index: 0, To: d.Table(2)[0]})
	step(Event{Kind: Meta, Room: 2, Token: 1, Sent: 1, Prompt: 1})

	if want := []Origin{{1, 0}, {1, 1}, {1, 2}}; !reflect.DeepEqual(got[1], want) {
		t.Errorf("room 1 read %v, want its own %v", got[1], want)
	}
	if len(got[2]) != 3 || got[2][0] != (Origin{2, 0}) || got[2][1].Room != 1 || got[2][2].Room != 1 {
		t.Errorf("room 2 read %v, want one page of its own and two of room 1", got[2])
	}
	if o.Step(Record{By: ToDecode, In: &Event{Kind: Abort, Room: 9}, Out: []Action{{Self, Event{Kind: Forget, Room: 9}}}}) {
		t.Error("a step that the machine does not make is accepted")
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add([]byte(`{"by":"decode","in":{"kind":"Submit","room":1,"tokens":5}}` + "\n"))
	f.Add([]byte(`{"config":{"PageSize":4}}` + "\n{"))
	f.Fuzz(func(t *testing.T, b []byte) {
		ReadTrace(bytes.NewReader(b), func(Record) error { return nil })
	})
}
