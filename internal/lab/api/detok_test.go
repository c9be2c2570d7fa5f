package api

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestDetokenizerEmitsValidTextAndLosesNothing(t *testing.T) {
	// Bytes of real characters, cut and mixed with bytes that are none.
	token := rapid.OneOf(rapid.ByteRange(4, 255), rapid.SampledFrom([]byte("€é日😀a")))
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.SliceOfN(token, 0, 40).Draw(t, "tokens")
		var d detokenizer
		var got []byte
		for _, k := range tokens {
			piece := d.token(nil, k)
			if !utf8.Valid(piece) {
				t.Fatalf("piece %q of %q is not valid", piece, tokens)
			}
			got = append(got, piece...)
		}
		got = d.flush(got)
		if want := string([]rune(string(tokens))); string(got) != want {
			t.Fatalf("%q became %q, want %q", tokens, got, want)
		}
	})
}

func TestDetokenizerShowsACharacterWithItsLastByte(t *testing.T) {
	var d detokenizer
	var pieces []string
	for _, b := range []byte("a😀\xffé") {
		pieces = append(pieces, string(d.token(nil, b)))
	}
	if got, want := strings.Join(pieces, "|"), "a||||😀|\uFFFD||é"; got != want {
		t.Errorf("pieces %q, want %q", got, want)
	}
}

func TestSpecialTokensAreShownAsText(t *testing.T) {
	var d detokenizer
	var got []byte
	for _, b := range []byte("\x00\x01Hi \xe2\x82\x02there\x03") {
		got = d.token(got, b)
	}
	if want := "<|document|><|user|>Hi \uFFFD\uFFFD<|assistant|>there"; string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
}
