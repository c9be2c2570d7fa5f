package report

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/kvcanary/kvcanary/internal/preflight"
	"github.com/kvcanary/kvcanary/internal/prose"
)

// PreflightJUnit writes a preflight as JUnit XML: a test case for each result.
// A rule that has failed is a failure, one that could not be checked an error
// where it decides and skipped where it does not, and one that does not apply
// is left out.
func PreflightJUnit(w io.Writer, r *preflight.Report) error {
	s := junitSuite{Name: "kvcanary preflight", Time: seconds(0)}
	for _, x := range r.Results {
		if x.State == preflight.NotApplicable {
			continue
		}
		name := x.Rule
		if x.Worker != "" {
			name += " " + prose.Printable(x.Worker)
		}
		c := junitCase{Name: name, Class: "kvcanary.preflight." + string(x.Severity), Time: seconds(0)}
		message := junitText{prose.Printable(x.Compared), string(x.Severity), prose.Printable(x.Why + "; " + x.Fix)}
		switch {
		case x.State == preflight.Fail && x.Severity != preflight.Note:
			c.Failures = []junitText{message}
		case x.State == preflight.Unknown && x.Severity == preflight.Error:
			c.Error = &message
		case x.State != preflight.Pass:
			c.Skipped = &message
		}
		s.add(c)
	}
	return s.write(w)
}

// PreflightSARIF writes what has failed or could not be checked as a SARIF
// log. A result of a manifest points at its file, others at place.
func PreflightSARIF(w io.Writer, r *preflight.Report, version, place string) error {
	levels := map[preflight.Severity]string{preflight.Error: "error", preflight.Warning: "warning", preflight.Note: "note"}
	var rules []object
	index := map[string]int{}
	results := []object{}
	for _, x := range r.Results {
		if x.State == preflight.Pass || x.State == preflight.NotApplicable || len(results) == maxResults {
			continue
		}
		if _, known := index[x.Rule]; !known {
			index[x.Rule] = len(rules)
			rules = append(rules, object{
				"id": "kvcanary/preflight/" + x.Rule, "name": x.Rule, "shortDescription": object{"text": x.Why}, "help": object{"text": prose.Printable(x.Fix)},
				"defaultConfiguration": object{"level": levels[x.Severity]}, "properties": object{"tags": append([]string{"security"}, x.AISVS...)},
			})
		}
		level := levels[x.Severity]
		if x.State == preflight.Unknown && x.Severity == preflight.Error {
			level = "warning"
		} else if x.State == preflight.Unknown {
			level = "note"
		}
		file, _, _ := strings.Cut(x.Worker, ": ")
		if strings.Contains(file, "://") || file == "" {
			file = place
		}
		sum := sha256.Sum256([]byte(x.Rule + "\n" + x.Worker))
		results = append(results, object{
			"ruleId": "kvcanary/preflight/" + x.Rule, "ruleIndex": index[x.Rule], "level": level,
			"message":             object{"text": prose.Printable(fmt.Sprintf("%s: %s. %s", x.State, x.Compared, x.Fix))},
			"locations":           []object{{"physicalLocation": object{"artifactLocation": object{"uri": uri(file)}, "region": object{"startLine": 1}}}},
			"partialFingerprints": object{"primaryLocationLineHash": hex.EncodeToString(sum[:8])},
		})
	}
	if rules == nil {
		rules = []object{}
	}
	return writeSARIF(w, version, rules, results, object{"executionSuccessful": true})
}
