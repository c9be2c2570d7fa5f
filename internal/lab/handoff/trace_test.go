package handoff

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// traced walks an engine and returns its trace as it is written and read again.
func traced(t *testing.T, sw Switches) (cfg Config, records []Record) {
	t.Helper()
	cfg = Config{PageSize: 4, PrefillPages: 4, DecodePages: 10, Context: 40, Policy: Sort, Switches: sw}
	w := newWorld(cfg)
	w.logs = true
	walk(w, rand.New(rand.NewPCG(1, 2)).IntN, 800)
	var file []byte
	for _, r := range w.trace {
		file = r.AppendLine(file)
	}
	if err := ReadTrace(bytes.NewReader(file), func(r Record) error {
		records = append(records, r)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(records) != len(w.trace) {
		t.Fatalf("%d records written, %d read", len(w.trace), len(records))
	}
	for i, r := range records {
		if r.By != w.trace[i].By || !reflect.DeepEqual(r.In, w.trace[i].In) || len(r.Out) != len(w.trace[i].Out) {
			t.Fatalf("record %d: wrote %+v, read %+v", i, w.trace[i], r)
		}
		for j := range r.Out {
			if !reflect.DeepEqual(r.Out[j], w.trace[i].Out[j]) {
				t.Fatalf("record %d: wrote %+v, read %+v", i, w.trace[i].Out[j], r.Out[j])
			}
		}
	}
	return cfg, records
}

func TestOriginsSeeTheLeakInATrace(t *testing.T) {
	for name, sw := range map[string]Switches{"correct": {}, "faulty": {StaleReserve: true}} {
		cfg, records := traced(t, sw)
		o := NewOrigins(cfg)
		commits, foreign := 0, 0
		o.OnCommit = func(room Room, table []int32, origins []Origin) {
			commits++
			for i, from := range origins {
				if from != (Origin{room, i}) {
					foreign++
				}
			}
		}
		for i, r := range records {
			if !o.Step(r) {
				t.Fatalf("%s: record %d is not what the machine does: %+v", name, i, r)
			}
		}
		if commits < 10 || (foreign > 0) != sw.StaleReserve {
			t.Errorf("%s: %d commits with %d foreign pages", name, commits, foreign)
		}
	}
}

func TestOriginsRefuseWhatDidNotHappen(t *testing.T) {
	cfg, records := traced(t, Switches{})
	o := NewOrigins(cfg)
	for _, r := range records {
		if r.By == ToDecode && len(r.Out) > 0 {
			r.Out = append(r.Out, Action{To: ToRouter, Event: Event{Kind: Token, Room: 1}})
			if o.Step(r) {
				t.Error("an action that nobody took passes")
			}
			return
		}
		o.Step(r)
	}
	t.Fatal("decode does nothing")
}

func TestReadTraceNamesTheLine(t *testing.T) {
	good := string(Record{By: ToDecode, In: &Event{Kind: Ack, Room: 1}}.AppendLine(nil))
	stop := errors.New("enough")
	for want, c := range map[string]struct {
		text string
		f    func(Record) error
	}{
		"trace line 2: unexpected end": {good + `{"by":"dec`, nil},
		`trace line 1: unknown kind`:   {strings.Replace(good, "Ack", "Nack", 1), nil},
		`trace line 1: unknown role`:   {strings.Replace(good, "decode", "router2", 1), nil},
		"trace line 2: enough":         {good + good, func() func(Record) error { n := 0; return func(Record) error { n++; return map[int]error{2: stop}[n] } }()},
	} {
		f := c.f
		if f == nil {
			f = func(Record) error { return nil }
		}
		if err := ReadTrace(strings.NewReader(c.text), f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
