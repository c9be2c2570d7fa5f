package preflight

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/engine"
)

const leaderWorkerSet = `
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: glm}
spec:
  leaderWorkerTemplate:
    leaderTemplate:
      spec:
        containers:
        - name: leader
          image: lmsysorg/sglang:v0.5.21-cu129
          env:
          - {name: WINDOW, value: "131072"}
          - name: HF_TOKEN
            valueFrom: {secretKeyRef: {name: hf, key: token}}
          command: ["sh", "-c"]
          args:
          - |
            exec python3 -m sglang.launch_server --context-length ${WINDOW} \
              --disaggregation-mode decode --disaggregation-enable-kv-checksum --api-key sk-marked-secret
    workerTemplate:
      spec:
        containers:
        - {name: sidecar, image: envoy}
---
kind: StatefulSet
metadata: {name: v}
spec:
  template: &t
    spec:
      containers:
      - name: vllm
        image: registry.local:5000/vllm/vllm-openai:v0.11.0
        args: ["--model", "m", "--max-model-len=32k", "--no-enable-prefix-caching", "--kv-transfer-config", '{"kv_connector":"NixlConnector","kv_role":"kv_consumer","kv_load_failure_policy":"recompute"}']
        env: [{name: VLLM_DISABLE_REQUEST_ID_RANDOMIZATION, value: "1"}]
  again: *t
`

func TestManifests(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"kubernetes": {leaderWorkerSet, `
f: LeaderWorkerSet glm, container leader: sglang v0.5.21-cu129 decode, context 131072 (f: LeaderWorkerSet glm, container leader: --context-length)
f: StatefulSet v, container vllm: vllm v0.11.0 decode, context 32000 (f: StatefulSet v, container vllm: --max-model-len)
f: StatefulSet v, container vllm: vllm v0.11.0 decode, context 32000 (f: StatefulSet v, container vllm: --max-model-len)`},
		"compose": {"services:\n  llm:\n    image: ghcr.io/ggml-org/llama.cpp:server\n    command: -c 8192 -np 4 --no-kv-unified --host 0.0.0.0\n  ui: {image: nginx}\n  o:\n    image: ollama/ollama:0.32.14\n    environment: [OLLAMA_CONTEXT_LENGTH=8192]\n", `
f: service llm: llamacpp  , context 2048 (f: service llm: -c a slot)
f: service o: ollama 0.32.14 , context 8192 (f: service o: OLLAMA_CONTEXT_LENGTH)`},
		"systemd": {"[Unit]\nDescription=x\n[Service]\nEnvironment=\"MAX_TOTAL_TOKENS=4096\" MAX_INPUT_TOKENS=4095\nExecStart=/usr/bin/text-generation-launcher \\\n  --model-id m --max-batch-total-tokens 2048\n", `
f: tgi  , context 4096 (f: MAX_TOTAL_TOKENS)`},
		"command": {"# prefill\nCUDA_VISIBLE_DEVICES=0 python -m sglang.launch_server --model-path m --context-length 1048576 --max-total-tokens 681280\n", `
f: sglang  both, context 1048576 (f: --context-length)`},
	} {
		t.Run(name, func(t *testing.T) {
			workers, err := ReadManifest("f", strings.NewReader(c.text))
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, w := range workers {
				fmt.Fprintf(&got, "\n%s: %s %s %s, context %d (%s)", w.Name, w.Facts.Engine, w.Facts.Version.Value, w.role(), w.Facts.Context.Value, w.Facts.Context.Source)
			}
			if got.String() != c.want {
				t.Errorf("got%s\nwant%s", got.String(), c.want)
			}
			if strings.Contains(fmt.Sprintf("%+v", workers), "marked-secret") {
				t.Error("a secret is kept")
			}
		})
	}
}

func TestManifestsThatSayNothing(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"template":  {"args: {{ .Values.args }}", "this is a template"},
		"no engine": {"kind: Pod\nspec: {containers: [{name: a, image: nginx}]}", "no inference engine is started here"},
		"empty":     {"", "no inference engine"},
		"tabs":      {"kind: Pod\nspec:\n\tcontainers: []", "spaces, not tabs"},
		"broken":    {"a: [", "f: yaml"},
		"large":     {strings.Repeat("#", maxManifest+1), "longer than"},
		"deep":      {strings.Repeat("[", 500) + strings.Repeat("]", 500), "no inference engine"},
		"bomb":      {"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]", "f: yaml"},
		"binary":    {"\x00\x01\xff", "f: yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadManifest("f", strings.NewReader(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func FuzzReadManifest(f *testing.F) {
	f.Add(leaderWorkerSet)
	f.Add("[Service]\nExecStart=vllm serve m --max-model-len 4096")
	f.Add("services: {a: {command: 'llama-server -c 1'}}")
	f.Add("llama-server -c '")
	f.Fuzz(func(t *testing.T, text string) {
		workers, err := ReadManifest("f", strings.NewReader(text))
		if (err == nil) != (len(workers) > 0) {
			t.Errorf("%d workers, %v", len(workers), err)
		}
		for _, w := range workers {
			if _, ok := engine.Find(w.Facts.Engine); !ok {
				t.Errorf("engine %q", w.Facts.Engine)
			}
		}
	})
}
