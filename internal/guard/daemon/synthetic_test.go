package daemon

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/kvcanary/kvcanary/canary"
)

// mixer is an engine that now and then answers with the prompt before the last.
type mixer struct {
	mu    sync.Mutex
	last  string // words of a canary that was planted
	coder *canary.Coder
	seen  int
}

func (m *mixer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.Method == http.MethodGet {
		http.NotFound(w, r)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if hits := m.coder.Scan(body); len(hits) > 0 {
		m.seen++
		_, rest, _ := strings.Cut(string(body), `"content":"`)
		m.last, _, _ = strings.Cut(rest, `"`)
	}
	content := "noted"
	if strings.Contains(string(body), "leak, please") && m.last != "" {
		content = m.last
	}
	io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"`+content+`"}}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}`)
}

// What the guard plants itself is found in a customer's answer, and is nobody's
// finding where it was planted; its tenant is let in by no key that anybody has.
func TestPlantsWhatItThenFinds(t *testing.T) {
	for name, tenants := range map[string]string{
		"any":    "tenants: any\n",
		"keys":   "tenants: [{name: alpha, key_env: KEY}]\n",
		"header": "tenants: any\ntenant_header: X-Customer\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			key, _, err := canary.LoadOrCreateKey(filepath.Join(dir, "key"), strings.NewReader(strings.Repeat("0123456789abcdef", 8)))
			if err != nil {
				t.Fatal(err)
			}
			m := &mixer{coder: canary.New(key)}
			engine := httptest.NewServer(m)
			t.Cleanup(engine.Close)
			s := serve(t, base(engine.URL)+tenants+"synthetic: {key_file: "+dir+"/key, model: m, every: 1s, words: 16}\n", map[string]string{"KEY": "secret"})
			s.eventually("to plant", func() bool { m.mu.Lock(); defer m.mu.Unlock(); return m.seen > 0 })
			s.eventually("to count it", func() bool {
				return s.metric(`kvcanary_guard_requests_total{code="2xx",dialect="openai",upstream="engine"}`) != "0"
			})
			if got := s.metric(`kvcanary_guard_findings_total{kind="leak",upstream="engine"}`); got != "0" {
				t.Errorf("%s findings where nothing has leaked", got)
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.at+"/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"leak, please"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer secret")
			r.Header.Set("X-Customer", "alpha")
			res, err := s.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			p, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != 502 || !strings.Contains(string(p), "leak_stopped") {
				t.Errorf("%d %s, %v", res.StatusCode, p, err)
			}
			if got := s.metric(`kvcanary_guard_findings_total{kind="leak",upstream="engine"}`); got != "1" {
				t.Errorf("%s findings", got)
			}
			if err := s.end(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWhoCannotPlant(t *testing.T) {
	file := filepath.Join(t.TempDir(), "guard.yaml")
	const text = "upstreams: [{name: a, base_url: http://a, forward_key: true}]\ntenants: any\nsynthetic: {key_file: nowhere, model: m}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(file, os.Getenv)
	for _, want := range []string{"read the key of the synthetic tenant: ", "upstream a is shown the keys of clients (forward_key)"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %s", err, want)
		}
	}
}
