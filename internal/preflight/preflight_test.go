package preflight

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/internal/engine"
)

// drawFacts are any facts of any engine, most of them known.
func drawFacts(t *rapid.T) engine.Facts {
	var f engine.Facts
	v := reflect.ValueOf(&f).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		known := rapid.IntRange(0, 4).Draw(t, name+" known") > 0
		if !known {
			continue
		}
		switch v.Field(i).Interface().(type) {
		case engine.Number:
			n := rapid.SampledFrom([]int{1, 16, 512, 4096, 10634, 10640, 16384, 20480}).Draw(t, name)
			v.Field(i).Set(reflect.ValueOf(engine.Number{Value: n, Source: name, Basis: engine.Stated, AtMost: name == "Pool" && rapid.IntRange(0, 4).Draw(t, "at most") == 0}))
		case engine.Flag:
			v.Field(i).Set(reflect.ValueOf(engine.Flag{Known: true, On: rapid.Bool().Draw(t, name), Source: name, Basis: engine.Stated}))
		case engine.Text:
			v.Field(i).Set(reflect.ValueOf(engine.Text{Value: rapid.SampledFrom(vocabulary[name]).Draw(t, name), Source: name, Basis: engine.Stated}))
		}
	}
	if rapid.IntRange(0, 9).Draw(t, "engine known") > 0 {
		f.Engine = rapid.SampledFrom(engine.Names()).Draw(t, "engine")
	}
	return f
}

var vocabulary = map[string][]string{
	"Version":       {"0.5.11", "0.5.22", "v0.29.0", "b9747-abc", "b10434", "0.0.0.dev1+g3d8fc9a0c", "0.6.1", "1.2.0rc1"},
	"Role":          {"prefill", "decode", "both"},
	"HashAlgorithm": {"sha256", "builtin"},
	"Offload":       {"none", "lmcache", "hicache,lmcache"},
	"Transfer":      {"mooncake", "NixlConnector", "LMCacheConnectorV1"},
	"LoadFailure":   {"fail", "recompute"},
}

// Whatever is known, to know less of it is never a better verdict.
func TestVerdictNeverImprovesWhenAFactIsRemoved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Deployment{Alone: rapid.Bool().Draw(t, "alone"), Salted: rapid.Bool().Draw(t, "salted")}
		for i := range rapid.IntRange(1, 3).Draw(t, "workers") {
			d.Workers = append(d.Workers, Worker{Name: fmt.Sprint("w", i), Facts: drawFacts(t)})
		}
		if rapid.Bool().Draw(t, "probed") {
			d.Probe = &Probe{AcceptedMax: 100, RejectedMin: 101, Findings: rapid.IntRange(0, 1).Draw(t, "findings")}
		}
		d.Strict = rapid.Bool().Draw(t, "strict")
		full := Check(d)
		less := d
		less.Workers = append([]Worker(nil), d.Workers...)
		w := rapid.IntRange(0, len(d.Workers)-1).Draw(t, "which")
		removed := remove(t, &less.Workers[w].Facts)
		part := Check(less)
		if full.ExitCode() != 0 && part.ExitCode() == 0 {
			t.Fatalf("without %s: strict %v, exit %d becomes 0: %s", removed, d.Strict, full.ExitCode(), full.Summary)
		}
		for i := range d.Workers {
			for _, r := range full.Results {
				if r.Worker != d.Workers[i].Name || r.State == Pass || r.State == NotApplicable {
					continue
				}
				for _, x := range part.Results {
					if x.Worker == r.Worker && x.Rule == r.Rule && x.State == Pass {
						t.Fatalf("without %s: %s is %s and becomes a pass: %s", removed, r.Rule, r.State, x.Compared)
					}
				}
			}
		}
	})
}

// remove makes one fact unknown and says which.
func remove(t *rapid.T, f *engine.Facts) string {
	v := reflect.ValueOf(f).Elem()
	var fields []int
	for i := range v.NumField() {
		switch v.Field(i).Interface().(type) {
		case engine.Number, engine.Text, engine.Flag:
			fields = append(fields, i)
		case string:
			fields = append(fields, i) // the engine's name
		}
	}
	i := rapid.SampledFrom(fields).Draw(t, "removed")
	v.Field(i).SetZero()
	return v.Type().Field(i).Name
}

// What is printed as JSON is what the schema says, whatever is known; what has
// not passed says what to do.
func TestReportsKeepTheirSchema(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../../docs/schema/preflight.v1.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		d := Deployment{Workers: []Worker{{Name: "w", Facts: drawFacts(t)}}}
		r := Check(d)
		p, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(p))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(instance); err != nil {
			t.Fatal(err)
		}
		for _, x := range r.Results {
			if (x.State == Fail || x.State == Unknown) && x.Fix == "" {
				t.Fatalf("%s is %s and does not say what to do: %s", x.Rule, x.State, x.Compared)
			}
		}
	})
}

// Nothing known is never safe.
func TestNothingIsNeverClean(t *testing.T) {
	for _, d := range []Deployment{{}, {Workers: []Worker{{}}}, {Context: 1, Pool: 2}} {
		if r := Check(d); r.ExitCode() == 0 {
			t.Errorf("%+v: %s", d, r.Summary)
		}
	}
}

// The examples that pipelines start from are read as manifests are.
func TestExamplesAreYAML(t *testing.T) {
	paths, _ := filepath.Glob("../../deploy/preflight/*.yaml")
	if len(paths) < 2 {
		t.Fatalf("%d examples", len(paths))
	}
	for _, path := range paths {
		p, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		commands, err := readYAML(path, p)
		if err != nil || len(commands) == 0 {
			t.Errorf("%s: %d containers, %v", path, len(commands), err)
		}
		for _, c := range commands {
			for _, a := range c.Args {
				if strings.HasPrefix(a, "--") && !slices.Contains([]string{"--prefill", "--decode", "--api-key-env", "--salted"}, strings.Split(a, "=")[0]) {
					t.Errorf("%s: flag %s", path, a)
				}
			}
		}
	}
}
