package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	junit "github.com/joshdk/go-junit"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/preflight"
)

// sarifSchemas are what SARIF logs are held against: what kvcanary writes of
// SARIF, as a closed schema, and the standard's own where KVCANARY_SARIF_SCHEMA
// names the file. Its terms keep it out of here.
func sarifSchemas(t *testing.T) []*jsonschema.Schema {
	t.Helper()
	names := []string{"testdata/sarif.schema.json"}
	if name := os.Getenv("KVCANARY_SARIF_SCHEMA"); name != "" {
		names = append(names, name)
	}
	var all []*jsonschema.Schema
	for _, name := range names {
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		s, err := c.Compile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func TestSARIFFitsItsSchema(t *testing.T) {
	every := func(r *Run) {
		r.Result.Findings = nil
		for _, k := range kinds {
			r.Result.Findings = append(r.Result.Findings, oracle.Finding{Kind: k.kind, Protocol: "straddle", Explain: "why"})
		}
	}
	logs := map[string]string{}
	for name, change := range map[string]func(*Run){
		"hostile": func(*Run) {},
		"kinds":   every,
		"clean":   func(r *Run) { r.Result.Findings = nil },
		"many":    func(r *Run) { r.Result.Findings = make([]oracle.Finding, maxResults+1); every(r) },
		"spaces":  func(r *Run) { r.Place = Place{"deploy/my engine (1)%.yaml", 7} },
		"colon":   func(r *Run) { r.Place = Place{"a:b\x1b[31m.yaml", 7} },
		"killed":  func(r *Run) { r.Loaded.Result = nil },
	} {
		run, err := Open(hostileRun(t, 3))
		if err != nil {
			t.Fatal(err)
		}
		change(run)
		var b bytes.Buffer
		if err := SARIF(&b, run); err != nil {
			t.Fatal(err)
		}
		logs[name] = b.String()
	}
	for name, r := range map[string]*preflight.Report{"preflight": shortPool(), "empty preflight": {}} {
		var b bytes.Buffer
		if err := PreflightSARIF(&b, r, "1.0", "deploy/my engine.yaml"); err != nil {
			t.Fatal(err)
		}
		logs[name] = b.String()
	}
	for _, schema := range sarifSchemas(t) {
		for name, log := range logs {
			doc, err := jsonschema.UnmarshalJSON(strings.NewReader(log))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(doc); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, wrong := range []string{`{"version":"2.1.0"}`, strings.Replace(logs["kinds"], `"ruleIndex": 0`, `"ruleIndex": "0"`, 1), strings.Replace(logs["kinds"], `"level": "error"`, `"level": "high"`, 1)} {
			doc, err := jsonschema.UnmarshalJSON(strings.NewReader(wrong))
			if err != nil {
				t.Fatal(err)
			}
			if schema.Validate(doc) == nil {
				t.Error("the schema takes anything")
			}
		}
	}
}

// What others parse JUnit with counts as we do.
func TestJUnitInAnothersParser(t *testing.T) {
	for name, c := range map[string]struct {
		change                           func(dir string)
		passed, failed, errored, skipped int
	}{
		"leak":   {func(string) {}, 1, 1, 0, 1},
		"killed": {func(dir string) { os.Remove(filepath.Join(dir, "result.json")) }, 0, 0, 1, 0},
	} {
		dir := hostileRun(t, 3)
		c.change(dir)
		suites, err := junit.Ingest([]byte(render(t, dir, "junit")))
		if err != nil || len(suites) != 1 {
			t.Fatalf("%s: %d suites, %v", name, len(suites), err)
		}
		got := suites[0].Totals
		if got.Passed != c.passed || got.Failed != c.failed || got.Error != c.errored || got.Skipped != c.skipped || suites[0].Name != "kvcanary" {
			t.Errorf("%s: %+v", name, got)
		}
		for _, x := range suites[0].Tests {
			if x.Name == "straddle" && (x.Error == nil || !strings.Contains(x.Error.Error(), "tenant a")) {
				t.Errorf("%s: %v", name, x.Error)
			}
		}
	}
	var b bytes.Buffer
	if err := PreflightJUnit(&b, shortPool()); err != nil {
		t.Fatal(err)
	}
	suites, err := junit.Ingest(b.Bytes())
	if err != nil || len(suites) != 1 || suites[0].Totals.Failed == 0 || suites[0].Totals.Error == 0 {
		t.Errorf("%+v, %v", suites, err)
	}
}
