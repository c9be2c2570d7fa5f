package demo

import "github.com/kvcanary/kvcanary/internal/report"

// Page is what the demo's page shows of a result.
func (r *Result) Page(command, version string) report.Demo {
	c := Scale(r.Scale == "full")
	d := report.Demo{
		Version: version, Seed: r.Seed, Command: command,
		Context: c.Context, Pool: c.PrefillPool, Decode: c.DecodePool, PageSize: c.PageSize,
		Seconds: r.Seconds, AsTold: r.AsTold,
	}
	for _, a := range r.Acts {
		d.Acts = append(d.Acts, report.DemoAct{
			Name: a.Name, Title: a.Title, Verdict: string(a.Verdict), Expected: string(a.Expected),
			Findings: len(a.Findings), Lines: a.Told,
		})
	}
	if r.Leak != nil {
		d.Map, d.Answer, d.OwnPrompt = r.Leak.Map, r.Leak.Answer, r.Leak.Prompt
	}
	return d
}
