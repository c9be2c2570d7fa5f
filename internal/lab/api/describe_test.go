package api

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/kvcanary/kvcanary/internal/engine"
)

// What asks engines in the field understands what the lab says of itself.
func TestFactsAreRead(t *testing.T) {
	b := newFake()
	url := serve(t, b, func(o *Options) { o.Keys = map[string]string{"sk-a": "a"} }).URL
	got := engine.Ask(t.Context(), http.DefaultClient, url+"/v1", "sk-a")
	want := engine.Facts{
		Engine:     "sglang",
		Version:    engine.Text{Value: "0.5.11", Source: "GET /server_info prefill[].version", Basis: engine.Stated},
		Models:     []engine.Model{{ID: "lab", Context: 16384}},
		Context:    engine.Number{Value: 16384, Source: "GET /server_info prefill[].context_length", Basis: engine.Stated},
		Pool:       engine.Number{Value: 10640, Source: "GET /server_info prefill[].max_total_num_tokens", Basis: engine.Stated},
		DecodePool: engine.Number{Value: 20480, Source: "GET /server_info decode[].max_total_num_tokens", Basis: engine.Stated},
		MaxInput:   engine.Number{Value: 10634, Source: "GET /server_info prefill[].max_req_input_len", Basis: engine.Stated},
		PageSize:   engine.Number{Value: 16, Source: "GET /server_info prefill[].page_size", Basis: engine.Stated},
	}
	if len(got.Behind) != 2 || got.Behind[0].MaxInput.Value != 10634 || got.Behind[1].MaxInput.Value != 16378 || got.Behind[1].Role.Value != "decode" {
		t.Errorf("of the workers: %+v", got.Behind)
	}
	if !got.Router.Is(true) || !got.Truncates.Is(false) || !got.Checksum.Is(false) {
		t.Errorf("got %+v", got)
	}
	short := engine.Facts{
		Engine: got.Engine, Version: got.Version, Models: got.Models, Context: got.Context, Pool: got.Pool,
		DecodePool: got.DecodePool, MaxInput: got.MaxInput, PageSize: got.PageSize,
	}
	if !reflect.DeepEqual(short, want) {
		t.Errorf("got  %+v\nwant %+v", short, want)
	}
	if got := engine.Ask(t.Context(), http.DefaultClient, url, "sk-other"); got.Engine != "" {
		t.Errorf("a stranger learns %+v", got)
	}
}

func TestServerInfoSpeaksForTheSmallerPool(t *testing.T) {
	b := newFake()
	b.state.AutoTruncate = true
	url := serve(t, b, nil).URL
	read := func(path string) (info struct {
		worker
		Prefill, Decode []worker
		Faults          []string `json:"lab_faults"`
		Defences        []string `json:"lab_defences"`
	}) {
		t.Helper()
		_, body := get(t, url+path)
		if err := json.Unmarshal([]byte(body), &info); err != nil {
			t.Fatal(err)
		}
		return info
	}
	info := read("/server_info")
	if info.MaxTotalNumTokens != 10640 || info.MaxReqInputLen != 10634 || info.DisaggregationMode != "prefill" ||
		info.ContextLength != 16384 || info.PageSize != 16 || info.Status != "ready" || !info.AllowAutoTruncate ||
		info.InternalStates[0].MemoryUsage.TokenCapacity != 10640 {
		t.Errorf("%+v", info.worker)
	}
	if d := info.Decode[0]; d.MaxTotalNumTokens != 20480 || d.MaxReqInputLen != 16378 || d.DisaggregationMode != "decode" {
		t.Errorf("%+v", d)
	}
	if !reflect.DeepEqual(info.Prefill[0], info.worker) || len(info.Faults) != 1 || info.Defences == nil {
		t.Errorf("%+v", info)
	}
	b.state.PrefillPool = 40960
	if info := read("/get_server_info"); info.MaxTotalNumTokens != 20480 || info.DisaggregationMode != "decode" {
		t.Errorf("%+v", info.worker)
	}
}

func TestModelsAndModelInfo(t *testing.T) {
	url := serve(t, newFake(), nil).URL
	const want = `{"data":[{"id":"lab","object":"model","created":1790000000,"owned_by":"sglang","root":"lab","parent":null,"max_model_len":16384}],"object":"list"}` + "\n"
	if _, got := get(t, url+"/v1/models"); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
	for _, path := range []string{"/model_info", "/get_model_info"} {
		if _, got := get(t, url+path); !strings.Contains(got, `"model_path":"lab"`) {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func TestTokenize(t *testing.T) {
	url := serve(t, newFake(), nil).URL
	const chat = `"messages":[{"role":"system","content":"s"},{"role":"user","content":"hé"}]`
	for _, c := range []struct{ body, want string }{
		{`{"prompt":"hé"}`, `{"tokens":[104,195,169],"count":3,"max_model_len":16384}`},
		{`{"prompt":""}`, `{"tokens":[],"count":0,"max_model_len":16384}`},
		{`{"prompt":"a\u0001b"}`, `{"tokens":[97,98],"count":2,"max_model_len":16384}`},
		{`{` + chat + `}`, `{"tokens":[1,115,10,104,195,169,2],"count":7,"max_model_len":16384}`},
		{`{"return_tokens":false,"model":"lab",` + chat + `}`, `{"count":7,"max_model_len":16384}`},
	} {
		for _, path := range []string{"/tokenize", "/v1/tokenize"} {
			if status, got := post(t, url+path, c.body); status != 200 || got != c.want+"\n" {
				t.Errorf("%s %s: %d %s, want %s", path, c.body, status, got, c.want)
			}
		}
	}
}

// A count that differs from what the engine is sent would put every probe of
// a limit off by it.
func TestTokenizeCountsWhatTheEngineGets(t *testing.T) {
	b := newFake()
	url := serve(t, b, nil).URL
	const chat = `{"return_tokens":false,"messages":[{"role":"system","content":"s\u0003"},{"role":"user","content":"one"},{"role":"assistant","content":"two"},{"role":"user","content":"日本"}]}`
	post(t, url+"/v1/chat/completions", chat)
	_, body := post(t, url+"/tokenize", chat)
	var answer struct{ Count int }
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	if sent := len(b.last.Load().Tokens); answer.Count != sent || sent == 0 {
		t.Errorf("counted %d, sent %d", answer.Count, sent)
	}
}

func TestHealth(t *testing.T) {
	b := newFake()
	url := serve(t, b, nil).URL
	if status, body := get(t, url+"/health"); status != 200 || body != "" {
		t.Errorf("%d %q", status, body)
	}
	b.state.Broken = "decode node is gone"
	if status, body := get(t, url+"/health"); status != 503 || !strings.Contains(body, "decode node is gone") {
		t.Errorf("%d %s", status, body)
	}
}

func TestMetricsHaveSGLangsNames(t *testing.T) {
	_, body := get(t, serve(t, newFake(), nil).URL+"/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for name, family := range families {
		for _, m := range family.Metric {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["model_name"] != "lab" {
				t.Errorf("%s has labels %v", name, labels)
			}
			got[name+" "+labels["engine_type"]] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	want := map[string]float64{
		"sglang:max_total_num_tokens prefill": 10640, "sglang:max_total_num_tokens decode": 20480,
		"sglang:context_len prefill": 16384, "sglang:context_len decode": 16384,
		"sglang:page_size prefill": 16, "sglang:page_size decode": 16,
		"sglang:num_used_tokens prefill": 160, "sglang:num_used_tokens decode": 320,
		"sglang:token_usage prefill": 160. / 10640, "sglang:token_usage decode": 320. / 20480,
		"sglang:num_running_reqs prefill": 0, "sglang:num_running_reqs decode": 2,
		"sglang:num_queue_reqs prefill": 3, "sglang:num_queue_reqs decode": 0,
		"sglang:num_transfer_failed_reqs_total prefill": 0, "sglang:num_transfer_failed_reqs_total decode": 4,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
