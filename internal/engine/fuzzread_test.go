package engine

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// sane fails if facts hold what nobody could have stated.
func sane(t *testing.T, f Facts) {
	v := reflect.ValueOf(f)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		switch x := v.Field(i).Interface().(type) {
		case Number:
			if x.Value < 0 || x.Value > maxCount || x.Value > 0 && (x.Source == "" || x.Basis == "") {
				t.Errorf("%s is %+v", name, x)
			}
		case Text:
			if len(x.Value) > 4*maxWord || (x.Value != "") != (x.Basis != "") {
				t.Errorf("%s is %+v", name, x)
			}
		case Flag:
			if x.Known != (x.Source != "") || x.On && !x.Known {
				t.Errorf("%s is %+v", name, x)
			}
		}
	}
}

// seed adds the sections of recorded files.
func seed(f *testing.F, folder string) {
	paths, _ := filepath.Glob(filepath.Join("testdata", folder, "*.txtar"))
	if len(paths) == 0 {
		f.Fatal("no seeds")
	}
	for _, path := range paths {
		p, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range txtar.Parse(p).Files {
			f.Add(string(file.Data))
		}
	}
}

func FuzzReadLog(f *testing.F) {
	seed(f, "logs")
	f.Add("n_ctx_slot = 99999999999999999999, n_slots = 4")
	f.Fuzz(func(t *testing.T, log string) {
		facts, err := ReadLog(strings.NewReader(log), "")
		if (err == nil) != (facts.Engine != "") {
			t.Errorf("%v, engine %q", err, facts.Engine)
		}
		sane(t, facts)
	})
}

func FuzzMetrics(f *testing.F) {
	seed(f, "answers")
	f.Add("vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"9223372036854775807\"} NaN")
	f.Fuzz(func(t *testing.T, text string) {
		a := &asker{scraped: parseMetrics([]byte(text))}
		for _, e := range []Engine{vllm, dynamo, trtllm, triton} {
			facts := Facts{Engine: e.Name}
			a.client.Transport = nobody{}
			e.ask(t.Context(), a, &facts)
			sane(t, facts)
		}
	})
}

func FuzzReadCommand(f *testing.F) {
	for _, s := range []string{
		"vllm serve m --max-model-len 32k --kv-transfer-config {\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_producer\"}",
		"python3 -m sglang.launch_server --context-length=1048576 --page-size 64 --allow-auto-truncate",
		"llama-server -c 8192 -np 4 --no-kv-unified", "text-generation-launcher --max-total-tokens 4096 --", "ollama serve", "trtllm-serve m --max_seq_len -1",
	} {
		f.Add(s, "")
	}
	f.Add("serve", "vllm/vllm-openai:v0.11.0@sha256:00")
	f.Fuzz(func(t *testing.T, line, image string) {
		facts, ok := ReadCommand(Command{Args: strings.Fields(line), Image: image, At: "x", Env: map[string]string{"MAX_TOTAL_TOKENS": line}})
		if ok != (facts.Engine != "") {
			t.Errorf("ok %v, engine %q", ok, facts.Engine)
		}
		sane(t, facts)
	})
}

// nobody answers no request.
type nobody struct{}

func (nobody) RoundTrip(*http.Request) (*http.Response, error) { return nil, io.EOF }
