package explore

import (
	"reflect"
	"testing"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// Events that differ in any field are packed differently.
func TestAppendEventPacksAllFields(t *testing.T) {
	plain := string(appendEvent(nil, handoff.Event{}))
	var fill func(v reflect.Value, path string)
	e := handoff.Event{}
	seen := map[string]string{plain: "nothing"}
	fill = func(v reflect.Value, path string) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				fill(v.Field(i), path+"."+v.Type().Field(i).Name)
			}
			return
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Slice:
			v.Set(reflect.ValueOf([]int32{3}))
		case reflect.Int, reflect.Int32:
			v.SetInt(1)
		case reflect.Uint8, reflect.Uint64:
			v.SetUint(1)
		default:
			t.Fatalf("%s: what is a %v?", path, v.Kind())
		}
		packed := string(appendEvent(nil, e))
		if other, taken := seen[packed]; taken {
			t.Errorf("an event with %s is packed like one with %s", path, other)
		}
		seen[packed] = path
		v.SetZero()
	}
	fill(reflect.ValueOf(&e).Elem(), "")
	if len(seen) < 20 {
		t.Errorf("only %d fields", len(seen))
	}
}

func TestBudget(t *testing.T) {
	from := Bounds{Cancels: 1, Losses: 2, Total: 2}.budget()
	b := from
	for _, c := range []struct {
		cost   budget
		allows bool
	}{{oneCrash, false}, {oneCopy, false}, {oneCancel, true}, {oneCancel, false}, {oneLoss, true}, {oneLoss, false}} {
		if got := b.allows(c.cost); got != c.allows {
			t.Errorf("%x allows %x: %v", b, c.cost, got)
		}
		if c.allows {
			b -= c.cost
		}
	}
	if !b.spent(from, oneLoss) || !b.spent(from, oneCrash|oneLoss) || b.spent(from, oneCrash|oneCopy) {
		t.Errorf("%x spent from %x", b, from)
	}
}

func at(l *link, kinds ...handoff.Kind) bool {
	if len(kinds) != len(l.msgs) {
		return false
	}
	for i, k := range kinds {
		if l.msgs[i].ev.Kind != k {
			return false
		}
	}
	return true
}

func do(l *link, k opKind, a uint8, kind handoff.Kind) (*link, outcome) {
	out := l.do(nil, op{kind: k, a: a, msg: msg{ev: handoff.Event{Kind: kind}}})
	return out.next.(*link), out
}

func TestUnorderedLink(t *testing.T) {
	l := &link{self: slotPD, from: slotPrefill, to: slotDecode, bag: true}
	for _, k := range []handoff.Kind{handoff.Meta, handoff.Hello, handoff.Meta} {
		l, _ = do(l, opPush, 0, k)
	}
	if !at(l, handoff.Hello, handoff.Meta, handoff.Meta) {
		t.Fatalf("not sorted: %v", l.msgs)
	}
	// The two Metas are the same: three choices for one of them and three for Hello.
	if n := len(l.choices(nil)); n != 6 {
		t.Errorf("%d choices", n)
	}
	l, _ = do(l, opCut, 0, handoff.PeerLost)
	l, _ = do(l, opPush, 0, handoff.Reset)
	l, _ = do(l, opPush, 0, handoff.Hello)
	if !at(l, handoff.Hello, handoff.Meta, handoff.Meta, handoff.PeerLost, handoff.Reset, handoff.Hello) {
		t.Fatalf("something overtakes a mark: %v", l.msgs)
	}
	if n := len(l.choices(nil)); n != 7 {
		t.Errorf("%d choices", n)
	}
	l, _ = do(l, opTake, 3, 0)
	if !at(l, handoff.Reset, handoff.Hello) {
		t.Fatalf("what is older than the loss of its sender stays: %v", l.msgs)
	}
	l, out := do(l, opTake, 0, 0)
	if len(out.effects) < 2 || out.effects[1].slot != slotDP || out.effects[1].op.kind != opUp || !at(l, handoff.Hello) {
		t.Errorf("the way back is not opened: %v", out.effects)
	}
}

func TestLinkThatIsDownTakesNothing(t *testing.T) {
	l := &link{self: slotDP, from: slotDecode, to: slotPrefill}
	l, _ = do(l, opPush, 0, handoff.Ack)
	l, _ = do(l, opDown, 0, 0)
	l, _ = do(l, opPush, 0, handoff.Ack)
	if !at(l) {
		t.Fatalf("holds %v", l.msgs)
	}
	l, _ = do(l, opUp, 0, 0)
	if l, _ = do(l, opPush, 0, handoff.Ack); !at(l, handoff.Ack) {
		t.Errorf("holds %v", l.msgs)
	}
}

func TestCyclic(t *testing.T) {
	for _, c := range []struct {
		edges map[partID][]partID
		want  bool
	}{
		{nil, false},
		{map[partID][]partID{1: {2, 3}, 2: {3, 3}, 3: {4}}, false},
		{map[partID][]partID{1: {2}, 2: {3}, 3: {2}}, true},
		{map[partID][]partID{1: {1}}, true},
	} {
		if got := cyclic(c.edges); got != c.want {
			t.Errorf("%v: %v", c.edges, got)
		}
	}
}

func TestSetupsAreSound(t *testing.T) {
	names := map[string]bool{}
	for _, s := range Setups {
		if names[s.Name] {
			t.Errorf("%s is there twice", s.Name)
		}
		names[s.Name] = true
		if _, err := NewModel(s); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	for _, bad := range []Setup{
		{Engine: handoff.Config{}},
		{Engine: oneSided(4, 4, 4, 16)},
		{Engine: oneSided(4, 4, 4, 16), Shapes: []Shape{{Tokens: 5, MaxNew: 1, Count: 16}}},
		{Engine: oneSided(4, 4, 4, 16), Shapes: twoOfFour, Bounds: Bounds{Cancels: 8}},
		{Engine: oneSided(4, 4, 4, 16), Shapes: twoOfFour, Bounds: Bounds{Losses: 1}},
	} {
		if _, err := NewModel(bad); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}
