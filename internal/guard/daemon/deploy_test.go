package daemon

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"github.com/kvcanary/kvcanary/internal/guard"
	"github.com/kvcanary/kvcanary/internal/guard/watch"
)

const deploy = "../../../deploy/guard/"

func deployed(t *testing.T, name string) []byte {
	t.Helper()
	p, err := os.ReadFile(deploy + name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// promtool runs it; a machine without it fails, and is told what to install.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command("promtool", args...).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Fatal("promtool is not installed: apt-get install prometheus")
	}
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

type rule struct {
	Alert               string
	Expr, For           string
	Labels, Annotations map[string]string
}

func alerts(t *testing.T) (out []rule) {
	t.Helper()
	var f struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(deployed(t, "alerts.yaml"), &f); err != nil {
		t.Fatal(err)
	}
	for _, g := range f.Groups {
		out = append(out, g.Rules...)
	}
	return out
}

func TestAlertsAreRulesThatFireWhenTheyShould(t *testing.T) {
	promtool(t, "check", "rules", deploy+"alerts.yaml")
	promtool(t, "test", "rules", deploy+"alerts_test.yaml")
	docs, err := os.ReadFile("../../../docs/guard.md")
	if err != nil {
		t.Fatal(err)
	}
	all := alerts(t)
	if len(all) < 10 {
		t.Fatalf("%d alerts", len(all))
	}
	for _, r := range all {
		if s := r.Labels["severity"]; s != "page" && s != "ticket" {
			t.Errorf("%s has severity %q", r.Alert, s)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s does not say what is the matter", r.Alert)
		}
		if want := "/docs/guard.md#" + strings.ToLower(r.Alert); !strings.HasSuffix(r.Annotations["runbook_url"], want) || !bytes.Contains(docs, []byte("\n### "+r.Alert+"\n")) {
			t.Errorf("%s links to %s, want a heading of docs/guard.md", r.Alert, r.Annotations["runbook_url"])
		}
		if !bytes.Contains(deployed(t, "alerts_test.yaml"), []byte(r.Alert)) {
			t.Errorf("alerts_test.yaml does not try %s", r.Alert)
		}
	}
	if all[0].Alert != "KvcanaryGuardLeak" || all[0].For != "" || all[0].Labels["severity"] != "page" {
		t.Errorf("a leak does not page at once: %+v", all[0])
	}
}

// series are the metrics that there are, with their labels.
func series(t *testing.T) map[string][]string {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	guard.NewMetrics(reg, guard.Labels{Upstreams: []string{"a"}, Tenants: []string{"a"}}, func() guard.State {
		return guard.State{Upstreams: []guard.UpstreamState{{Name: "a", At: time.Unix(1, 0)}}}
	}, time.Now)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, f := range families {
		labels := []string{"instance", "le"}
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
			out[f.GetName()+suffix] = labels
		}
	}
	return out
}

var (
	metricIn = regexp.MustCompile(`(kvcanary_guard_[a-z_]+)(?:\{([^}]*)\})?`)
	labelIn  = regexp.MustCompile(`([a-z_]+) *(?:=~|!=|!~|=)`)
)

// kindIn are the kinds of findings that an expression names.
var kindIn = regexp.MustCompile(`kind(?:=~|=|!~)"([^"]*)"`)

// checkSeries looks for metrics and labels that no guard has.
func checkSeries(t *testing.T, where, expr string, known map[string][]string) {
	t.Helper()
	found := metricIn.FindAllStringSubmatch(expr, -1)
	if len(found) == 0 {
		t.Errorf("%s reads no metric of the guard: %s", where, expr)
	}
	for _, m := range kindIn.FindAllStringSubmatch(expr, -1) {
		for k := range strings.SplitSeq(m[1], "|") {
			if !slices.Contains([]string{watch.Leak, watch.FailOpen, watch.OverSize, watch.Trouble, watch.Broken, watch.Unseen}, k) {
				t.Errorf("%s reads findings of kind %s, which no watch makes", where, k)
			}
		}
	}
	for _, m := range found {
		labels, ok := known[m[1]]
		if !ok {
			t.Errorf("%s reads %s, which no guard has", where, m[1])
		}
		for _, l := range labelIn.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(labels, l[1]) {
				t.Errorf("%s reads label %s of %s, which has %v", where, l[1], m[1], labels)
			}
		}
	}
}

func TestAlertsAndDocumentKnowTheMetrics(t *testing.T) {
	known := series(t)
	for _, r := range alerts(t) {
		checkSeries(t, r.Alert, r.Expr, known)
	}
	docs, err := os.ReadFile("../../../docs/guard.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(docs), "\n## Metrics\n")
	table, _, _ = strings.Cut(table, "\n## ")
	documented := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z, ]*) *\\|").FindAllStringSubmatch(table, -1)
	var names []string
	for _, d := range documented {
		labels := []string{"instance", "le"}
		for l := range strings.SplitSeq(strings.TrimSpace(d[2]), ", ") {
			if l != "" {
				labels = append(labels, l)
			}
		}
		slices.Sort(labels)
		have := slices.Clone(known["kvcanary_guard_"+d[1]])
		slices.Sort(have)
		if !slices.Equal(labels, have) {
			t.Errorf("docs/guard.md says that %s has labels %v, it has %v", d[1], labels, have)
		}
		names = append(names, "kvcanary_guard_"+d[1])
	}
	for name := range known {
		base := regexp.MustCompile("_(bucket|sum|count)$").ReplaceAllString(name, "")
		if !slices.Contains(names, base) {
			t.Errorf("docs/guard.md lacks %s", base)
		}
	}
}

func TestDashboardReadsWhatThereIs(t *testing.T) {
	var d struct {
		UID    string
		Panels []struct {
			Title, Description string
			GridPos            struct{ H, W, X, Y int }
			Targets            []struct{ Expr string }
		}
		Annotations struct{ List []struct{ Expr string } }
		Templating  struct {
			List []struct {
				Name  string
				Query any
			}
		}
	}
	dec := json.NewDecoder(bytes.NewReader(deployed(t, "dashboard.json")))
	if err := dec.Decode(&d); err != nil {
		t.Fatal(err)
	}
	known := series(t)
	var rules strings.Builder
	rules.WriteString("groups: [{name: dashboard, rules: [")
	n := 0
	expr := func(where, e string) {
		checkSeries(t, where, e, known)
		plain := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$upstream", ".*").Replace(e)
		if strings.Contains(plain, "$") {
			t.Errorf("%s uses a variable that there is not: %s", where, e)
		}
		fmt.Fprintf(&rules, "{record: 'panel:%d', expr: %q},\n", n, plain)
		n++
	}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		if p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %q does not say what it shows", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if o := taken[[2]int{x, y}]; o != "" || x >= 24 {
					t.Fatalf("panel %q lies over %q or beyond the edge", p.Title, o)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		for _, q := range p.Targets {
			expr(p.Title, q.Expr)
		}
	}
	for _, a := range d.Annotations.List {
		expr("annotation", a.Expr)
	}
	if n < 20 {
		t.Fatalf("%d expressions", n)
	}
	rules.WriteString("]}]")
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}

// documents are those of a manifest.
func documents(t *testing.T, name string) (out []map[string]any) {
	t.Helper()
	for dec := yaml.NewDecoder(bytes.NewReader(deployed(t, name))); ; {
		var m map[string]any
		if err := dec.Decode(&m); err == io.EOF {
			return out
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, m)
	}
}

// dig goes down by names of fields and places in lists.
func dig(v any, path ...any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[s]
		case int:
			l, _ := v.([]any)
			if s >= len(l) {
				return nil
			}
			v = l[s]
		}
	}
	return v
}

// kind is the first document of a kind.
func kind(all []map[string]any, kind string) map[string]any {
	i := slices.IndexFunc(all, func(m map[string]any) bool { return m["kind"] == kind })
	if i < 0 {
		return nil
	}
	return all[i]
}

// checkFile does what --check does, with files and variables of the examples
// put in their places.
func checkFile(t *testing.T, name, text string, env map[string]string) *Setup {
	t.Helper()
	dir := t.TempDir()
	for _, key := range []string{"salt", "canary"} {
		if err := os.WriteFile(filepath.Join(dir, key), []byte(strings.Repeat("k", 64)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "guard.yaml")
	text = strings.NewReplacer("/etc/kvcanary-keys", dir, "/etc/kvcanary", dir).Replace(text)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	makeKey(t, filepath.Join(dir, "canary"))
	setup, err := Load(file, func(name string) string { return env[name] })
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return setup
}

func TestManifestsHoldGuardsThatStart(t *testing.T) {
	for _, name := range []string{"sidecar.yaml", "gateway.yaml"} {
		all := documents(t, name)
		pod := dig(kind(all, "Deployment"), "spec", "template", "spec")
		containers, _ := dig(pod, "containers").([]any)
		i := slices.IndexFunc(containers, func(c any) bool { return dig(c, "name") == "guard" })
		if i < 0 {
			t.Fatalf("%s has no container called guard", name)
		}
		c := containers[i]
		if image := dig(c, "image"); image != "kvcanary" {
			t.Errorf("%s: image %v", name, image)
		}
		env := map[string]string{}
		vars, _ := dig(c, "env").([]any)
		for _, v := range vars {
			if dig(v, "valueFrom", "secretKeyRef", "key") == nil {
				t.Errorf("%s: %v is no secret's", name, dig(v, "name"))
			}
			env[dig(v, "name").(string)] = "secret of " + dig(v, "name").(string)
		}
		text, _ := dig(kind(all, "ConfigMap"), "data", "guard.yaml").(string)
		// Keys with blanks go into no header.
		for k := range env {
			env[k] = strings.ReplaceAll(env[k], " ", "-")
		}
		setup := checkFile(t, name, text, env)
		ports := map[any]any{}
		for _, p := range dig(c, "ports").([]any) {
			ports[dig(p, "name")] = dig(p, "containerPort")
		}
		if fmt.Sprintf(":%v", ports["http"]) != setup.Config.Listen.Address || fmt.Sprintf(":%v", ports["metrics"]) != setup.Config.Metrics {
			t.Errorf("%s: ports %v, the guard listens on %s and %s", name, ports, setup.Config.Listen.Address, setup.Config.Metrics)
		}
		for probe, path := range map[string]string{"readinessProbe": "/readyz", "livenessProbe": "/healthz"} {
			if dig(c, probe, "httpGet", "path") != path || dig(c, probe, "httpGet", "port") != "metrics" {
				t.Errorf("%s: %s %v", name, probe, dig(c, probe))
			}
		}
		for field, want := range map[string]any{"runAsNonRoot": true, "readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false} {
			if got := dig(c, "securityContext", field); got != want {
				t.Errorf("%s: %s is %v", name, field, got)
			}
		}
		if dig(c, "securityContext", "capabilities", "drop", 0) != "ALL" || dig(c, "securityContext", "seccompProfile", "type") != "RuntimeDefault" ||
			dig(c, "resources", "limits", "memory") == nil || dig(pod, "automountServiceAccountToken") != false {
			t.Errorf("%s: the guard may do more than it has to", name)
		}
		grace, _ := dig(pod, "terminationGracePeriodSeconds").(int)
		wait, _ := dig(c, "lifecycle", "preStop", "sleep", "seconds").(int)
		if drain := setup.Config.Limits.DrainTime + lastWrites; time.Duration(grace-wait)*time.Second < drain || wait == 0 {
			t.Errorf("%s: %d s of grace, of which %d are waited, for a drain of %v", name, grace, wait, drain)
		}
		labels := dig(kind(all, "Deployment"), "spec", "template", "metadata", "labels", "app")
		if got := dig(kind(all, "Service"), "spec", "selector", "app"); got != labels || got == nil {
			t.Errorf("%s: the service selects %v of pods %v", name, got, labels)
		}
		if got := dig(kind(all, "Service"), "spec", "ports", 0, "targetPort"); got != "http" {
			t.Errorf("%s: the service leads to %v", name, got)
		}
	}
	// Beside the guard, the engine must not be reached by anybody else.
	sidecar := dig(kind(documents(t, "sidecar.yaml"), "Deployment"), "spec", "template", "spec", "containers", 0, "args")
	if fmt.Sprintf("%v %v", dig(sidecar, 0), dig(sidecar, 1)) != "--host 127.0.0.1" {
		t.Errorf("the engine listens to everybody: %v", sidecar)
	}
}

func TestUnitRunsWhatThereIs(t *testing.T) {
	setup := checkFile(t, "guard.yaml", string(deployed(t, "guard.yaml")), map[string]string{"KEY_ALPHA": "a", "KEY_BETA": "b"})
	unit := string(deployed(t, "kvcanary-guard.service"))
	value := func(name string) string {
		m := regexp.MustCompile(`(?m)^` + name + `=(.*)$`).FindStringSubmatch(unit)
		if m == nil {
			t.Fatalf("the unit has no %s", name)
		}
		return m[1]
	}
	if got := value("ExecStart"); got+" --check" != value("ExecStartPre") || !strings.HasSuffix(got, " guard --config /etc/kvcanary/guard.yaml") {
		t.Errorf("it runs %s and checks %s", got, value("ExecStartPre"))
	}
	stop, err := time.ParseDuration(value("TimeoutStopSec") + "s")
	if err != nil || stop < setup.Config.Limits.DrainTime+lastWrites {
		t.Errorf("it is killed after %v, and drains for %v", stop, setup.Config.Limits.DrainTime)
	}
	for name, want := range map[string]string{"DynamicUser": "yes", "ProtectSystem": "strict", "NoNewPrivileges": "yes", "CapabilityBoundingSet": "", "MemoryDenyWriteExecute": "yes",
		"RestartPreventExitStatus": "2", "StateDirectory": strings.TrimPrefix(setup.Config.Receipts.Dir, "/var/lib/")} {
		if got := value(name); got != want {
			t.Errorf("%s=%s, want %s", name, got, want)
		}
	}
}

// The image holds nothing but the program, so that it must need nothing else.
func TestContainerfileBuildsAStaticProgram(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Fatal("the image is one of Linux: run the tests there")
	}
	file := string(deployed(t, "Containerfile"))
	build := regexp.MustCompile(`(?m)^RUN CGO_ENABLED=0 (go build .*) -o /kvcanary (\S+)$`).FindStringSubmatch(file)
	if build == nil {
		t.Fatalf("no build without cgo:\n%s", file)
	}
	for _, want := range []string{"\nFROM scratch\n", "\nUSER 65532:65532\n", `ENTRYPOINT ["/kvcanary"]`, `CMD ["guard", "--config", "/etc/kvcanary/guard.yaml"]`} {
		if !strings.Contains(file, want) {
			t.Errorf("lacks %q", want)
		}
	}
	program := filepath.Join(t.TempDir(), "kvcanary")
	args := append(strings.Fields(build[1])[1:], "-o", program, build[2])
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = "../../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if libs, err := f.ImportedLibraries(); err != nil || len(libs) > 0 || slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Errorf("it needs %v, %v", libs, err)
	}
	if out, err := exec.Command(program, "version").Output(); err != nil || len(out) == 0 {
		t.Errorf("it does not run: %q, %v", out, err)
	}
}
