package request

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"
)

// policyOf is the policy of a story: its arguments name what differs from the
// usual.
func policyOf(d *datadriven.TestData) Policy {
	p := Policy{Dialect: "openai", MaxOpaque: -1}
	for _, a := range d.CmdArgs {
		v := strings.Join(a.Vals, ",")
		switch a.Key {
		case "dialect":
			p.Dialect = v
		case "salt":
			p.Salt, p.SaltFields = v, []string{"cache_salt"}
		case "id":
			p.RequestID, p.RequestIDFields = v, []string{"rid", "request_id"}
		case "set":
			p.Set = append(p.Set, Member{a.Vals[0], a.Vals[1]})
		case "stored":
			p.AllowStored = true
		case "known":
			p.RefuseUnknown = true
		case "opaque":
			fmt.Sscan(v, &p.MaxOpaque)
		case "depth":
			fmt.Sscan(v, &p.MaxDepth)
		case "bytes":
			fmt.Sscan(v, &p.MaxBytes)
		}
	}
	return p
}

// rewrite runs a body through a reader that gets it in pieces of n bytes.
func rewrite(body string, p Policy, n int) (string, Facts, error) {
	var src io.Reader = strings.NewReader(body)
	if n > 0 {
		src = &pieces{src, n}
	}
	r := NewReader(src, p)
	out, err := io.ReadAll(r)
	return string(out), r.Facts(), err
}

// pieces gives at most n bytes at a time.
type pieces struct {
	io.Reader
	n int
}

func (p *pieces) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(len(b), p.n)]) }

// The stories of testdata say for each body what goes on, or why nothing does.
// Every line of input is a body; \x and \u are written as in Go where the story
// says so.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var b strings.Builder
			for line := range strings.SplitSeq(d.Input, "\n") {
				if d.HasArg("go") {
					line = goString(t, line)
				}
				p := policyOf(d)
				out, f, err := rewrite(line, p, 0)
				for n := 1; n < 40; n++ {
					o, g, e := rewrite(line, p, n)
					if fmt.Sprint(e) != fmt.Sprint(err) || err == nil && o != out || fmt.Sprint(g) != fmt.Sprint(f) && err == nil {
						t.Fatalf("%s in pieces of %d: %q, %v, not %q, %v", line, n, o, e, out, err)
					}
				}
				var refused *Refused
				switch {
				case errors.As(err, &refused):
					fmt.Fprintf(&b, "%d %s", refused.Reason.Status, refused.Reason.Code)
					if refused.Reason.Param != "" {
						fmt.Fprintf(&b, " [%s]", refused.Reason.Param)
					}
					fmt.Fprintf(&b, ": %s\n", refused.Reason.Message)
					continue
				case err != nil:
					t.Fatal(err)
				}
				fmt.Fprintln(&b, strings.TrimRight(out, " "))
				if d.HasArg("facts") {
					fmt.Fprintf(&b, "  model=%q stream=%v max=%d bytes=%d opaque=%d changed=%v\n", f.Model, f.Stream, f.MaxTokens, f.Bytes, f.Opaque, f.Changed)
				}
			}
			return b.String()
		})
	})
}

func goString(t *testing.T, s string) string {
	t.Helper()
	out, err := strconv.Unquote(`"` + strings.ReplaceAll(s, `"`, `\"`) + `"`)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return out
}

func TestSourceThatBreaksOff(t *testing.T) {
	broken := errors.New("gone")
	r := NewReader(io.MultiReader(strings.NewReader(`{"model":"m","mess`), iotest.ErrReader(broken)), Policy{})
	if _, err := io.ReadAll(r); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, broken) || r.Facts().Known {
		t.Errorf("error %v, facts %+v", err, r.Facts())
	}
}

// An end that is wrapped in an error is none: what came may be a part only.
func TestWrappedEndIsNone(t *testing.T) {
	r := NewReader(io.MultiReader(strings.NewReader(`{"model":"m"}`), iotest.ErrReader(fmt.Errorf("cut off: %w", io.EOF))), Policy{})
	out, err := io.ReadAll(r)
	if err == nil || len(out) != len(`{"model":"m"`) || r.Facts().Known {
		t.Errorf("%q, %v", out, err)
	}
}

// Wherever an image stands in what becomes a prompt, and whatever is around it,
// it is counted, or the request is refused.
func TestNoImageIsMissed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dialect := rapid.SampledFrom([]string{"openai", "completions", "responses", "anthropic", "ollama"}).Draw(t, "dialect")
		image := rapid.SampledFrom([]string{`{"type":"image_url"}`, `{"image_url":{"url":"data:,"}}`, `{"type":"input_image","image_url":"https://example.com/x"}`, `{"type":"image","source":{"data":"AA"}}`,
			`{"images":["AA"]}`, `{"multimodal_data":["AA"]}`, `{"type":"input_audio","input_audio":{"data":"AA"}}`, `{"\u0069mage":"data:,"}`, `{"encrypted_content":"AA"}`}).Draw(t, "image")
		names := []string{"content", "output", "summary", "tool_calls", "result", "action", "source", "input", "arguments", "x", "type", "text", "image_url", "prompt_string", "function"}
		body := image
		for range rapid.IntRange(0, 5).Draw(t, "depth") {
			switch rapid.IntRange(0, 2).Draw(t, "around") {
			case 0:
				body = `[` + body + `]`
			case 1:
				body = `["text",` + body + `,{}]`
			default:
				body = `{"role":"user","` + rapid.SampledFrom(names).Draw(t, "name") + `":` + body + `}`
			}
		}
		top := rapid.SampledFrom([]string{"messages", "input", "prompt", "system", "instructions"}).Draw(t, "top")
		body = `{"` + top + `":` + body + `}`
		_, f, err := rewrite(body, Policy{Dialect: dialect, MaxOpaque: -1, AllowStored: true}, 0)
		if err == nil && f.Opaque == 0 {
			t.Fatalf("%s: %s has no opaque part", dialect, body)
		}
	})
}

func TestPolicyIsChecked(t *testing.T) {
	for _, c := range []struct {
		p    Policy
		want string
	}{
		{Policy{Dialect: "openai", Allow: []string{"documents", "options.num_ctx"}, Set: []Member{{"cache_prompt", "false"}}, SaltFields: []string{"cache_salt"}}, ""},
		{Policy{Dialect: "gopher"}, `the dialect "gopher" is not known`},
		{Policy{Dialect: "ollama", Allow: []string{"temperature"}}, `"temperature" may not be allowed: no field of that path is taken out or refused`},
		{Policy{Dialect: "ollama", Set: []Member{{"a", "{"}}}, `the member "a" cannot be set: it needs a name and a value in JSON`},
		{Policy{Dialect: "ollama", Set: []Member{{"", "1"}}}, `the member "" cannot be set: it needs a name and a value in JSON`},
		{Policy{Dialect: "ollama", RequestIDFields: []string{""}}, "a field for the salt or the request id has no name"},
	} {
		if err := c.p.Check(); c.want == "" != (err == nil) || err != nil && err.Error() != c.want {
			t.Errorf("%+v: %v", c.p, err)
		}
	}
}

// A request that only counts has things taken out of it and nothing put in.
func TestCountingPutsNothingIn(t *testing.T) {
	for dialect := range trees {
		out, f, err := rewrite(`{"rid":"x","model":"m"}`, Policy{Dialect: dialect, Counts: true, Salt: "s", SaltFields: []string{"cache_salt"}, RequestID: "r", RequestIDFields: []string{"rid"}}, 0)
		if err != nil || out != `{          "model":"m"}` || len(f.Changed) != 1 {
			t.Errorf("%s: %q, %v", dialect, out, err)
		}
	}
}
