package diagnose

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// table is of three faults, one with two modes, under two protocols.
func table() *Table {
	t := &Table{Schema: Schema}
	for _, e := range []struct {
		fault, protocol, set string
		n                    int
	}{
		{"a:one", "p", "leak, over", 18}, {"a:one", "p", "", 2}, {"a:one", "q", "", 20},
		{"a:two", "p", "fail_open, over", 20}, {"a:two", "q", "", 20},
		{"b", "p", "leak, past", 12}, {"b", "p", "", 8}, {"b", "q", "leak, live", 20},
		{"c", "p", "", 20}, {"c", "q", "contamination", 15}, {"c", "q", "", 5},
	} {
		for range e.n {
			t.Add(e.fault, e.protocol, parse(e.set))
		}
	}
	return t
}

func TestTheLikeliestClassComesFirst(t *testing.T) {
	for _, c := range []struct{ p, q, class, mode string }{
		{"leak, over", "", "a", "one"},
		{"fail_open, over", "", "a", "two"},
		{"leak, past", "leak, live", "b", ""},
		{"", "leak, live", "b", ""},
		{"", "contamination", "c", ""},
		{"truncation, over", "sharing, arm hit", Other, ""}, // nothing of the table does that
	} {
		got := table().Of(Seen{"p": parse(c.p), "q": parse(c.q)})
		if len(got) == 0 || got[0].Fault != c.class || got[0].Mode != c.mode || got[0].Probability < 0.5 {
			t.Errorf("%q and %q: %+v, want %s:%s first", c.p, c.q, got, c.class, c.mode)
		}
	}
}

func TestNothingFoundIsNotDiagnosed(t *testing.T) {
	for name, seen := range map[string]Seen{
		"nothing run":                  nil,
		"all clean":                    {"p": 0, "q": 0},
		"found by an unknown protocol": {"p": 0, "new": parse("leak")},
	} {
		if got := table().Of(seen); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Silence of a protocol that would have found it counts against a class.
func TestSilenceCounts(t *testing.T) {
	with, without := table().Of(Seen{"p": parse("leak, past"), "q": 0}), table().Of(Seen{"p": parse("leak, past")})
	p := func(all []Diagnosis) float64 {
		for _, d := range all {
			if d.Fault == "b" {
				return d.Probability
			}
		}
		return 0
	}
	if p(with) >= p(without) {
		t.Errorf("q always finds b; with q silent it has %v, without q %v", p(with), p(without))
	}
}

func TestPosteriorIsADistribution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		signs := rapid.Uint32Range(0, 1<<len(kinds)-1)
		seen := Seen{"p": Signs(signs.Draw(t, "p")), "q": Signs(signs.Draw(t, "q"))}
		posterior := table().posterior(seen)
		if len(posterior) == 0 {
			if seen["p"].found() || seen["q"].found() {
				t.Fatal("findings without a diagnosis")
			}
			return
		}
		sum, before := 0.0, 1.0
		for _, c := range posterior {
			sum += c.p
			if c.p > before || c.p < 0 {
				t.Fatalf("%+v is not in order", posterior)
			}
			before = c.p
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Fatalf("%v adds up to %v", posterior, sum)
		}
	})
}

func TestSignsReadWhatTheyWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Signs(rapid.Uint32Range(0, 1<<len(all)-1).Draw(t, "signs"))
		if got := parse(s.String()); got != s {
			t.Fatalf("%q is read as %q", s, got)
		}
	})
}

func TestSignsOf(t *testing.T) {
	at := func(s string) *wire.Answer {
		return &wire.Answer{Pieces: []wire.Piece{{Channel: wire.Content, Text: s}}}
	}
	from := 0
	exchanges := []wire.Exchange{
		{Seq: 0, Tenant: "a", Asked: -1, Answer: at("harbour lemon quartz violin"), Left: true},
		{Seq: 3, Tenant: "b", Asked: -1, Arm: wire.ArmLoad, Answer: at("harbour lemon quartz")},
	}
	leak := oracle.Finding{Kind: oracle.Leak, Exchange: 3, Tenant: "b", FromExchange: &from, FromTenant: "a"}
	for _, c := range []struct {
		findings []oracle.Finding
		want     string
	}{
		{nil, ""},
		{[]oracle.Finding{leak}, "leak, past, left, arm load, whole answer"},
		{[]oracle.Finding{{Kind: oracle.FailOpen, Exchange: 9, Tenant: "b"}}, "fail_open"},
	} {
		if got := SignsOf(c.findings, exchanges).String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	exchanges[1].Purpose = wire.Over
	if got := SignsOf([]oracle.Finding{leak}, exchanges); got&parse("over") == 0 {
		t.Errorf("over the limit: %q", got)
	}
}

func TestBadTablesAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":      {"{", "likelihoods: "},
		"other schema": {`{"schema":"kvcanary.likelihoods/v2"}`, "make them again"},
		"unknown sign": {`{"schema":"kvcanary.likelihoods/v1","entries":[{"fault":"a","protocol":"p","trials":1,"seen":{"hunch":1}}]}`, `no set of signs "hunch"`},
		"lost trials":  {`{"schema":"kvcanary.likelihoods/v1","entries":[{"fault":"a","protocol":"p","trials":3,"seen":{"leak":1}}]}`, "add up to 1"},
		"no trials":    {`{"schema":"kvcanary.likelihoods/v1","entries":[{"fault":"a","protocol":"p","trials":0,"seen":{}}]}`, "0 trials"},
	} {
		if _, err := Read([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := Read(table().JSON()); err != nil || !bytes.Equal(got.JSON(), table().JSON()) {
		t.Errorf("a table does not read what it writes: %v", err)
	}
}

func TestTheMeasuredTableMatchesItsSchema(t *testing.T) {
	s, err := jsonschema.NewCompiler().Compile("../../docs/schema/likelihoods.v1.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(measured))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(doc); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(Measured().JSON(), measured) {
		t.Error("the table is not as kvcanary matrix --likelihoods writes it")
	}
}

// A small window cuts prompts of protocols whose prompts the lab never cuts. That
// is named for what it is, as it was not on an engine with 2,048 tokens, where all
// classes were as likely and the first of the alphabet was named.
func TestCutPromptsAreNamedUnderAnyProtocol(t *testing.T) {
	table := Measured()
	for p, signs := range map[string]string{
		"smoke": "truncation", "tenants": "truncation", "ids": "truncation", "replay": "truncation",
		"churn": "truncation, arm load", "roundtrip": "truncation, arm load",
	} {
		got := table.Of(Seen{p: parse(signs)})
		if len(got) == 0 || got[0].Fault != "auto_truncate" || len(got) > 1 && got[0].Probability < 2*got[1].Probability {
			t.Errorf("%s with %s: %+v", p, signs, got)
		}
	}
}

// Every class of the table has something to check.
func TestEveryClassHasChecks(t *testing.T) {
	for _, fault := range append(Measured().faults(), Other) {
		class, _, _ := strings.Cut(fault, ":")
		if a := classes[class]; a.means == "" || len(a.check) == 0 {
			t.Errorf("nothing is said of %s", class)
		}
	}
}
