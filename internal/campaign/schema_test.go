package campaign

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/kvcanary/kvcanary/internal/diagnose"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

func runSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile("../../docs/schema/run.v1.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func asJSON(t *testing.T, v any) any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestResultsMatchTheSchema(t *testing.T) {
	schema := runSchema(t)
	p, from, run := 0.01, 0, 12
	all := oracle.Oracle{Name: "all kinds", Judge: func(_ context.Context, c oracle.Case) (j oracle.Judgement) {
		for _, k := range []oracle.Kind{oracle.Leak, oracle.FailOpen, oracle.Truncation, oracle.Contamination, oracle.Sharing, oracle.Misroute, oracle.UnsoundSetup} {
			j.Findings = append(j.Findings, oracle.Finding{
				Kind: k, Protocol: "smoke", Tenant: "a", FromExchange: &from, FromTenant: "a", Channel: wire.Reasoning,
				Evidence: oracle.Evidence{Text: "some words", Words: 2, Offset: 40, PageHint: "2", FromRun: &run}, PValue: &p, Explain: "what it means",
			})
		}
		return j
	}}
	gone := &fakeTarget{answer: func(context.Context, int, string) *wire.Answer { return failed(wire.FailedConnect, "nothing there") }}
	for name, c := range map[string]struct {
		target  *fakeTarget
		oracles []oracle.Oracle
		budget  Budget
	}{
		"clean":       {target: &fakeTarget{}},
		"findings":    {target: &fakeTarget{}, oracles: []oracle.Oracle{all}},
		"cut short":   {target: &fakeTarget{}, budget: Budget{Requests: 2}},
		"no target":   {target: gone},
		"nothing fit": {target: &fakeTarget{}, budget: Budget{Tokens: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(c.target, (&script{batches: [][]probe.Send{sends(3, 400)}}).protocol("smoke"))
			cfg.Oracles, cfg.Budget, cfg.Seed = c.oracles, c.budget, 1<<64-1
			res, _ := Run(context.Background(), cfg)
			if err := schema.Validate(asJSON(t, res)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTheSchemaRefusesWhatCannotBe(t *testing.T) {
	schema := runSchema(t)
	good := func() *Result { return mustRun(t, config(&fakeTarget{}, one().protocol("smoke"))) }
	for name, spoil := range map[string]func(*Result){
		"other schema":          func(r *Result) { r.Schema = "kvcanary.run/v2" },
		"no such verdict":       func(r *Result) { r.Verdict = "fine" },
		"clean without bound":   func(r *Result) { r.Protocols[0].Bound = nil },
		"clean without looking": func(r *Result) { r.Protocols[0].Exchanges = 0 },
		"no reason":             func(r *Result) { r.Protocols[0].Verdict = Inconclusive },
		"no such finding":       func(r *Result) { r.Findings = []oracle.Finding{{Kind: "hunch", Explain: "x"}} },
		"unexplained finding":   func(r *Result) { r.Findings = []oracle.Finding{{Kind: oracle.Leak}} },
		"no findings list":      func(r *Result) { r.Findings = nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := good()
			spoil(r)
			if schema.Validate(asJSON(t, r)) == nil {
				t.Error("the schema takes it")
			}
		})
	}
}

// Every field of the contract is in the schema, under its name.
func TestTheSchemaNamesEveryField(t *testing.T) {
	from, run, p := 0, 0, 0.5
	full := Result{
		Reason: "x", Resumable: true, Resumed: 1, Choices: []Choice{{Protocol: "x", Runs: true, Reason: "x", Budget: true}}, Target: Target{Engine: "x"}, Diagnosis: []diagnose.Diagnosis{{Mode: "x"}},
		Protocols: []ProtocolResult{{Bound: &Bound{}, Reason: "x"}},
		Findings: []oracle.Finding{{
			FromExchange: &from, FromTenant: "x", Channel: wire.Content, PValue: &p,
			Evidence: oracle.Evidence{Text: "x", Words: 1, Offset: 1, PageHint: "x", FromRun: &run},
		}},
	}
	b, err := os.ReadFile("../../docs/schema/run.v1.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, inner := range v {
				if !strings.Contains(string(b), `"`+name+`":`) {
					t.Errorf("the schema does not have the field %s", name)
				}
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(asJSON(t, full))
}
