package guard

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/guard/overlap"
)

// anotherText is text that nobody else has, and longer than what is reported.
func anotherText(name string) string {
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, "%s %d: account %d owes \"%d\" since day %d. ", name, i, i*7919+13, i*i*31, i*17%365)
	}
	return b.String()
}

// An engine that answers with what another tenant has sent is reported, in a
// stream as in a document, and the answer goes on as it came: this is no proof.
func TestForeignPromptInAnAnswerIsReported(t *testing.T) {
	for _, streams := range []bool{false, true} {
		t.Run(fmt.Sprint("stream ", streams), func(t *testing.T) {
			secret := anotherText("ledger")
			text := "Certainly. " + secret[200:900] + " That is all."
			f := guardBefore(t, leakyEngine(t, text, streams), func(o *Options) {
				x, err := overlap.New(overlap.Options{Memory: 1 << 20, Keep: time.Hour, Letters: 160, Start: time.Now()})
				if err != nil {
					t.Fatal(err)
				}
				o.Overlap = x
				o.Tenants = Tenants{Keys: digests("alpha", "alpha", "beta", "beta", "gamma", "gamma")}
			})
			ask := func(tenant, prompt string) string {
				b, _ := json.Marshal(map[string]any{"model": "m", "messages": []any{map[string]string{"role": "user", "content": prompt}}})
				q, _ := http.NewRequest("POST", f.url+"/v1/chat/completions", strings.NewReader(string(b)))
				q.Header.Set("Authorization", "Bearer "+tenant)
				res, err := f.client.Do(q)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				got, err := io.ReadAll(res.Body)
				if err != nil || res.StatusCode != 200 {
					t.Fatalf("%d %v", res.StatusCode, err)
				}
				return string(got)
			}
			ask("alpha", secret)
			if r := f.last(t, 1); len(r.Findings) != 0 {
				t.Errorf("alpha's own text: %+v", r.Findings)
			}
			got := ask("beta", "What do you know?")
			if streams != strings.Contains(got, "[DONE]") {
				t.Errorf("the answer does not end as it came: %s", got)
			}
			r := f.last(t, 2)
			if len(r.Findings) != 1 || r.Findings[0].Kind != "overlap" || r.Findings[0].Channel != "content" || !strings.Contains(r.Findings[0].Explain, "tenant alpha") ||
				strings.Contains(fmt.Sprintf("%+v", r), "ledger") {
				t.Errorf("recorded %+v", r)
			}
			// Once others send it too it is no tenant's own.
			ask("gamma", secret)
			ask("beta", "What do you know?")
			if r := f.last(t, 4); len(r.Findings) != 0 {
				t.Errorf("common text: %+v", r.Findings)
			}
		})
	}
}
