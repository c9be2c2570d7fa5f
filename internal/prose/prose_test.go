package prose

import "testing"

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
