package report

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"path/filepath"

	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/prose"
)

// maxResults is how many results of a run code scanning keeps.
const maxResults = 5000

// kinds are the rules of a SARIF log: the closed list of findings.
var kinds = []struct {
	kind  oracle.Kind
	short string
	full  string
	level string
}{
	{oracle.Leak, "A prompt surfaced in another answer", "A canary of another exchange stands in this answer, outside what this exchange was sent.", "error"},
	{oracle.Misroute, "An answer reached the wrong request", "The nonce of another live exchange was echoed.", "error"},
	{oracle.FailOpen, "A prompt over the limit was answered", "A prompt that is longer than the engine can hold was answered as if it had been served.", "error"},
	{oracle.Truncation, "A prompt was shortened silently", "The answer is to a part of the prompt, and nothing says so.", "warning"},
	{oracle.Contamination, "An answer changed by an unrelated request", "The own nonce is missing, or the answer changed, beyond what the control arm shows.", "warning"},
	{oracle.Sharing, "A prefix is shared between tenants", "One tenant's prefix speeds up, or is reported cached for, another.", "warning"},
	{oracle.UnsoundSetup, "The setup is not safe", "Pool, context, version or flag are not safe.", "warning"},
}

// SARIF writes findings as a SARIF 2.1.0 log. Rule ids are kvcanary/KIND and do
// not change; a finding keeps its fingerprint from run to run.
func SARIF(w io.Writer, run *Run) error {
	var rules []object
	index := map[oracle.Kind]int{}
	for i, k := range kinds {
		index[k.kind] = i
		rules = append(rules, object{
			"id": "kvcanary/" + string(k.kind), "name": string(k.kind),
			"shortDescription": object{"text": k.short}, "fullDescription": object{"text": k.full},
			"defaultConfiguration": object{"level": k.level}, "properties": object{"tags": []string{"security", "privacy"}},
		})
	}
	results := []object{}
	for i, f := range run.Result.Findings {
		if i == maxResults {
			break
		}
		k := index[f.Kind]
		results = append(results, object{
			"ruleId": rules[k]["id"], "ruleIndex": k, "level": kinds[k].level,
			"message":             object{"text": prose.Printable(fmt.Sprintf("%s (protocol %s, exchange %d, tenant %s)", f.Explain, f.Protocol, f.Exchange, f.Tenant))},
			"locations":           []object{{"physicalLocation": object{"artifactLocation": object{"uri": uri(run.Place.File)}, "region": object{"startLine": max(run.Place.Line, 1)}}}},
			"partialFingerprints": object{"primaryLocationLineHash": fingerprint(run, f)},
			"properties":          object{"exchange": f.Exchange, "protocol": f.Protocol},
		})
	}
	invocation := object{"executionSuccessful": run.Loaded.Result != nil, "startTimeUtc": run.Result.Started.UTC().Format("2006-01-02T15:04:05Z")}
	return writeSARIF(w, run.Result.Version, rules, results, invocation)
}

// uri is a file's name as a reference relative to what a log is about.
func uri(file string) string { return (&url.URL{Path: filepath.ToSlash(file)}).String() }

type object = map[string]any

// writeSARIF writes a log of one run of kvcanary.
func writeSARIF(w io.Writer, version string, rules, results []object, invocation object) error {
	return prose.JSON(w, object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []object{{
			"tool":        object{"driver": object{"name": "kvcanary", "informationUri": "https://github.com/kvcanary/kvcanary", "version": version, "rules": rules}},
			"invocations": []object{invocation},
			"results":     results,
		}},
	})
}

// fingerprint is the same for what is the same finding in two runs.
func fingerprint(run *Run, f oracle.Finding) string {
	sum := sha256.Sum256([]byte(run.Result.Target.BaseURL + "\n" + run.Result.Target.Model + "\n" + sameAs(f)))
	return hex.EncodeToString(sum[:8])
}
