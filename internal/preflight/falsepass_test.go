package preflight

import (
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/engine"
)

// What a manifest leaves open is no reason to let an engine have traffic.
func TestManifestsThatLeaveSomethingOpen(t *testing.T) {
	const sglang = "python3 -m sglang.launch_server --context-length 8192 --max-total-tokens 100000"
	for name, text := range map[string]string{
		"a pool that is asked for":     sglang,
		"the same with =":              "python3 -m sglang.launch_server --context-length=8192 --max_total_tokens=100000",
		"a variable at the end":        `sh -c "` + sglang + ` $EXTRA"`,
		"a variable behind a switch":   sglang + " --trust-remote-code ${SERVER_ARGS}",
		"a file with more flags":       "llama-server -c 8192 --parallel 1 --cache-ram 0 $MORE",
		"an abbreviated flag":          sglang + " --allow-auto-trunc",
		"a second that cannot be read": "text-generation-launcher --max-total-tokens 4096 --max-batch-total-tokens 20000 --max-total-tokens 1_048_576",
		"settings in another file":     "llama-server --parallel 1 -c 8192 --config c.yaml",
		"a window from elsewhere":      "services:\n  x: {image: ollama/ollama, environment: [OLLAMA_CONTEXT_LENGTH]}\n",
	} {
		t.Run(name, func(t *testing.T) {
			workers, err := ReadManifest("f", strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if r := Check(Deployment{Declared: workers}); r.ExitCode() == 0 {
				t.Errorf("exit 0: %s\n%+v", r.Summary, workers[0].Facts)
			}
		})
	}
}

func known(n int) engine.Number {
	return engine.Number{Value: n, Source: "test", Basis: engine.Stated}
}

// sglangWorker is a sound worker of a deployment whose prefill and decode are apart.
func sglangWorker(name, role string, context, pool int) Worker {
	return Worker{Name: name, Facts: engine.Facts{
		Engine: "sglang", Version: engine.Text{Value: "0.5.22", Source: "test"}, Role: engine.Text{Value: role, Source: "test"},
		Context: known(context), Pool: known(pool), MaxInput: known(min(context, pool) - 6), PageSize: known(64),
		Reserve:   engine.Number{Value: 512, Source: "test"},
		Truncates: engine.Flag{Known: true, Source: "test", Basis: engine.Stated}, Checksum: engine.Flag{Known: true, On: true, Source: "test"},
	}}
}

func stateOf(t *testing.T, r Report, rule string) State {
	t.Helper()
	for _, x := range r.Results {
		if x.Rule == rule {
			return x.State
		}
	}
	t.Fatalf("no result of %s", rule)
	return ""
}

// Of several decode workers the one that lets in most counts.
func TestOneDecodeWorkerThatLetsInMore(t *testing.T) {
	d := Deployment{Workers: []Worker{
		sglangWorker("p", "prefill", 100_000, 200_000),
		sglangWorker("d0", "decode", 100_000, 200_000),
		sglangWorker("d1", "decode", 190_000, 200_000),
	}}
	if r := Check(d); stateOf(t, r, "admission_limits_agree") != Fail || r.ExitCode() != 1 {
		t.Errorf("exit %d: %s", r.ExitCode(), r.Summary)
	}
	d.Workers = d.Workers[:2]
	if r := Check(d); r.ExitCode() != 0 {
		t.Errorf("a sound deployment: exit %d: %s", r.ExitCode(), r.Summary)
	}
}

// A manifest of an engine that nobody asked is judged beside those that run.
func TestDeclaredThatNobodyAsked(t *testing.T) {
	running := sglangWorker("http://a", "both", 8192, 100_000)
	short := sglangWorker("b.yaml", "both", 1_048_576, 681_280)
	same := sglangWorker("a.yaml", "both", 8192, 100_000)
	follower := sglangWorker("a.yaml: follower", "both", 8192, 100_000)
	if r := Check(Deployment{Workers: []Worker{running}, Declared: []Worker{same, follower}}); len(r.Workers) != 1 || r.ExitCode() != 0 {
		t.Errorf("a leader and its follower: %d workers, %s", len(r.Workers), r.Summary)
	}
	if r := Check(Deployment{Workers: []Worker{running}, Declared: []Worker{same, short}}); r.ExitCode() != 1 {
		t.Errorf("exit %d: %s", r.ExitCode(), r.Summary)
	}
}

// One refused prompt of one worker does not excuse another that says it cuts.
func TestProbeDoesNotExcuseAnotherWorker(t *testing.T) {
	a, b := sglangWorker("a", "both", 8192, 100_000), sglangWorker("b", "both", 8192, 100_000)
	b.Facts.Truncates.On = true
	d := Deployment{Workers: []Worker{a, b}, Probe: &Probe{At: "a", AcceptedMax: 8000, RejectedMin: 8187}}
	if r := Check(d); r.ExitCode() != 1 {
		t.Error(r.Summary)
	}
}

// Tags of other people's images, and variants that are no platform, do not say
// which release is inside.
func TestImagesThatAreNoRelease(t *testing.T) {
	for image, want := range map[string]string{
		"lmsysorg/sglang:v0.5.21-cu129": "v0.5.21-cu129", "harbor.corp/mirror/lmsysorg/sglang:v0.5.21": "v0.5.21",
		"acme/our-sglang:9.9.9": "", "registry.local:5000/sglang:9.9.9": "",
	} {
		f, ok := engine.ReadCommand(engine.Command{Image: image})
		if !ok || f.Version.Value != want {
			t.Errorf("%s: version %q, %v", image, f.Version.Value, ok)
		}
	}
	for v, want := range map[string]bool{"0.5.21-cu129": true, "v0.11.0-x86_64": true, "3.3.5-rocm": true, "0.5.21-acme": false, "0.29.0-rc1": false, "0.29.0-cu129-patched": false} {
		if _, ok := parseRelease(v); ok != want {
			t.Errorf("%s: %v", v, ok)
		}
	}
}

// A manifest's author may be anybody: what is shown of it drives no terminal.
func TestHostileNamesInManifests(t *testing.T) {
	text := "kind: \"Pod\\e[2J\"\nmetadata: {name: \"a\\u202eb\"}\nspec:\n  containers:\n  - {name: \"c\\e]0;x\\a\", image: 'vllm/vllm-openai:v0.29.0', args: [--prefix-caching-hash-algo, \"s\\e[31m\"]}\n"
	workers, err := ReadManifest("f", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r := Check(Deployment{Declared: workers})
	var b strings.Builder
	if err := Text(&b, &r); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x1b\x07\u202e") {
		t.Errorf("%q", b.String())
	}
}
