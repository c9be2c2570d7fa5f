package request

import (
	"io"
	"strings"
	"testing"
)

// TestMediaHosts: what only the engine can reach is no place for media, however
// its address is written.
func TestMediaHosts(t *testing.T) {
	long := strings.Repeat("x", 3*maxScalar)
	passes := []string{
		"https://example.com", "http://a.example.com:8080/x.png?y#z", `HTTPS:\/\/Example.COM\/a`, "https://93.184.216.34/x", "https://[2606:4700::1111]:443/x", "https://xn--bcher-kva.de/",
		"https://example.com/" + long, `https:\/\/example.com\/` + strings.Repeat(`\u00e9\ud83d\ude00\"`, 400), "data:image/png;base64," + long, `data:image\/png;base64,AA`, "", "https://cdn.example.com./x",
	}
	refused := []string{
		"http://127.0.0.1:30000/flush_cache", "http://localhost/x", "http://LOCALHOST./x", "http://a.localhost", "http://engine:30000/x", "http://engine.prod.svc:80", "http://engine.svc.cluster.local/x",
		"http://169.254.169.254/latest/meta-data", "http://metadata.google.internal/x", "http://10.1.2.3", "http://192.168.0.1/x", "http://172.16.0.9", "http://100.64.0.1", "http://0.0.0.0:1/x", "http://0/x",
		"http://2130706433/", "http://0x7f000001/", "http://0x7f.1/", "http://127.1/", "http://0177.0.0.1/", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://[fe80::1%25eth0]/", "http://[fd00::1]/",
		"http://[64:ff9b::7f00:1]/", "http://[::7f00:1]/", "http://example.com@127.0.0.1/", "http://127.0.0.1@example.com/", `http://example.com\\@127.0.0.1/`, `http:\u002f\u002f127.0.0.1/x`, "http://127。0。0。1/",
		"http:///127.0.0.1/x", "http://", "https://example.com:port/", "https://example..com", `http:\/\/127.0.0.1\/` + long, "http://127.0.0.1/" + long, "http://" + long, "file:///etc/passwd", "/etc/passwd", " http://127.0.0.1/",
	}
	const beside = `,"tools":[{"type":"mcp","server_url":"http://127.0.0.1/"}]}`
	for dialect, body := range map[string]string{
		"responses": `{"input":"x"` + beside, "openai": `{"messages":[]` + beside, "anthropic": `{"mcp_servers":[{"name":"a","url":"http://engine:30000/x"}]}`,
	} {
		if _, err := io.Copy(io.Discard, NewReader(strings.NewReader(body), Policy{Dialect: dialect})); err == nil {
			t.Errorf("%s: a tool's server is reached at %s", dialect, body)
		}
	}
	read := func(url string, p Policy) error {
		p.MaxOpaque = -1
		for dialect, format := range map[string]string{
			"openai":    `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"URL"}}]}]}`,
			"anthropic": `{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"URL"}}]}]}`,
			"responses": `{"input":[{"role":"user","content":[{"type":"input_file","file_url":"URL"}]}]}`,
		} {
			p.Dialect = dialect
			if _, err := io.Copy(io.Discard, NewReader(strings.NewReader(strings.Replace(format, "URL", url, 1)), p)); err != nil {
				return err
			}
		}
		return nil
	}
	for _, url := range passes {
		if err := read(url, Policy{}); err != nil {
			t.Errorf("%.60s: %v", url, err)
		}
	}
	for _, url := range refused {
		err := read(url, Policy{})
		if err == nil || strings.Contains(err.Error(), "127") {
			t.Errorf("%.60s: %v", url, err)
		}
		web := strings.HasPrefix(url, "http")
		if err := read(url, Policy{AllowPrivateMedia: true}); (err == nil) != web {
			t.Errorf("%.60s, allowed: %v", url, err)
		}
	}
}
