package explore

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// scribe writes the trace of a random walk through a setup whose links keep
// order, as a live engine would.
type scribe struct {
	m     *Model
	world [parts]part
	left  budget
	out   []byte
}

var roleAt = map[slot]handoff.Role{slotRouter: handoff.ToRouter, slotPrefill: handoff.ToPrefill, slotDecode: handoff.ToDecode}

func (s *scribe) write(r handoff.Record) { s.out = r.AppendLine(s.out) }

// walk goes on until nothing more happens, and then closes the engine.
func (s *scribe) walk(rng *rand.Rand) {
	s.write(handoff.Record{By: handoff.ToRouter, Config: &s.m.setup.Engine})
	s.write(handoff.Record{By: handoff.ToPrefill, Start: true})
	s.write(handoff.Record{By: handoff.ToDecode, Start: true})
	for s.once(rng) {
	}
	closing := handoff.Event{Kind: handoff.PeerLost, Refusal: handoff.Refusal{Reason: handoff.Closing}}
	s.write(handoff.Record{By: handoff.ToRouter, In: &closing, Out: s.world[slotRouter].(*front).m.Clone().Step(closing)})
}

func (s *scribe) once(rng *rand.Rand) bool {
	type may struct {
		at slot
		f  free
	}
	var all []may
	for at, p := range s.world {
		for _, f := range p.choices(s.m) {
			// A fault that may happen happens seldom, so that most requests get somewhere.
			if !f.lull && s.left.allows(f.cost) && (f.cost == 0 || rng.IntN(150) == 0) {
				all = append(all, may{slotOf(at), f})
			}
		}
	}
	if len(all) == 0 {
		return false
	}
	c := all[rng.IntN(len(all))]
	s.left -= c.f.cost
	for _, h := range s.m.happen(&s.world, c.at, c.f.op) {
		if h.op.kind == opRestart && h.slot != slotPower {
			s.write(handoff.Record{By: roleAt[h.slot], Start: true})
		}
		if h.out.in.Kind != handoff.None && roleAt[h.slot] != handoff.Nobody {
			in := h.out.in
			s.write(handoff.Record{By: roleAt[h.slot], In: &in, Out: h.out.did})
		}
	}
	return true
}

func walkedTrace(t testing.TB, s Setup, seed uint64) []byte {
	m, err := NewModel(s)
	if err != nil {
		t.Fatal(err)
	}
	w := scribe{m: m, world: m.start(), left: s.Bounds.budget()}
	w.walk(rand.New(rand.NewPCG(seed, 5)))
	return w.out
}

func traced(t testing.TB, page handoff.Config) Setup {
	return Setup{
		Engine: page, Shapes: []Shape{
			{Tenant: "a", Tokens: 5, MaxNew: 6, Count: 6, ID: 1}, {Tenant: "b", Tokens: 9, MaxNew: 2, Count: 5, ID: 1},
			{Tenant: "b", Tokens: 10, MaxNew: 2, Count: 2, ID: 2},
		},
		Bounds: Bounds{Cancels: 4, Expiries: 2, Crashes: 2},
	}
}

// What the machines do is accepted, with aborts, time limits and crashes, on
// either kind of write.
func TestTracesOfTheModelAreAccepted(t *testing.T) {
	var all TraceReport
	for seed := range uint64(30) {
		for _, engine := range []handoff.Config{oneSided(4, 4, 8, 32), messages(4, 4, 8, 32)} {
			text := walkedTrace(t, traced(t, engine), seed)
			r, err := CheckTrace(bytes.NewReader(text))
			if err != nil {
				lines := bytes.Split(text, []byte("\n"))
				t.Fatalf("seed %d, one-sided %v: %v\n%s", seed, engine.OneSided, err, bytes.Join(lines[max(0, r.Lines-25):r.Lines], []byte("\n")))
			}
			all.Answers, all.Refusals, all.Cancels, all.Restarts = all.Answers+r.Answers, all.Refusals+r.Refusals, all.Cancels+r.Cancels, all.Restarts+r.Restarts
		}
	}
	if all.Answers < 150 || all.Refusals < 150 || all.Cancels < 50 || all.Restarts < 25 {
		t.Errorf("little has happened: %+v", all)
	}
}

// A trace with anything taken out, put in twice, exchanged or changed fails, as
// does one that is cut anywhere.
func TestTracesThatWereTamperedWithFail(t *testing.T) {
	s := traced(t, oneSided(4, 4, 8, 32))
	s.Bounds = Bounds{Cancels: 2}
	for seed := range uint64(2) {
		text := walkedTrace(t, s, seed)
		lines := strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
		fails := func(what string, i int, lines []string) {
			t.Helper()
			if r, err := CheckTrace(strings.NewReader(strings.Join(lines, ""))); err == nil {
				t.Errorf("seed %d: %s line %d is accepted: %s %+v", seed, what, i+1, lines[min(i, len(lines)-1)], r)
			}
		}
		for i := range lines {
			without := append(append([]string{}, lines[:i]...), lines[i+1:]...)
			twice := append(append([]string{}, lines[:i+1]...), lines[i:]...)
			fails("without", i, without)
			if i%3 != 0 {
				continue
			}
			if !strings.Contains(lines[i], `"start"`) && !strings.Contains(lines[i], `"PeerLost"`) {
				fails("twice", i, twice)
			}
			fails("cut before", i, lines[:i])
			changed := append([]string{}, lines...)
			if changed[i] = strings.Replace(lines[i], `"room":`, `"room":9`, 1); changed[i] != lines[i] {
				fails("another room in", i, changed)
			}
		}
		for cut := 1; cut < len(lines[len(lines)-1]); cut += 7 {
			last := lines[len(lines)-1]
			fails("half of", len(lines)-1, append(append([]string{}, lines[:len(lines)-1]...), last[:cut]))
		}
	}
}

func TestEmptyTraceFails(t *testing.T) {
	for _, text := range []string{"", "\n", "{}\n", `{"by":"decode","start":true}` + "\n"} {
		if _, err := CheckTrace(strings.NewReader(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// Nodes that part and meet again with neither of them having died: a write that
// was under way lands in what decode has freed.
func TestTraceOfAMeetingWithTheLiving(t *testing.T) {
	cfg := oneSided(4, 8, 8, 32)
	var s scribe
	router, prefill, decode := handoff.NewRouter(cfg), handoff.NewPrefill(cfg), handoff.NewDecode(cfg)
	step := func(by handoff.Role, in handoff.Event) []handoff.Action {
		machine := map[handoff.Role]func(handoff.Event) []handoff.Action{
			handoff.ToRouter: router.Step, handoff.ToPrefill: prefill.Step, handoff.ToDecode: decode.Step,
		}[by]
		out := machine(in)
		s.write(handoff.Record{By: by, In: &in, Out: out})
		return out
	}
	s.write(handoff.Record{By: handoff.ToRouter, Config: &cfg})
	s.write(handoff.Record{By: handoff.ToPrefill, Start: true})
	s.write(handoff.Record{By: handoff.ToDecode, Start: true})
	submit := step(handoff.ToRouter, handoff.Event{Kind: handoff.Open, Room: 1, Tokens: 5, MaxNew: 2})[0].Event
	hello := step(handoff.ToPrefill, submit)[0].Event
	step(handoff.ToDecode, submit)
	step(handoff.ToPrefill, step(handoff.ToDecode, hello)[0].Event)
	page := step(handoff.ToPrefill, handoff.Event{Kind: handoff.Ran, Room: 1})[0].Event
	good := len(s.out)
	for _, met := range []bool{false, true} {
		s.out = s.out[:good]
		prefill, decode, router := prefill.Clone(), decode.Clone(), router.Clone()
		steps := map[handoff.Role]func(handoff.Event) []handoff.Action{
			handoff.ToRouter: router.Step, handoff.ToPrefill: prefill.Step, handoff.ToDecode: decode.Step,
		}
		step := func(by handoff.Role, in handoff.Event) { s.write(handoff.Record{By: by, In: &in, Out: steps[by](in)}) }
		step(handoff.ToPrefill, handoff.Event{Kind: handoff.PeerLost})
		step(handoff.ToDecode, handoff.Event{Kind: handoff.PeerLost})
		if met {
			step(handoff.ToDecode, handoff.Event{Kind: handoff.Reset})
		}
		put := handoff.Event{Kind: handoff.Put, Room: 1, Index: page.Index, To: page.To, Gen: page.Gen, OK: true}
		step(handoff.ToPrefill, put)
		step(handoff.ToRouter, handoff.Event{Kind: handoff.PeerLost, Refusal: handoff.Refusal{Reason: handoff.Closing}})
		_, err := CheckTrace(bytes.NewReader(s.out))
		if met != (err != nil && strings.Contains(err.Error(), "I7: a page of room 1 lands in page 0 after decode was told")) || !met && err != nil {
			t.Errorf("met: %v, %v", met, err)
		}
	}
}

// A trace that says more than this program knows of is not held to be good.
func TestTracesOfAnotherKindFail(t *testing.T) {
	text := string(walkedTrace(t, traced(t, oneSided(4, 4, 8, 32)), 1))
	for _, x := range []struct{ old, new string }{
		{`"PageSize":4`, `"PageSize":4,"Wings":2`}, {`{"by":"prefill","in":`, `{"wings":2,"by":"prefill","in":`},
		{`"room":1,`, `"room":1,"wings":2,`}, {`"PageSize":4`, `"PageSize":8`}, {`"OneSided":true`, `"OneSided":false`},
		{"\n", "{}\n"}, {"\n", "\n\n"}, {`"by":"decode"`, `"by":"client"`},
	} {
		if changed := strings.Replace(text, x.old, x.new, 1); changed == text {
			t.Errorf("no %s to change", x.old)
		} else if _, err := CheckTrace(strings.NewReader(changed)); err == nil {
			t.Errorf("%s in place of %s is accepted", x.new, x.old)
		}
	}
	spaced := strings.ReplaceAll(text, ":", ": ")
	if _, err := CheckTrace(strings.NewReader(spaced)); err != nil {
		t.Errorf("written in another way: %v", err)
	}
}

// Each fault shows in what an engine that has it writes down.
func TestTracesOfFaultyEnginesFail(t *testing.T) {
	for _, c := range columns {
		found := map[string]int{}
		for seed := range uint64(40) {
			s := traced(t, oneSided(4, 4, 8, 32)).With(handoff.Switches{Faults: c.fault})
			s.Bounds = Bounds{Cancels: 7}
			s.Shapes = append(s.Shapes, Shape{Tenant: "a", Tokens: 9, MaxNew: 2, Count: 1, ID: 3, Flawed: true})
			if _, err := CheckTrace(bytes.NewReader(walkedTrace(t, s, seed))); err != nil {
				_, what, _ := strings.Cut(err.Error(), ": ")
				what, _, _ = strings.Cut(what, ":")
				found[what]++
			}
		}
		t.Logf("%s: %v", c.name, found)
		if len(found) == 0 {
			t.Errorf("%s does not show", c.name)
		}
	}
}

func TestReadErrorIsNotAVerdict(t *testing.T) {
	_, err := CheckTrace(&broken{})
	if !Unreadable(err) {
		t.Errorf("%v", err)
	}
	if _, err := CheckTrace(strings.NewReader("x")); err == nil || Unreadable(err) {
		t.Errorf("%v", err)
	}
}

type broken struct{}

func (*broken) Read([]byte) (int, error) { return 0, strings.NewReader("").UnreadByte() }

func FuzzCheckTrace(f *testing.F) {
	s := traced(f, oneSided(4, 4, 8, 32))
	f.Add(walkedTrace(f, s, 1))
	f.Add([]byte(`{"config":{"PageSize":4,"PrefillPages":4,"DecodePages":4,"Context":16},"by":"router"}` + "\n" + `{"by":"decode","start":true}` + "\n{"))
	f.Fuzz(func(t *testing.T, text []byte) { CheckTrace(bytes.NewReader(text)) })
}

func BenchmarkCheckTrace(b *testing.B) {
	s := traced(b, oneSided(4, 4, 8, 32))
	var text []byte
	for seed := range uint64(200) {
		text = append(text, walkedTrace(b, s, seed)...)
	}
	b.SetBytes(int64(len(text)))
	lines := bytes.Count(text, []byte("\n"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := CheckTrace(bytes.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(lines)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
