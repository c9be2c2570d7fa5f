package preflight

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/kvcanary/kvcanary/internal/engine"
)

func TestAdvisoriesKeepTheirSchema(t *testing.T) {
	var data any
	if err := yaml.Unmarshal(advisories, &data); err != nil {
		t.Fatal(err)
	}
	p, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := jsonschema.UnmarshalJSON(strings.NewReader(string(p)))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.NewCompiler().Compile("../../docs/schema/advisories.v1.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(instance); err != nil {
		t.Error(err)
	}
	seen := map[string]bool{}
	for _, a := range Advisories() {
		if seen[a.ID] || !strings.HasPrefix(a.ID, a.Engine+"-") {
			t.Errorf("%s: ids are unique and begin with the engine", a.ID)
		}
		seen[a.ID] = true
		if _, ok := engine.Find(a.Engine); !ok {
			t.Errorf("%s: no engine %s", a.ID, a.Engine)
		}
		for _, v := range []string{a.From, a.Before} {
			if _, ok := parseRelease(v); v != "" && !ok {
				t.Errorf("%s: %s is no release", a.ID, v)
			}
		}
		for _, c := range append(a.When, a.Unless...) {
			c.holds(&engine.Facts{}) // panics where there is no such fact
		}
	}
	if _, err := os.Stat("advisories.yaml"); err != nil {
		t.Error(err)
	}
}

func TestUnknownFieldsOfAdvisoriesAreRefused(t *testing.T) {
	if _, err := parseAdvisories([]byte("advisories: [{id: a, befor: 1.0}]")); err == nil || !strings.Contains(err.Error(), "befor") {
		t.Errorf("error %v", err)
	}
}

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		version, before string
		want            maybe
	}{
		{"0.5.11", "0.5.22", yes}, {"0.5.22", "0.5.22", no}, {"v0.5.22", "0.5.22", no}, {"0.6", "0.5.22", no}, {"0.5.21.post1", "0.5.22", yes},
		{"v0.5.11-cu129-amd64", "0.5.22", yes}, {"b9747-7e4c0a9", "b9750", yes}, {"b10434", "b9750", no},
		{"0.5.22.dev20261009", "0.5.22", dunno}, {"0.0.0.dev1+g3d8fc9a0c", "0.5.22", dunno}, {"0.5.11+acme", "0.5.22", dunno},
		{"0.0.0+kvcanary", "0.5.22", dunno}, {"", "0.5.22", dunno}, {"1.2.0rc1", "1.3.0", dunno}, {"main", "1.0.0", dunno},
	} {
		a := Advisory{Before: c.before}
		if got, words := a.affects(c.version); got != c.want {
			t.Errorf("%q before %s: %v, want %v: %s", c.version, c.before, got, c.want, words)
		}
	}
	if got, _ := (&Advisory{From: "0.7.0", Before: "0.9.0"}).affects("0.6.9"); got != no {
		t.Errorf("below the first affected release: %v", got)
	}
}

// Worker and settings decide whether a report applies.
func TestAdvisoriesApply(t *testing.T) {
	on := engine.Flag{Known: true, On: true, Source: "here"}
	state := func(f engine.Facts, id string) State {
		r := Check(Deployment{Workers: []Worker{{Name: "w", Facts: f}}})
		for _, x := range r.Results {
			if x.Rule == "advisory/"+id {
				return x.State
			}
		}
		return ""
	}
	f := engine.Facts{
		Engine: "sglang", Version: engine.Text{Value: "0.5.11", Source: "x"}, Role: engine.Text{Value: "prefill", Source: "x"},
		Pool: engine.Number{Value: 10640, Source: "x"}, Context: engine.Number{Value: 16384, Source: "x"},
	}
	const incident = "sglang-oversize-placeholder"
	if got := state(f, incident); got != Fail {
		t.Errorf("the incident's own engine: %s", got)
	}
	roomy := f
	roomy.Pool.Value = 20480
	newer := f
	newer.Version.Value = "0.5.22"
	fork := f
	fork.Version.Value = "0.5.11+acme"
	for name, c := range map[string]struct {
		f    engine.Facts
		want State
	}{"a pool that holds the window": {roomy, NotApplicable}, "the fixed release": {newer, NotApplicable}, "a fork": {fork, Unknown}} {
		if got := state(c.f, incident); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	v := engine.Facts{Engine: "vllm", RandomIDs: on}
	if got := state(v, "vllm-client-request-id"); got != Pass {
		t.Errorf("with ids of its own: %s", got)
	}
	v.RandomIDs.On = false
	if got := state(v, "vllm-client-request-id"); got != Fail {
		t.Errorf("with ids of clients: %s", got)
	}
}
