package report

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/campaign"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/prose"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// hostile is text that a target may send where it is shown.
const hostile = "</script><b>x</b> \x1b[31mred\x1b[0m \u202Eltr ]]> ::error::x\n| `code` *star* @all %0A"

// hostileRun writes a run directory whose every text is hostile, with n exchanges.
func hostileRun(t testing.TB, n int) string {
	t.Helper()
	dir := t.TempDir()
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	target := campaign.Target{BaseURL: "http://127.0.0.1:1/v1", Model: "m" + hostile, Dialect: "openai"}
	write := func(name string, v any) {
		p, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), append(p, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("plan.json", campaign.Record{Schema: campaign.PlanSchema, Target: target, Started: at})
	from := 1
	r := campaign.Result{
		Schema: campaign.Schema, Verdict: campaign.Leak, Target: target, Started: at, Ended: at.Add(time.Minute), Version: "1.0", KeyID: "k",
		Protocols: []campaign.ProtocolResult{
			{Name: "straddle", Verdict: campaign.Leak, Exchanges: n, Served: n, Seconds: 1.5},
			{Name: "tenants", Verdict: campaign.Inconclusive, Reason: "not reached " + hostile},
			{Name: "boundary", Verdict: campaign.Clean, Bound: &campaign.Bound{RateUpper: 0.1, Confidence: 0.95, N: 30, Sensitivity: 0.9}},
		},
		Spent: campaign.Spent{Exchanges: n, Requests: n}, Controls: campaign.Controls{NeverSent: 16},
	}
	for i := range 12 {
		r.Findings = append(r.Findings, oracle.Finding{
			Kind: oracle.Leak, Protocol: "straddle", Exchange: i % n, Tenant: "a" + hostile, FromExchange: &from, FromTenant: "b", Channel: wire.Content,
			Evidence: oracle.Evidence{Text: "abandon ability able about above absent absorb abstract absurd " + hostile, Words: 9, Offset: 4}, Explain: "words of exchange 1 " + hostile,
		})
	}
	write("result.json", r)
	f, err := os.Create(filepath.Join(dir, "exchanges.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e := json.NewEncoder(f)
	for i := range n {
		start := at.Add(time.Duration(i) * 100 * time.Millisecond)
		if err := e.Encode(wire.Exchange{
			Seq: i, Protocol: "straddle", Label: "pool+1", Tenant: "a", SentTokens: 10_000,
			Answer: &wire.Answer{Status: 200, ID: "req" + hostile, Usage: &wire.Usage{Prompt: 1}, Start: start, End: start.Add(time.Second)},
		}); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func render(t testing.TB, dir, format string) string {
	t.Helper()
	run, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	f, ok := FindFormat(format)
	if !ok {
		t.Fatalf("no format %s", format)
	}
	var b bytes.Buffer
	if err := f.Write(&b, run); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// No form lets a target's text drive a terminal, a page, a ticket or a workflow.
func TestHostileTextStaysText(t *testing.T) {
	dir := hostileRun(t, 20)
	for _, f := range Formats {
		if f.Name == "disclosure" {
			continue // an archive, of what the others write
		}
		got := render(t, dir, f.Name)
		for _, bad := range []string{"\x1b", "\u202E", "<b>x</b>", "</script><b>"} {
			if strings.Contains(got, bad) && !((f.Name == "text" || f.Name == "github") && strings.HasPrefix(bad, "<")) { // where there is no markup
				t.Errorf("%s holds %q", f.Name, bad)
			}
		}
		if !strings.Contains(got, "leak") && !strings.Contains(got, "LEAK") {
			t.Errorf("%s does not say what was found", f.Name)
		}
	}
	for line := range strings.Lines(render(t, dir, "github")) {
		if !strings.HasPrefix(line, "::error ") && !strings.HasPrefix(line, "::notice ") || strings.Count(line, "::error") > 1 && !strings.Contains(line, "::error::x") {
			t.Errorf("workflow command %q", line)
		}
	}
	if n := strings.Count(render(t, dir, "github"), "\n::error "); n > maxAnnotations {
		t.Errorf("%d annotations", n)
	}
}

func TestJUnitIsRead(t *testing.T) {
	var s junitSuite
	if err := xml.Unmarshal([]byte(render(t, hostileRun(t, 3), "junit")), &s); err != nil {
		t.Fatal(err)
	}
	if s.Tests != 3 || s.Failures != 1 || s.Skipped != 1 || s.Errors != 0 || len(s.Cases) != 3 {
		t.Fatalf("%+v", s)
	}
	if c := s.Cases[0]; c.Name != "straddle" || len(c.Failures) != 12 || c.Failures[0].Type != "leak" {
		t.Errorf("%+v", c)
	}
	if c := s.Cases[1]; c.Skipped == nil || !strings.HasPrefix(c.Skipped.Message, "not reached") {
		t.Errorf("%+v", c)
	}
}

func TestSARIFKeepsItsIdentities(t *testing.T) {
	type log struct {
		Version string `json:"version"`
		Runs    []struct {
			Tool struct {
				Driver struct {
					Rules []struct {
						ID string `json:"id"`
					} `json:"rules"`
				} `json:"driver"`
			} `json:"tool"`
			Results []struct {
				RuleID              string            `json:"ruleId"`
				RuleIndex           int               `json:"ruleIndex"`
				PartialFingerprints map[string]string `json:"partialFingerprints"`
				Locations           []struct {
					PhysicalLocation struct {
						Region struct {
							StartLine int `json:"startLine"`
						} `json:"region"`
					} `json:"physicalLocation"`
				} `json:"locations"`
			} `json:"results"`
		} `json:"runs"`
	}
	read := func(n int) log {
		var l log
		if err := json.Unmarshal([]byte(render(t, hostileRun(t, n), "sarif")), &l); err != nil {
			t.Fatal(err)
		}
		return l
	}
	a, b := read(3), read(7)
	if a.Version != "2.1.0" || len(a.Runs) != 1 || len(a.Runs[0].Results) != 12 {
		t.Fatalf("%+v", a)
	}
	for i, r := range a.Runs[0].Results {
		if r.RuleID != "kvcanary/leak" || a.Runs[0].Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID || r.Locations[0].PhysicalLocation.Region.StartLine < 1 {
			t.Errorf("%+v", r)
		}
		if r.PartialFingerprints["primaryLocationLineHash"] != b.Runs[0].Results[i].PartialFingerprints["primaryLocationLineHash"] {
			t.Error("a finding has another fingerprint in another run")
		}
	}
}

// A run of a hundred thousand exchanges is sampled, and the page says so.
func TestLongRunsMakeSmallPages(t *testing.T) {
	n := 20_000
	if testing.Short() {
		n = 2_000
	}
	got := render(t, hostileRun(t, n), "html")
	if len(got) > 5<<20 || !strings.Contains(got, fmt.Sprintf("of %s exchanges are drawn", prose.Thousands(n))) {
		t.Errorf("%d bytes", len(got))
	}
}

func TestKilledRunHasAReport(t *testing.T) {
	dir := hostileRun(t, 5)
	if err := os.Remove(filepath.Join(dir, "result.json")); err != nil {
		t.Fatal(err)
	}
	if got := render(t, dir, "text"); !strings.Contains(got, "verdict: inconclusive") || !strings.Contains(got, "5 exchanges are kept") {
		t.Error(got)
	}
	var s junitSuite
	if err := xml.Unmarshal([]byte(render(t, dir, "junit")), &s); err != nil || s.Errors != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestCompareCountsByWhatFindingsAreAbout(t *testing.T) {
	now, err := Open(hostileRun(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	was, err := Open(hostileRun(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	was.Result.Findings = append(was.Result.Findings[:5:5], oracle.Finding{Kind: oracle.Sharing, Protocol: "prefix"})
	now.Result.Findings = append(now.Result.Findings, oracle.Finding{Kind: oracle.FailOpen, Protocol: "straddle"})
	var got []string
	for _, c := range Compare(now, was) {
		got = append(got, fmt.Sprintf("%s %s %d %d", c.State(), strings.Split(c.What, "/")[0], c.Now, c.Was))
	}
	if want := "new fail_open 1 0; same leak 12 5; gone sharing 0 1"; strings.Join(got, "; ") != want {
		t.Errorf("%s, want %s", strings.Join(got, "; "), want)
	}
}

func BenchmarkReport(b *testing.B) {
	dir := hostileRun(b, 100_000)
	for b.Loop() {
		run, err := Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range Formats {
			if err := f.Write(io.Discard, run); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// The command that repeats a run is safe to paste, whoever made the directory.
func TestCommandToRepeatIsQuoted(t *testing.T) {
	r := &campaign.Result{Target: campaign.Target{BaseURL: "http://h/v1", Model: "m'; touch x; $(id)", Dialect: "openai"}, Seed: 7}
	if got, want := repeat(r), `kvcanary run --base-url http://h/v1 --model 'm'\''; touch x; $(id)' --dialect openai --seed 7`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// No line of text begins as a command to a pipeline does.
func TestTextGivesNoWorkflowCommands(t *testing.T) {
	var b strings.Builder
	if err := Paragraph(&b, "  ", strings.Repeat("::add-mask::x ", 40)); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(strings.TrimSpace(line), "::") {
			t.Errorf("%q", line)
		}
	}
}

// The page says which pages of whose prompt came out.
func TestLeakMap(t *testing.T) {
	run, err := Open(hostileRun(t, 5))
	if err != nil {
		t.Fatal(err)
	}
	run.Plan.Facts.PageSize = 16
	for i, page := range []string{"41", "7", "41"} {
		run.Result.Findings[i].Evidence.PageHint = page
	}
	p := newPage(run)
	if len(p.Strips) != 1 || p.Strips[0].Name != "exchange 1, tenant a" || p.Strips[0].Pages != 625 || p.Strips[0].Words != "7, 41" || len(p.Strips[0].Marks) != 2 {
		t.Errorf("%+v", p.Strips)
	}
	run.Plan.Facts.PageSize = 0
	if p := newPage(run); p.Strips != nil {
		t.Error("pages of an unknown size are drawn")
	}
}

// unpack is what an archive holds, by name.
func unpack(t *testing.T, archive string) map[string]string {
	t.Helper()
	z, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(b)
	}
	return files
}

// The archive for a vendor has what is needed to find and repeat it, and no key
// of the reporter.
func TestDisclosure(t *testing.T) {
	dir := hostileRun(t, 5)
	if err := os.Mkdir(filepath.Join(dir, "receipt"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "receipt", "plan.dsse.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := render(t, dir, "disclosure")
	files := unpack(t, p)
	var found []Disclosed
	if err := json.Unmarshal([]byte(files["findings.json"]), &found); err != nil || len(found) != 12 {
		t.Fatalf("%d findings, %v", len(found), err)
	}
	if d := found[2]; !strings.HasPrefix(d.RequestID, "req") || d.Status != 200 || d.Start.IsZero() || d.FromStart == nil {
		t.Errorf("%+v", d)
	}
	if !strings.Contains(files["reproduce/run.sh"], `--base-url "${BASE_URL:?}"`) || len(files["reproduce/key"]) != 32 || files["receipt/plan.dsse.json"] != "{}" {
		t.Errorf("%q", files)
	}
	again := render(t, dir, "disclosure")
	if again == p {
		t.Error("two archives have the same key")
	}
	run, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	run.Result.Findings = nil
	if err := Disclosure(io.Discard, run); err == nil {
		t.Error("nothing is disclosed")
	}
}
