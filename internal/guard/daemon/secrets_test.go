package daemon

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/receipt"
)

// Marks that stand for what must not be written anywhere.
const (
	markTenant   = "MARKtenantkey0123456789"
	markStranger = "MARKstrangerkey01234567"
	markEngine   = "MARKenginekey0123456789"
	markTrace    = "MARKtraceheader01234567"
	markSalt     = "MARKsaltkey0123456789012345678901234567"
	markPrompt   = "MARKprompttext0123456789"
	markModel    = "MARKmodelname 0123456789"
	markHeader   = "MARKclientheader0123456"
	markForeign  = "MARKforeigntext01234567"
	markError    = "MARKerrortext0123456789"
)

// sink takes all that is sent to it.
type sink struct {
	mu  sync.Mutex
	all strings.Builder
}

func (s *sink) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	p, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Write(p)
}

// leaker answers with canaries of another exchange, with errors that repeat the
// prompt, or with nonsense, as it is asked to.
func leaker(words string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		chunk := func(text string) {
			p, _ := json.Marshal(text)
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", p)
		}
		asked := string(body)
		switch {
		case r.Method == http.MethodGet:
			http.NotFound(w, r)
		case strings.Contains(asked, "stream, please"):
			w.Header().Set("Content-Type", "text/event-stream")
			for _, word := range strings.SplitAfter(markForeign+" "+words, " ") {
				chunk(word)
			}
			io.WriteString(w, "data: [DONE]\n\n")
		case strings.Contains(asked, "document, please"):
			w.Header().Set("Content-Type", "application/json")
			p, _ := json.Marshal(markForeign + " " + words)
			fmt.Fprintf(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":%s}}],"usage":{"prompt_tokens":9,"completion_tokens":9}}`, p)
		case strings.Contains(asked, "garbage, please"):
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				io.WriteString(c, "HTTP/1.1 "+markError+"\r\n\r\n")
				c.Close()
			}
		default:
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"noted"}}],"usage":{"prompt_tokens":9,"completion_tokens":1}}`)
		}
	}
}

// Nothing that the guard writes holds a key, a prompt or an answer: not its
// log, metrics, traces, findings and receipts, nor the errors that it makes.
func TestNothingIsWrittenThatIsNotItsOwn(t *testing.T) {
	dir := t.TempDir()
	key, _, err := canary.LoadOrCreateKey(filepath.Join(dir, "canary"), strings.NewReader(strings.Repeat("0123456789abcdef", 8)))
	if err != nil {
		t.Fatal(err)
	}
	planted, err := io.ReadAll(canary.New(key).Words(canary.MakeID(3, 1, 7), 0, 40))
	if err != nil {
		t.Fatal(err)
	}
	words := string(planted)
	if err := os.WriteFile(filepath.Join(dir, "salt"), []byte(markSalt), 0o600); err != nil {
		t.Fatal(err)
	}
	engine := httptest.NewServer(leaker(words))
	t.Cleanup(engine.Close)
	collector := &sink{}
	traces := httptest.NewServer(collector)
	t.Cleanup(traces.Close)
	text := strings.Replace(base(engine.URL), "limits: {prompt: 100000}", "key_env: ENGINE, limits: {prompt: 3000}", 1) + `
tenants: [{name: alpha, key_env: TENANT}]
watch: {key_files: [` + dir + `/canary]}
isolation: {salt_key_file: ` + dir + `/salt}
traces: {endpoint: "` + traces.URL + `", headers: {x-team: TRACE}}
receipts: {dir: ` + dir + `/kept}
findings_file: ` + dir + `/findings.jsonl
`
	s := serve(t, text, map[string]string{"ENGINE": markEngine, "TENANT": markTenant, "TRACE": markTrace})
	var told strings.Builder // errors, as clients see them
	ask := func(key, body string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.at+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("X-Session-Id", markHeader)
		r.Header.Set("X-Request-Id", "mine")
		res, err := s.client.Do(r)
		if err != nil {
			return 0
		}
		defer res.Body.Close()
		p, err := io.ReadAll(res.Body)
		told.WriteString(fmt.Sprint(res.Header, err))
		if res.StatusCode != 200 || strings.Contains(body, "please") {
			told.Write(p)
		}
		return res.StatusCode
	}
	prompt := func(text string, more string) string {
		return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%q}]%s}`, markModel, markPrompt+" "+text, more)
	}
	for _, c := range []struct {
		name, key, body string
		want            int
	}{
		{"served", markTenant, prompt("hello", `,"rid":"MARKrid","user":"x"`), 200},
		{"too long to be judged", markTenant, prompt(strings.Repeat("word ", 2000), ""), 503},
		{"refused field", markTenant, prompt("hello", `,"truncate_prompt_tokens":`+`5`), 400},
		{"no JSON", markTenant, `{"model":"` + markPrompt, 400},
		{"duplicate", markTenant, `{"` + markPrompt + `":1,"` + markPrompt + `":2}`, 400},
		{"stranger", markStranger, prompt("hello", ""), 401},
		{"garbage", markTenant, prompt("garbage, please", ""), 502},
		{"leaked document", markTenant, prompt("document, please", ""), 502},
		{"leaked stream", markTenant, prompt("stream, please", `,"stream":true`), 200},
	} {
		if got := ask(c.key, c.body); got != c.want {
			t.Errorf("%s: status %d, want %d", c.name, got, c.want)
		}
	}
	_, metrics := s.get(s.side + "/metrics")
	_, ready := s.get(s.side + "/readyz")
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	written := map[string]string{"log": s.journal.String(), "metrics": metrics, "readyz": ready, "traces": collector.all.String(), "errors and headers": told.String()}
	kept := 0
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, dir+"/")
		if err != nil || e.IsDir() || name == "canary" || name == "salt" || name == "guard.yaml" || name == "kept/receipt-key" {
			return err
		}
		p, err := os.ReadFile(path)
		written[name] = string(p)
		if strings.HasSuffix(name, "finding.json") {
			kept++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// The search finds what is there.
	for where, want := range map[string]string{"log": `"kind":"leak"`, "metrics": `findings_total{kind="leak",upstream="engine"} 2`, "traces": "gen_ai.operation.name", "findings.jsonl": `"from_exchange"`, "errors and headers": "leak_stopped"} {
		if !strings.Contains(written[where], want) {
			t.Errorf("%s lacks %s:\n%s", where, want, written[where])
		}
	}
	if kept != 2 {
		t.Errorf("%d findings are kept, want 2", kept)
	}
	some := strings.Fields(words)
	secrets := []string{strings.Join(some[8:12], " "), strings.Join(some[30:34], " ")}
	for _, m := range []string{markTenant, markStranger, markEngine, markTrace, markSalt, markPrompt, markModel, markHeader, markForeign, markError, "MARKrid"} {
		secrets = append(secrets, forms(m)...)
	}
	for where, text := range written {
		for i, secret := range secrets {
			// In strict mode the client gets the engine's own words before the leaked ones.
			if where == "errors and headers" && secret == markForeign {
				continue
			}
			if strings.Contains(text, secret) {
				t.Errorf("%s holds secret %d, %q:\n%s", where, i, secret, text)
			}
		}
	}
	verifies(t, filepath.Join(dir, "kept"))
}

// forms are the ways in which a text may be written.
func forms(s string) []string {
	return []string{s, base64.StdEncoding.EncodeToString([]byte(s))[:len(s)/3*4], hex.EncodeToString([]byte(s)), url.QueryEscape(s)}
}

// verifies checks the receipts of all findings.
func verifies(t *testing.T, dir string) {
	t.Helper()
	public, err := os.ReadFile(filepath.Join(dir, "receipt-key.pub"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := receipt.ParseVerifier(string(public))
	if err != nil {
		t.Fatal(err)
	}
	folders, err := os.ReadDir(filepath.Join(dir, "findings"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("no findings: %v", err)
	}
	for _, f := range folders {
		all, err := receipt.VerifyDir(filepath.Join(dir, "findings", f.Name()), receipt.Against{Key: v})
		if err != nil || len(all) != 1 || len(all[0].Problems) > 0 {
			t.Errorf("%s: %+v, %v", f.Name(), all, err)
		}
	}
}
