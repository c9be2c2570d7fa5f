package request

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

const documentFile = "../../../docs/guard-fields.md"

// page writes the tables for people.
func page() string {
	var b strings.Builder
	b.WriteString(`# Fields and headers that a client may not set

Made from the tables in internal/guard/request; ` + "`go test ./internal/guard/request -run Document -rewrite`" + ` makes it anew. What is done:
**out**, the field does not go on, or the guard's own value in its place; **refused**, HTTP 400. A field that is null is never refused. Fields marked "stored" pass with ` + "`allow: [stored]`" + `, every field
with its name in ` + "`allow`" + `.

## Fields of a body

| field | dialects | done | but | why | source |
|---|---|---|---|---|---|
`)
	for _, f := range Table {
		dialects, done, but := "all", "out", ""
		if f.Dialects != nil {
			dialects = strings.Join(f.Dialects, ", ")
		}
		if f.Do == Refuse {
			done = "refused"
		}
		for _, u := range f.Unless {
			but += "`" + u + "` passes "
		}
		if f.Stored {
			done += ", stored"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", f.Path, dialects, done, strings.TrimSpace(but), f.Why, f.Source)
	}
	b.WriteString("\n## Fields that the guard sets\n\n| dialect | field | value |\n|---|---|---|\n")
	dialects := make([]string, 0, len(sets))
	for d := range sets {
		dialects = append(dialects, d)
	}
	slices.Sort(dialects)
	for _, d := range dialects {
		for _, s := range sets[d] {
			fmt.Fprintf(&b, "| %s | `%s` | `%s` |\n", d, s.name, s.value)
		}
	}
	b.WriteString("\nBesides, where the engine is known to have them: the tenant's salt and the guard's request id.\n\n## Headers\n\nA name that ends in - stands for all that begin with it. Beside these nothing goes on but ")
	var on []string
	for name := range usual {
		on = append(on, "`"+name+"`")
	}
	slices.Sort(on)
	b.WriteString(strings.Join(on, ", ") + ", and the client's key where `forward_key` says so.\n\n| header | why | source |\n|---|---|---|\n")
	for _, h := range Headers {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", h.Name, h.Why, h.Source)
	}
	return b.String()
}

func TestDocumentSaysWhatTheTablesSay(t *testing.T) {
	want := page()
	if f := flag.Lookup("rewrite"); f != nil && f.Value.String() == "true" {
		if err := os.WriteFile(documentFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(documentFile)
	if err != nil || string(got) != want {
		t.Errorf("%s is not what the tables say: run the test with -rewrite (%v)", documentFile, err)
	}
}
