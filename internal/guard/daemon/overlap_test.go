package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// An engine that answers with the request before is reported by a guard whose
// file says so: in its log as a warning, in a metric and in a sealed finding,
// and nowhere with a word of the text.
func TestOverlapIsReportedAndNotStopped(t *testing.T) {
	var before atomic.Value // what the request before said
	before.Store("nothing yet")
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var asked struct{ Messages []struct{ Content string } }
		if json.Unmarshal(body, &asked) != nil || len(asked.Messages) == 0 {
			http.NotFound(w, r)
			return
		}
		p, _ := json.Marshal(before.Swap(asked.Messages[0].Content))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":%s}}],"usage":{"prompt_tokens":9,"completion_tokens":9}}`, p)
	}))
	t.Cleanup(engine.Close)
	dir := t.TempDir()
	file := base(engine.URL) + `tenants: [{name: alpha, key_env: ALPHA}, {name: beta, key_env: BETA}]
overlap: {memory_bytes: 1048576}
receipts: {dir: ` + dir + `/kept}
findings_file: ` + dir + `/findings.jsonl
`
	s := serve(t, file, map[string]string{"ALPHA": "key-of-alpha", "BETA": "key-of-beta"})
	var secret strings.Builder
	for i := range 50 {
		fmt.Fprintf(&secret, "Zorgblatt %d pays %d to Quuxley on day %d.\n", i, i*7919+11, i*i*3)
	}
	if code, _ := s.chat("key-of-alpha", secret.String()); code != 200 {
		t.Fatal(code)
	}
	if code, body := s.chat("key-of-beta", "hello"); code != 200 || !strings.Contains(body, "Zorgblatt 49") {
		t.Errorf("%d %s", code, body)
	}
	s.eventually("to count it", func() bool { return s.metric(`kvcanary_guard_findings_total{kind="overlap",upstream="engine"}`) == "1" })
	found := s.journal.with("finding")
	if len(found) != 1 || found[0]["level"] != "WARN" || found[0]["kind"] != "overlap" || found[0]["tenant"] != "beta" || !strings.Contains(found[0]["explain"].(string), "tenant alpha") {
		t.Errorf("%v", found)
	}
	s.write(strings.Replace(file, "1048576", "2097152", 1))
	s.looks(3)
	if lines := s.journal.with("the new configuration is refused, the old one stays in force"); len(lines) != 1 || !strings.Contains(lines[0]["trouble"].(string), "overlap cannot change while the guard serves: restart it") {
		t.Errorf("%v", lines)
	}
	// The memory outlives a reload.
	s.write(file + "limits: {concurrency: 100}\n")
	s.looks(3)
	if lines := s.journal.with("the new configuration is in force"); len(lines) != 1 {
		t.Fatalf("%v", s.journal.String())
	}
	before.Store(secret.String())
	s.chat("key-of-beta", "hello again")
	s.eventually("to count it again", func() bool { return s.metric(`kvcanary_guard_findings_total{kind="overlap",upstream="engine"}`) == "2" })
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(filepath.Join(dir, "findings.jsonl"))
	if err != nil || strings.Count(string(lines), `"overlap"`) != 2 {
		t.Errorf("%s, %v", lines, err)
	}
	if written := string(lines) + s.journal.String(); strings.Contains(written, "Zorgblatt") || strings.Contains(written, "Quuxley") {
		t.Errorf("text is written down:\n%s", written)
	}
	verifies(t, filepath.Join(dir, "kept"))
}

func TestOverlapNeedsTheWatch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "guard.yaml")
	if err := os.WriteFile(file, []byte(base("http://127.0.0.1:1")+"tenants: any\nwatch: {mode: off}\noverlap: {memory_bytes: 1048576}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file, os.Getenv); err == nil || !strings.Contains(err.Error(), "its mode is off") {
		t.Errorf("%v", err)
	}
}
