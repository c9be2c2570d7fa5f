package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/engine"
	"github.com/kvcanary/kvcanary/internal/preflight"
)

func shortPool() *preflight.Report {
	n := func(v int) engine.Number { return engine.Number{Value: v, Source: "x", Basis: engine.Stated} }
	r := preflight.Check(preflight.Deployment{Workers: []preflight.Worker{
		{Name: "deploy.yaml: Deployment a", Facts: engine.Facts{Engine: "vllm", Context: n(4096), Pool: n(1024)}},
		{Name: "http://x\x1b[31m", Facts: engine.Facts{Engine: "sglang", Context: n(4096)}},
	}})
	return &r
}

func TestPreflightAsJUnit(t *testing.T) {
	var b bytes.Buffer
	if err := PreflightJUnit(&b, shortPool()); err != nil {
		t.Fatal(err)
	}
	var s junitSuite
	if err := xml.Unmarshal(b.Bytes(), &s); err != nil || strings.Contains(b.String(), "\x1b") {
		t.Fatalf("%v\n%s", err, b.String())
	}
	state := map[string]string{}
	for _, c := range s.Cases {
		switch {
		case len(c.Failures) > 0:
			state[c.Name] = "failure"
		case c.Error != nil:
			state[c.Name] = "error"
		case c.Skipped != nil:
			state[c.Name] = "skipped"
		}
	}
	if state["pool_holds_context deploy.yaml: Deployment a"] != "failure" || state["pool_holds_context http://x\uFFFD[31m"] != "error" ||
		s.Failures == 0 || s.Errors == 0 || s.Tests != len(s.Cases) {
		t.Errorf("%+v\n%v", s, state)
	}
}

func TestPreflightAsSARIF(t *testing.T) {
	var b bytes.Buffer
	if err := PreflightSARIF(&b, shortPool(), "1.0", "deploy/engine.yaml"); err != nil {
		t.Fatal(err)
	}
	var log struct {
		Runs []struct {
			Results []struct {
				RuleID    string `json:"ruleId"`
				Level     string `json:"level"`
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct {
							URI string `json:"uri"`
						} `json:"artifactLocation"`
					} `json:"physicalLocation"`
				} `json:"locations"`
			} `json:"results"`
		} `json:"runs"`
	}
	if err := json.Unmarshal(b.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range log.Runs[0].Results {
		seen[r.RuleID+" "+r.Level+" "+r.Locations[0].PhysicalLocation.ArtifactLocation.URI] = true
	}
	for _, want := range []string{"kvcanary/preflight/pool_holds_context error deploy.yaml", "kvcanary/preflight/pool_holds_context warning deploy/engine.yaml"} {
		if !seen[want] {
			t.Errorf("no %s in %v", want, seen)
		}
	}
}
