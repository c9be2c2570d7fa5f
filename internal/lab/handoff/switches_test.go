package handoff

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestWhatIsOn(t *testing.T) {
	for _, c := range []struct {
		sw   Switches
		want string
	}{
		{Switches{}, "retire,coverage,quiesce,generations,tags:by_writer,unique_ids"},
		{Switches{Without: Coverage}, "retire,quiesce,generations,tags:by_writer,unique_ids"},
		{Switches{Defences: TagsAtReserve}, "retire,coverage,quiesce,generations,tags:at_reserve,unique_ids"},
		{Switches{Defences: TagsAtReserve | TagsByWriter}, "retire,coverage,quiesce,generations,tags:at_reserve,tags:by_writer,unique_ids"},
		{Switches{Defences: ZeroOnAlloc}, "retire,zero_on_alloc,coverage,quiesce,generations,tags:by_writer,unique_ids"},
		{Switches{Faults: StaleReserve}, "quiesce,unique_ids"},
		{Switches{Faults: StaleReserve, Defences: Retire}, "retire,quiesce,unique_ids"},
		{Switches{Faults: LateWrite}, "retire,unique_ids"},
		{Switches{Faults: LateWrite, Defences: QuiesceFirst}, "retire,quiesce,unique_ids"},
		{Switches{Faults: StaleSource, Defences: Generations}, "retire,quiesce,generations,unique_ids"},
		{Switches{Faults: DoubleOwner, Without: Retire}, "quiesce,unique_ids"},
		{Switches{Faults: IDReuse}, "retire,quiesce"},
		{Switches{Faults: StaleReserve | LateWrite | IDReuse}, ""},
		{Switches{Faults: StaleReserve, Defences: AbsentRefused}, "quiesce,checksum:receiver,checksum_absent:reject,unique_ids"},
		{Switches{Faults: StaleReserve, Defences: AbsentSkipped | ChecksumSender}, "quiesce,checksum:sender,checksum_absent:skip,unique_ids"},
	} {
		if got := c.sw.On().String(); got != c.want {
			t.Errorf("%+v: on are %s, want %s", c.sw, got, c.want)
		}
	}
}

func TestSwitchesAreNamed(t *testing.T) {
	if n := len(defenceNames); 1<<(n-1) != UniqueIDs {
		t.Errorf("%d names of defences", n)
	}
	if n := len(faultNames); 1<<(n-1) != OtherAbort {
		t.Errorf("%d names of faults", n)
	}
	want := Switches{Faults: LateWrite | IDReuse, Defences: TagsAtReserve, Without: Coverage | QuiesceFirst}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if s := `{"faults":"late_write,id_reuse","defences":"tags:at_reserve","without":"coverage,quiesce"}`; string(text) != s {
		t.Errorf("got %s, want %s", text, s)
	}
	var got Switches
	if err := json.Unmarshal(text, &got); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	var f Faults
	if err := f.UnmarshalText([]byte("late_write,tidy")); err == nil || !strings.Contains(err.Error(), `unknown fault "tidy": use any of stale_reserve,`) {
		t.Errorf("got %v", err)
	}
}
