package preflight

import (
	"fmt"
	"strings"

	"github.com/kvcanary/kvcanary/internal/prose"
)

var reachable = Rule{
	ID: "reachable", Severity: Error, Routers: true,
	Why: "what cannot be asked cannot be known",
	each: func(w *Worker, _ *Deployment) outcome {
		switch {
		case w.Trouble != "":
			return unknown("check the address, the key and the network", "%s", w.Trouble)
		case w.Facts.Engine == "":
			return unknown("name it with --engine, or check the address", "no engine that is known answers here")
		}
		return pass("this is %s %s", w.Facts.Engine, w.Facts.Version.Value)
	},
}

var adminClosed = Rule{
	ID: "admin_paths_closed", Severity: Warning, AISVS: tenancy, Routers: true,
	Why: "debug and admin paths show keys and prompts, and flush or move KV, for whoever finds them",
	each: func(w *Worker, _ *Deployment) outcome {
		switch {
		case w.Via != "":
			return notApplicable("the router was asked")
		case len(w.Facts.Open) > 0:
			return fail("let a gateway through to the API alone, or set the engine's own key", "%s answered without a key", strings.Join(w.Facts.Open, ", "))
		case !w.Facts.OpenChecked:
			return unknown("ask the worker itself", "not asked")
		}
		return pass("none of them answered without a key")
	},
}

var devModeOff = Rule{
	ID: "dev_mode_off", Severity: Warning, Engines: []string{"vllm"},
	Why: "development mode serves the whole configuration",
	each: func(w *Worker, _ *Deployment) outcome {
		return wantFlag(w.Facts.DevMode, false, "VLLM_SERVER_DEV_MODE", "leave VLLM_SERVER_DEV_MODE out")
	},
}

var routerSeenThrough = Rule{
	ID: "router_seen_through", Severity: Warning,
	Why: "a router says of its workers what it was told once, or what one of them says",
	all: func(d *Deployment) outcome {
		direct := 0
		var routers []string
		for i := range d.Workers {
			switch w := &d.Workers[i]; {
			case w.Facts.Router.Is(true):
				routers = append(routers, fmt.Sprintf("%s (%s)", w.Name, w.Facts.Router.Source))
			case w.Facts.Engine != "" && w.Via == "":
				direct++
			}
		}
		switch {
		case len(routers) == 0:
			return pass("no router was asked")
		case direct == 0:
			return fail("ask the workers: --prefill URL ... --decode URL ...", "only a router was asked: %s", strings.Join(routers, ", "))
		}
		return pass("workers were asked beside %s", strings.Join(routers, ", "))
	},
}

var declaredRuns = Rule{
	ID: "declared_is_what_runs", Severity: Warning,
	Why: "a manifest that says something else than what runs was not the one that was reviewed",
	each: func(w *Worker, d *Deployment) outcome {
		from := d.declared(w)
		if from == nil {
			return notApplicable("no manifest describes this worker alone")
		}
		a, b := &w.Facts, &from.Facts
		for _, c := range []struct {
			what          string
			runs, written int
		}{{"context window", a.Context.Value, b.Context.Value}, {"pool", a.Pool.Value, b.Pool.Value}, {"page size", a.PageSize.Value, b.PageSize.Value}} {
			if c.runs != 0 && c.written != 0 && c.runs != c.written {
				return fail("deploy what was reviewed, or review what runs", "%s is %s here and %s in %s", c.what, prose.Thousands(c.runs), prose.Thousands(c.written), from.Name)
			}
		}
		return pass("agrees with %s", from.Name)
	},
}
