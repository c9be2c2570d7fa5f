package handoff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestStories replays the stories in testdata. Verbs:
//
//	engine page=4 prefill=4 decode=8 context=32 policy=lifo onesided on=(stale_reserve, retire) without=(coverage) : a new engine, pools in pages
//	open room=1 tokens=7 max=3           : a client sends a prompt
//	cancel room=1                        : the client goes away
//	expire room=1                        : the router's clock gives it up
//	crash node=prefill, restart node=prefill
//	lose link=prefill>decode             : the next message there is lost; repeat comes again at the end, overtake from=2 comes first
//	land write=1                         : the second of the writes that have begun ends
//	send                                 : prefill's next message, or write, is on its way
//	slow writes=1                        : run leaves the first of the writes that have begun alone
//	run [until=Meta]                     : until nothing is left to do, or until that event comes next; Run and Step are work
//	pages                                : who owns each page and who wrote each of its slots
//	reads                                : what has been read that its reader did not write
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		var w *world
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "engine" {
				w = newWorld(storyConfig(t, d))
				return ""
			}
			w.logs, w.log = true, nil
			out := act(t, w, d)
			w.check()
			return out
		})
	})
}

func act(t *testing.T, w *world, d *datadriven.TestData) string {
	var room, tokens, maxNew int
	switch d.Cmd {
	case "open":
		d.ScanArgs(t, "room", &room)
		d.ScanArgs(t, "tokens", &tokens)
		d.ScanArgs(t, "max", &maxNew)
		w.open(Room(room), tokens, maxNew)
	case "cancel":
		d.ScanArgs(t, "room", &room)
		w.cancel(Room(room))
	case "expire":
		d.ScanArgs(t, "room", &room)
		w.expire(Room(room))
	case "crash", "restart":
		do := map[string]func(Role) bool{"crash": w.crash, "restart": w.restart}[d.Cmd]
		if !do(role(t, d)) {
			t.Fatalf("%s: cannot", d.Pos)
		}
	case "lose", "repeat", "overtake":
		if !meddle(t, w, d) {
			t.Fatalf("%s: there is no such message", d.Pos)
		}
	case "land":
		var write int
		d.ScanArgs(t, "write", &write)
		if !w.land(write) {
			t.Fatalf("%s: there is no such write", d.Pos)
		}
	case "send":
		if !w.send() {
			t.Fatalf("%s: prefill has nothing to send", d.Pos)
		}
	case "slow":
		d.ScanArgs(t, "writes", &w.slow)
	case "run":
		until := None
		if d.HasArg("until") {
			var name string
			d.ScanArgs(t, "until", &name)
			until = kindNamed(t, name)
		}
		for until == None || !w.nextIs(until) {
			if !w.once() {
				break
			}
		}
	case "pages":
		return "prefill\n" + picture(&w.prefill.pool, w.ppages) + "decode\n" + picture(&w.decode.pool, w.dpages)
	case "reads":
		if len(w.stale) == 0 {
			return "all read slots were written by their reader"
		}
		return strings.Join(w.stale, "\n")
	default:
		t.Fatalf("unknown verb %q", d.Cmd)
	}
	if len(w.log) == 0 {
		return "nothing to do"
	}
	return strings.Join(w.log, "\n")
}

func role(t *testing.T, d *datadriven.TestData) (r Role) {
	var name string
	d.ScanArgs(t, "node", &name)
	if err := r.UnmarshalText([]byte(name)); err != nil {
		t.Fatal(err)
	}
	return r
}

func meddle(t *testing.T, w *world, d *datadriven.TestData) bool {
	var name string
	d.ScanArgs(t, "link", &name)
	for _, i := range between {
		if fmt.Sprintf("%v>%v", linkOrder[i].from, linkOrder[i].to) != name {
			continue
		}
		switch d.Cmd {
		case "lose":
			return w.lose(i)
		case "repeat":
			return w.repeat(i)
		}
		var from int
		d.ScanArgs(t, "from", &from)
		return w.overtake(i, from)
	}
	return false
}

func kindNamed(t *testing.T, name string) Kind {
	for k := range kindNames {
		if kindNames[k] == name {
			return Kind(k)
		}
	}
	t.Fatalf("unknown kind %q", name)
	return None
}

func storyConfig(t *testing.T, d *datadriven.TestData) Config {
	c := Config{PageSize: 4, PrefillPages: 4, DecodePages: 8, Context: 32}
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "page":
			d.ScanArgs(t, "page", &c.PageSize)
		case "prefill":
			d.ScanArgs(t, "prefill", &c.PrefillPages)
		case "decode":
			d.ScanArgs(t, "decode", &c.DecodePages)
		case "context":
			d.ScanArgs(t, "context", &c.Context)
		case "policy":
			var err error
			if c.Policy, err = ParsePolicy(arg.Vals[0]); err != nil {
				t.Fatal(err)
			}
		case "truncate":
			c.AutoTruncate = true
		case "onesided":
			c.OneSided = true
		case "on":
			for _, name := range arg.Vals {
				switchOn(t, &c.Switches, name)
			}
		case "without":
			if err := c.Switches.Without.UnmarshalText([]byte(strings.Join(arg.Vals, ","))); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatalf("unknown argument %q", arg.Key)
		}
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return c
}

func switchOn(t *testing.T, s *Switches, name string) {
	var f Faults
	if f.UnmarshalText([]byte(name)) == nil {
		s.Faults |= f
		return
	}
	var on Defences
	if err := on.UnmarshalText([]byte(name)); err != nil {
		t.Fatal(err)
	}
	s.Defences |= on
}
