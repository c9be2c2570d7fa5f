package config

import (
	"errors"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sections are the tables of docs/guard.md, and how a file comes to a field
// of each.
var sections = map[string]string{
	"the file": "%s", "listen": "listen: {%s}", "an upstream": "upstreams: [{%s}]", "limits of an upstream": "upstreams: [{limits: {%s}}]", "a tenant": "tenants: [{%s}]",
	"admission": "admission: {%s}", "isolation": "isolation: {%s}", "watch": "watch: {%s}", "synthetic": "synthetic: {%s}", "overlap": "overlap: {%s}", "limits": "limits: {%s}", "metrics": "metrics: {%s}", "traces": "traces: {%s}",
	"receipts": "receipts: {%s}", "log": "log: {%s}",
}

var row = regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| *(?:`([^`]+)`|needed|) *\\| ")

// documented are the fields of each section with their defaults.
func documented(t *testing.T) map[string]map[string]string {
	t.Helper()
	b, err := os.ReadFile("../../docs/guard.md")
	if err != nil {
		t.Fatal(err)
	}
	file, _, _ := strings.Cut(string(b), "\n## Running it")
	out := map[string]map[string]string{}
	for _, part := range strings.Split(file, "\n### ")[1:] {
		title, table, _ := strings.Cut(part, "\n")
		out[title] = map[string]string{}
		for _, m := range row.FindAllStringSubmatch(table, -1) {
			out[title][m[1]] = m[2]
		}
	}
	return out
}

// The reader, when it meets a field that it does not know, lists those that
// there are: they are those of the document.
func TestEveryFieldOfAGuardIsDocumented(t *testing.T) {
	docs := documented(t)
	if got, want := slices.Sorted(maps.Keys(docs)), slices.Sorted(maps.Keys(sections)); !slices.Equal(got, want) {
		t.Fatalf("docs/guard.md has tables for %v, want %v", got, want)
	}
	for title, form := range sections {
		_, err := ReadGuard("guard.yaml", []byte(strings.Replace(form, "%s", "qqqqqqqqqqqq: 1", 1)), guardKnown)
		bad, ok := errors.AsType[*Error](err)
		if !ok {
			t.Fatalf("%s: %v", title, err)
		}
		i := slices.IndexFunc(bad.All(), func(e *Error) bool { return strings.Contains(e.Reason, "qqqqqqqqqqqq") })
		if i < 0 {
			t.Fatalf("%s: %v", title, err)
		}
		_, list, _ := strings.Cut(bad.All()[i].Reason, ": there are ")
		known := strings.Split(list, ", ")
		slices.Sort(known)
		if got := slices.Sorted(maps.Keys(docs[title])); !slices.Equal(got, known) {
			t.Errorf("%s: documented are %v, read %v", title, got, known)
		}
	}
}

// A file that says the documented defaults is one that says nothing.
func TestDocumentedDefaultsHold(t *testing.T) {
	const least = "upstreams: [{name: a, base_url: http://a}]\ntenants: any\ntraces: {endpoint: http://c}\nsynthetic: {key_file: k, model: m}\noverlap: {memory_bytes: 1048576}\n"
	want, err := ReadGuard("guard.yaml", []byte(least), guardKnown)
	if err != nil {
		t.Fatal(err)
	}
	text, n := "", 0
	for title, fields := range documented(t) {
		said := ""
		for name, value := range fields {
			if value != "" {
				said += ", " + name + ": " + quotedIf(value)
				n++
			}
		}
		said = strings.TrimPrefix(said, ", ")
		switch {
		case said == "":
		case title == "an upstream":
			text += "upstreams: [{name: a, base_url: http://a, " + said + "}]\n"
		case title == "traces":
			text += "traces: {endpoint: http://c, " + said + "}\n"
		case title == "synthetic":
			text += "synthetic: {key_file: k, model: m, " + said + "}\n"
		case title == "overlap":
			text += "overlap: {memory_bytes: 1048576, " + said + "}\n"
		default:
			text += strings.Replace(sections[title], "%s", said, 1) + "\n"
		}
	}
	got, err := ReadGuard("guard.yaml", []byte(text+"tenants: any\n"), guardKnown)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if !reflect.DeepEqual(got, want) || n < 25 {
		t.Errorf("%d defaults\n got %+v\nwant %+v", n, got, want)
	}
}

// quotedIf quotes what YAML would take apart.
func quotedIf(s string) string {
	if strings.Contains(s, ":") {
		return `"` + s + `"`
	}
	return s
}
