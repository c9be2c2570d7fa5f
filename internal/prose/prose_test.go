package prose

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNumbers(t *testing.T) {
	for n, want := range map[int]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 681280: "681,280", 1048576: "1,048,576", -100: "-100", -1000: "-1,000", -100000: "-100,000"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	if Plural(1, "page") != "1 page" || Plural(0, "page") != "0 pages" || Plural(10645, "page") != "10,645 pages" {
		t.Error(Plural(1, "page"), Plural(0, "page"), Plural(10645, "page"))
	}
}

func TestNothingDrivesATerminal(t *testing.T) {
	for s, want := range map[string]string{
		"a\x1b[31mb": "a\uFFFD[31mb", "a\nb\tc": "a b c", "\u202Ex\u200B": "\uFFFDx\uFFFD", "\u0085\u2028": "\uFFFD\uFFFD", "naïve 日本": "naïve 日本",
	} {
		if got := Printable(s); got != want {
			t.Errorf("%q: %q", s, got)
		}
	}
}

// JSON is the same document as encoding/json writes, and nothing in it drives a
// terminal.
func TestJSONDrivesNoTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		odd := rapid.SampledFrom([]rune{0, 7, 0x1b, 0x7f, 0x85, 0x9b, 0x61c, 0x200b, 0x202e, 0x2028, 0x2066, 0xfeff, 0xe0041, 'a', '"', '\\', '<', 'é', '日'})
		v := map[string]string{"a": string(rapid.SliceOf(odd).Draw(t, "text")), string(rapid.SliceOf(odd).Draw(t, "name")): "b"}
		var b bytes.Buffer
		if err := JSON(&b, v); err != nil {
			t.Fatal(err)
		}
		var back map[string]string
		if err := json.Unmarshal(b.Bytes(), &back); err != nil || !reflect.DeepEqual(back, v) {
			t.Fatalf("%q became %q, %v", v, back, err)
		}
		for line := range strings.Lines(b.String()) {
			if line = strings.TrimSuffix(line, "\n"); Printable(line) != line {
				t.Fatalf("%q", line)
			}
		}
	})
}
