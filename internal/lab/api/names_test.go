package api

import (
	"net/http"
	"strings"
	"testing"
)

func TestWhatARequestIsCalled(t *testing.T) {
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for _, c := range []struct{ header, parent, body, name, trace, refusal string }{
		{name: ""}, {header: "h", body: `"rid":"r","request_id":"q"`, name: "h"}, {body: `"rid":"r","request_id":"q"`, name: "r"},
		{body: `"request_id":"q"`, name: "q"}, {body: `"rid":["a","b"]`}, {body: `"rid":null,"request_id":7`},
		{parent: trace, trace: "4bf92f3577b34da6a3ce929d0e0e4736"}, {parent: trace + "-more", header: "h", name: "h", trace: "4bf92f3577b34da6a3ce929d0e0e4736"},
		{parent: strings.ToUpper(trace)}, {parent: "00-12-34-01"},
		{header: strings.Repeat("x", maxName+1), refusal: "the name of a request has at most 1024 bytes"},
		{body: `"rid":"` + strings.Repeat("x", maxName+1) + `"`, refusal: "the name of a request has at most 1024 bytes"},
	} {
		fake := newFake()
		url := serve(t, fake, nil).URL + "/v1/chat/completions"
		body := `{"messages":[{"role":"user","content":"x"}]`
		if c.body != "" {
			body += "," + c.body
		}
		r, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body+"}"))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"X-Request-Id": c.header, "Traceparent": c.parent} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if (res.StatusCode == 400) != (c.refusal != "") {
			t.Errorf("%+.60v: status %d", c, res.StatusCode)
		}
		if c.refusal == "" {
			if got := fake.last.Load(); got.Name != c.name || got.Trace != c.trace {
				t.Errorf("%+v: called %q, trace %q", c, got.Name, got.Trace)
			}
		}
	}
}
