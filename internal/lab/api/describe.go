package api

import (
	"bufio"
	"net/http"
	"strconv"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// listed is one of the models of GET /v1/models.
type listed struct {
	ID          string  `json:"id"`
	Object      string  `json:"object"`
	Created     int64   `json:"created"`
	OwnedBy     string  `json:"owned_by"`
	Root        string  `json:"root"`
	Parent      *string `json:"parent"` // of an adapter: the bare model
	MaxModelLen int     `json:"max_model_len"`
}

// models serves GET /v1/models. Like SGLang it names the whole context window,
// not what the pools can hold.
func (h *handler) models(w http.ResponseWriter, _ *http.Request, _ string) {
	s := h.Backend.State()
	bare := listed{ID: h.Model, Object: "model", Created: h.Now().Unix(), OwnedBy: "sglang", Root: h.Model, MaxModelLen: s.Context}
	all := []listed{bare}
	for _, a := range s.Adapters {
		m := bare
		m.ID, m.Root, m.Parent = h.Model+":"+a, a, &h.Model
		all = append(all, m)
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": all})
}

// modelInfo serves GET /model_info.
func (h *handler) modelInfo(w http.ResponseWriter, _ *http.Request, _ string) {
	writeJSON(w, http.StatusOK, map[string]any{
		"model_path": h.Model, "tokenizer_path": h.Model, "is_generation": true, "preferred_sampling_params": nil,
	})
}

// worker is what one node says about itself, in SGLang's words. Token counts.
type worker struct {
	Status             string          `json:"status"`
	ModelPath          string          `json:"model_path"`
	ServedModelName    string          `json:"served_model_name"`
	DisaggregationMode string          `json:"disaggregation_mode"`
	ContextLength      int             `json:"context_length"`
	PageSize           int             `json:"page_size"`
	MaxTotalNumTokens  int             `json:"max_total_num_tokens"`
	MaxReqInputLen     int             `json:"max_req_input_len"`
	AllowAutoTruncate  bool            `json:"allow_auto_truncate"`
	EnableKVChecksum   bool            `json:"disaggregation_enable_kv_checksum"`
	NumReservedDecode  int             `json:"num_reserved_decode_tokens"`
	DisableRadixCache  bool            `json:"disable_radix_cache"`
	EnableCacheReport  bool            `json:"enable_cache_report"`
	Hierarchical       bool            `json:"enable_hierarchical_cache"`
	Version            string          `json:"version"`
	InternalStates     []internalState `json:"internal_states"`
}

type internalState struct {
	MemoryUsage memoryUsage `json:"memory_usage"`
}

type memoryUsage struct {
	TokenCapacity int `json:"token_capacity"`
}

// serverInfo serves GET /server_info as a load balancer for prefill and decode
// nodes merges it: what each node says, under the words of the smaller one.
func (h *handler) serverInfo(w http.ResponseWriter, _ *http.Request, _ string) {
	s := h.Backend.State()
	prefill, decode := h.worker(s, "prefill", s.PrefillPool), h.worker(s, "decode", s.DecodePool)
	limiting := prefill
	if s.DecodePool < s.PrefillPool {
		limiting = decode
	}
	writeJSON(w, http.StatusOK, struct {
		worker
		Prefill  []worker `json:"prefill"`
		Decode   []worker `json:"decode"`
		Faults   []string `json:"lab_faults"`
		Defences []string `json:"lab_defences"`
	}{limiting, []worker{prefill}, []worker{decode}, append([]string{}, s.Faults...), append([]string{}, s.Defences...)})
}

func (h *handler) worker(s lab.State, mode string, pool int) worker {
	return worker{
		Status: "ready", ModelPath: h.Model, ServedModelName: h.Model, DisaggregationMode: mode,
		ContextLength: s.Context, PageSize: s.PageSize, MaxTotalNumTokens: pool,
		MaxReqInputLen: min(s.Context-1, pool-1) - 5, AllowAutoTruncate: s.AutoTruncate, Version: s.Version,
		// Decode keeps nothing; prefill what it is told to.
		DisableRadixCache: mode == "decode" || s.PrefixCache == 0, EnableCacheReport: true, Hierarchical: mode == "prefill" && s.Tier > 0,
		InternalStates: []internalState{{memoryUsage{pool}}},
	}
}

// health serves GET /health.
func (h *handler) health(w http.ResponseWriter, _ *http.Request) {
	if why := h.Backend.State().Broken; why != "" {
		writeError(w, lab.Error{Status: http.StatusServiceUnavailable, Type: "ServiceUnavailableError", Message: why})
		return
	}
	w.WriteHeader(http.StatusOK)
}

// tokenize serves POST /tokenize: the exact length of a prompt or of a chat
// with its template, and its tokens unless return_tokens is false.
func (h *handler) tokenize(w http.ResponseWriter, r *http.Request, _ string) {
	var b struct {
		Model        string    `json:"model"`
		Prompt       *phrase   `json:"prompt"`
		Messages     []message `json:"messages"`
		ReturnTokens *bool     `json:"return_tokens"`
	}
	err := h.decode(w, r, &b)
	var tokens []byte
	if err == nil {
		_, err = h.adapter(b.Model)
	}
	switch {
	case err != nil:
	case (b.Prompt == nil) == (b.Messages == nil):
		err = badRequest("give either prompt or messages")
	case b.Prompt != nil:
		tokens = promptTokens(*b.Prompt)
	default:
		tokens, _, err = chatTokens(b.Messages)
	}
	if err != nil {
		writeError(w, *err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	writeTokens(w, tokens, b.ReturnTokens == nil || *b.ReturnTokens, h.Backend.State().Context)
}

// writeTokens writes the answer as it goes: a list of a million tokens is
// several megabytes of JSON. A write error means that the client is gone.
func writeTokens(w http.ResponseWriter, tokens []byte, list bool, context int) {
	out := bufio.NewWriter(w)
	defer out.Flush()
	out.WriteByte('{')
	if list {
		out.WriteString(`"tokens":[`)
		for i, t := range tokens {
			if i > 0 {
				out.WriteByte(',')
			}
			out.WriteString(strconv.Itoa(int(t)))
		}
		out.WriteString(`],`)
	}
	out.WriteString(`"count":` + strconv.Itoa(len(tokens)) + `,"max_model_len":` + strconv.Itoa(context) + "}\n")
}
