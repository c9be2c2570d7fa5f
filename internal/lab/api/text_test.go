package api

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// The decoder of encoding/json is the twin: it reads the same string, with
// more copies.
func checkUnquote(t interface{ Fatalf(string, ...any) }, quoted []byte) {
	var want string
	if quoted[0] != '"' || json.Unmarshal(quoted, &want) != nil {
		return
	}
	var got text
	if err := json.Unmarshal(quoted, &got); err != nil || string(got) != want {
		t.Fatalf("%s: %q (%v), want %q", quoted, got, err, want)
	}
}

func TestTextReadsWhatEncodingJSONReads(t *testing.T) {
	piece := rapid.OneOf(
		rapid.StringN(0, 8, -1),
		rapid.SampledFrom([]string{`\n`, `\"`, `\\`, `\/`, `\b\f\r\t`, `\u0041`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, `\ude00`,
			`\ud83d\ud83d\ude00`, `\ud83d\u0041`, `\ud83dx`, "\xff", "\xe2\x82", "é"}),
	)
	checked := 0
	rapid.Check(t, func(t *rapid.T) {
		body := ""
		for _, p := range rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces") {
			body += p
		}
		quoted := []byte(`"` + body + `"`)
		if json.Valid(quoted) {
			checked++
			checkUnquote(t, quoted)
		}
	})
	if checked < 20 {
		t.Errorf("only %d strings were valid JSON", checked)
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{`""`, `"a\u00e9b"`, `"\ud83d\ude00"`, `"\ud83d"`, "\"\xff\"", `"\\\"\/"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, quoted []byte) {
		if json.Valid(quoted) {
			checkUnquote(t, quoted)
		}
	})
}
