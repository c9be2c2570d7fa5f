package admit

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/guard/request"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

func TestBound(t *testing.T) {
	plain := Policy{TemplateTokens: 100}
	for name, c := range map[string]struct {
		b    Body
		p    Policy
		want int
	}{
		"a token a byte":            {Body{Bytes: 1000}, plain, 1100},
		"nothing":                   {Body{}, Policy{}, 0},
		"negative sizes are none":   {Body{Bytes: -5, Opaque: -1, Structured: -9}, Policy{TemplateTokens: -7}, 0},
		"text that grows":           {Body{Bytes: 1001}, Policy{TokensPerByte: 1.5}, 1502},
		"letters beyond ASCII":      {Body{Bytes: 1000, Wide: 300}, plain, 1000 + 600 + 100},
		"and NFKC":                  {Body{Bytes: 1000, Wide: 300}, Policy{WideFactor: 11}, 1000 + 3000},
		"and nothing of the kind":   {Body{Bytes: 1000, Wide: 300}, Policy{WideFactor: 0.1}, 1000},
		"no factor is no proof":     {Body{Bytes: 10}, Policy{TokensPerByte: -1}, 10},
		"pictures with a bound":     {Body{Bytes: 10, Opaque: 3}, Policy{OpaqueTokens: 1000}, 3010},
		"pictures without":          {Body{Bytes: 10, Opaque: 1}, plain, Unbounded},
		"tools, by their depth":     {Body{Bytes: 1000, Structured: 100, Depth: 5}, Policy{}, 1000 + 100*26},
		"tools, as configured":      {Body{Bytes: 1000, Structured: 100, Depth: 5}, Policy{StructuredFactor: 3}, 1200},
		"a factor below one":        {Body{Bytes: 1000, Structured: 100}, Policy{StructuredFactor: 0.5}, 1000},
		"names that are repeated":   {Body{Bytes: 1000, Results: 20, Called: 30}, plain, 1000 + 600 + 100},
		"tools that are referred":   {Body{Bytes: 1000, Structured: 100, References: 3}, Policy{StructuredFactor: 2}, 1000 + 100 + 3*200},
		"references to nothing":     {Body{Bytes: 1000, References: 3}, Policy{}, 1000},
		"more often than counts":    {Body{Results: math.MaxInt, Called: math.MaxInt, References: math.MaxInt}, Policy{}, Unbounded},
		"more than can be counted":  {Body{Bytes: math.MaxInt64}, plain, Unbounded},
		"pictures beyond any count": {Body{Opaque: math.MaxInt}, Policy{OpaqueTokens: math.MaxInt}, Unbounded},
	} {
		if got := Bound(c.b, c.p); got.AtMost != c.want || got.AtLeast != 0 || got.Tried {
			t.Errorf("%s: %+v, want %d", name, got, c.want)
		}
	}
}

// What has not been read to its end is of any length.
func TestBodyOf(t *testing.T) {
	f := request.Facts{Known: true, Bytes: 5, Wide: 4, MaxTokens: 3, Opaque: 2, Structured: 1, Depth: 6}
	if got, want := BodyOf(f), (Body{Bytes: 5, Wide: 4, Output: 3, Opaque: 2, Structured: 1, Depth: 6}); got != want {
		t.Errorf("%+v", got)
	}
	f.Known = false
	if got := Bound(BodyOf(f), Policy{OpaqueTokens: 1}); got.AtMost != Unbounded {
		t.Errorf("%+v", got)
	}
}

// Whatever text a body carries, and however it is escaped, the bound is not
// below the bytes of the text, which no vocabulary with bytes has more tokens of.
func TestBytesBoundTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		text = strings.ToValidUTF8(text, "\uFFFD")
		b := Body{Bytes: int64(len(quoted))}
		for i := range len(quoted) {
			b.Wide += int64(quoted[i] >> 7)
		}
		for form, factor := range map[norm.Form]float64{norm.NFC: 0, norm.NFKC: 11} {
			if got, is := Bound(b, Policy{WideFactor: factor}).AtMost, len(form.String(text)); got < is {
				t.Fatalf("%d for %d bytes of normal text", got, is)
			}
		}
	})
}

// What a template with an indent makes of a tool definition is never longer
// than the bound, however deep the definition is nested.
func TestToolsAreBoundedWhenIndented(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		depth := rapid.IntRange(1, 60).Draw(t, "depth")
		leaf := rapid.SampledFrom([]string{"", "1", `"<&>"`, `{"a":1}`}).Draw(t, "leaf")
		tools := strings.Repeat("[", depth) + leaf + strings.Repeat("]", depth)
		var v any
		if err := json.Unmarshal([]byte(tools), &v); err != nil {
			t.Fatal(err)
		}
		wide, err := json.MarshalIndent(v, "", "    ") // escapes <, & and > as Jinja's tojson does
		if err != nil {
			t.Fatal(err)
		}
		b := Body{Bytes: int64(len(tools)), Structured: int64(len(tools)), Depth: depth + 1}
		if got := Bound(b, Policy{}); got.AtMost < len(wide) {
			t.Fatalf("%d for %d bytes", got.AtMost, len(wide))
		}
	})
}

// A body that may stream is one that is sure to pass.
func TestBytesForIsTheLongestBodyThatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limit{Tokens: rapid.IntRange(0, 1<<40).Draw(t, "limit")}
		p := Policy{TokensPerByte: rapid.Float64Range(0, 12).Draw(t, "factor"), TemplateTokens: rapid.IntRange(0, 5000).Draw(t, "template")}
		n := BytesFor(l, p)
		wide := rapid.Int64Range(0, max(0, n)).Draw(t, "wide")
		if n > 0 && Decide(l, now, p, Bound(Body{Bytes: n, Wide: wide}, p)).Verdict != Pass {
			t.Fatalf("%d bytes do not pass", n)
		}
		more := n + 2 + n/1e9
		if n < 0 || n > 0 && Decide(l, now, p, Bound(Body{Bytes: more, Wide: more}, p)).Verdict == Pass && p.perByte() >= 1 {
			t.Fatalf("%d bytes, and more would pass", n)
		}
	})
}
