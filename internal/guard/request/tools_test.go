package request

import "testing"

// What an engine finds by itself is of any length, and so is a video that comes as
// a list of pictures: each of these counts.
func TestWhatIsOfAnyLength(t *testing.T) {
	for name, c := range map[string]struct {
		dialect, body string
		opaque        int
	}{
		"functions":    {"openai", `{"tools":[{"type":"function","function":{"name":"web_search"}},{"type":"custom","custom":{"name":"x"}},{"function":{"name":"y"}}]}`, 0},
		"client's own": {"anthropic", `{"tools":[{"name":"a","input_schema":{}},{"type":"bash_20250124","name":"bash"},{"type":"computer_20250124","name":"computer"},{"type":"text_editor_20250728","name":"e"}]}`, 0},
		"web":          {"anthropic", `{"tools":[{"type":"web_search_20250305","name":"web_search"},{"type":"web_fetch_20250910","name":"web_fetch"}]}`, 2},
		"responses": {"responses", `{"tools":[{"type":"web_search_preview"},{"type":"mcp","server_label":"x","server_url":"https://tools.example.org/"},
			{"type":"file_search"},{"type":"code_interpreter","container":{"type":"auto"}},{"type":"what comes next year"}]}`, 5},
		"servers":      {"anthropic", `{"mcp_servers":[{"type":"url","url":"https://a.example.org/","name":"a"},{"url":"https://b.example.org/","name":"b"}]}`, 2},
		"one video":    {"openai", `{"messages":[{"role":"user","content":[{"type":"video_url","video_url":{"url":"https://a.example.org/v"}}]}]}`, 1},
		"many frames":  {"openai", `{"messages":[{"role":"user","content":[{"type":"video","video":["https://a.example.org/1","data:image/png;base64,x",{"url":"https://a.example.org/3"}]}]}]}`, 4},
		"no tool":      {"openai", `{"tools":null,"messages":[]}`, 0},
		"type is null": {"openai", `{"tools":[{"type":null}]}`, 0},
	} {
		for n := range 4 {
			if _, f, err := rewrite(c.body, Policy{Dialect: c.dialect, MaxOpaque: -1, AllowPrivateMedia: true, AllowStored: true}, n); err != nil || f.Opaque != c.opaque {
				t.Errorf("%s: %d of any length, want %d, %v", name, f.Opaque, c.opaque, err)
			}
		}
	}
	for _, body := range []string{
		`{"messages":[{"role":"user","content":[{"type":"video","video":["file:///etc/passwd"]}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"video","video":["https://a.example.org/",{"url":"/flush_cache"}]}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":[["http://127.0.0.1/flush_cache"]]}]}]}`,
	} {
		if out, _, err := rewrite(body, Policy{Dialect: "openai", MaxOpaque: -1}, 0); err == nil {
			t.Errorf("%s passes as %s", body, out)
		}
	}
}
