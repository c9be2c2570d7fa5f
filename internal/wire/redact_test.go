package wire

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func TestRedactReaderEqualsReplace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`[ab]{8,10}`).Draw(t, "key")
		s := rapid.StringMatching(`[ab ]{0,200}`).Draw(t, "text")
		if rapid.Bool().Draw(t, "plant") {
			at := rapid.IntRange(0, len(s)).Draw(t, "at")
			s = s[:at] + key + s[at:]
		}
		for _, r := range []io.Reader{strings.NewReader(s), iotest.OneByteReader(strings.NewReader(s)), iotest.DataErrReader(strings.NewReader(s))} {
			got, err := io.ReadAll(NewBlotter(key).Reader(r))
			if err != nil || string(got) != NewBlotter(key).Text(s) {
				t.Fatalf("got %q\nwant %q\nerror %v", got, NewBlotter(key).Text(s), err)
			}
		}
		if strings.Contains(NewBlotter(key).Text(s), key) {
			t.Fatalf("key left in %q", NewBlotter(key).Text(s))
		}
	})
}

// A stream must not be held back for longer than its tail looks like the key.
func TestRedactReaderDoesNotWait(t *testing.T) {
	pr, pw := io.Pipe()
	r := NewBlotter("sk-secret-key").Reader(pr)
	go pw.Write([]byte("data: x\n\n"))
	buf := make([]byte, 64)
	if n, err := r.Read(buf); err != nil || string(buf[:n]) != "data: x\n\n" {
		t.Fatalf("read %q, %v", buf[:n], err)
	}
	pw.Close()
	if _, err := r.Read(buf); err != io.EOF {
		t.Fatalf("end: %v", err)
	}
}

func TestRedactLeavesPlaceholders(t *testing.T) {
	for _, key := range []string{"", "none", "EMPTY"} {
		if got := NewBlotter(key).Text("none EMPTY"); got != "none EMPTY" {
			t.Errorf("key %q: %q", key, got)
		}
	}
	if got := NewBlotter("********").Text("bad key ********!"); got != "bad key ********!" {
		t.Errorf("stars: %q", got)
	}
	if got, _ := io.ReadAll(NewBlotter("********").Reader(strings.NewReader("x********y"))); string(got) != "x********y" {
		t.Errorf("stars: %q", got)
	}
}

// A secret is found in whatever an encoder of a server makes of it.
func TestRedactEncodedForms(t *testing.T) {
	type form struct {
		name   string
		encode func(string) string
	}
	marshal := func(s string) string {
		b, _ := json.Marshal(s)
		return string(b[1 : len(b)-1])
	}
	hexed := func(s string) string {
		var b strings.Builder
		for _, c := range []byte(s) {
			fmt.Fprintf(&b, `\u%04X`, c)
		}
		return b.String()
	}
	forms := []form{
		{"plain", func(s string) string { return s }},
		{"JSON", marshal},
		{"JSON in JSON", func(s string) string { return marshal(`{"k":"` + marshal(s) + `"}`) }},
		{"JSON in JSON in JSON", func(s string) string { return marshal(marshal(marshal(s))) }},
		{"all escaped", hexed},
		{"all escaped within a string", func(s string) string { return marshal(hexed(s)) }},
		{"PHP", func(s string) string { return strings.ReplaceAll(marshal(s), "/", `\/`) }},
		{"URL", url.QueryEscape},
		{"path", url.PathEscape},
		{"hex", func(s string) string { return fmt.Sprintf("%x", s) }},
		{"HEX", func(s string) string { return fmt.Sprintf("%X", s) }},
		{"base64", func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }},
		{"base64, URL", func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }},
		{"basic auth", func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+s)) }},
		{"within base64", func(s string) string {
			return base64.StdEncoding.EncodeToString([]byte("Authorization: Bearer " + s + "\r\n"))
		}},
		{"base64 in PHP", func(s string) string {
			return strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(s)), "/", `\/`)
		}},
	}
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[A-Za-z0-9/+=_.&<"\\-]{12,40}`).Draw(t, "secret")
		f := rapid.SampledFrom(forms).Draw(t, "form")
		if strings.Contains(secret, "+") && f.name == "URL" {
			secret = strings.ReplaceAll(secret, "+", "-")
		}
		b := NewBlotter(secret)
		enc := f.encode(secret)
		s := "before \\n" + enc + ` after`
		got := b.Text(s)
		// What may be left is the beginning and the end of a base64 text, of which
		// the secret makes only a part.
		if len(got) != len(s) || !strings.Contains(got, strings.Repeat("*", len(secret)-2)) || strings.Contains(got, enc) {
			t.Fatalf("%s of %q: %q became %q", f.name, secret, s, got)
		}
		if !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
			t.Fatalf("%q became %q", s, got)
		}
		for _, r := range []io.Reader{iotest.OneByteReader(strings.NewReader(s)), iotest.HalfReader(strings.NewReader(s))} {
			if all, err := io.ReadAll(b.Reader(r)); err != nil || string(all) != got {
				t.Fatalf("in pieces %q, %v, want %q", all, err, got)
			}
		}
	})
}

// Ordinary text with escapes in it stays, and a long run of what might begin a
// secret does not pile up.
func TestRedactLeavesTheRest(t *testing.T) {
	b := NewBlotter("sk-secret-key", `\\server\share`)
	for _, s := range []string{`{"a":"\u00e9\n\\ sk-secret-kez %73%6b-secret"}`, `\`, strings.Repeat(`\`, 1000), `\u`, `%7`, "sk-secret-ke", `\u0073\u006b-secret`} {
		if got := b.Text(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
		if all, err := io.ReadAll(b.Reader(iotest.OneByteReader(strings.NewReader(s)))); err != nil || string(all) != s {
			t.Errorf("%q became %q in pieces, %v", s, all, err)
		}
	}
	n, err := io.Copy(io.Discard, b.Reader(io.LimitReader(endless(`\`), 4<<20)))
	if n != 4<<20 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func BenchmarkBlotter(b *testing.B) {
	p := []byte(strings.Repeat(`data: {"choices":[{"index":0,"delta":{"content":"word \u00e9 more"}}]}`+"\n\n", 1000))
	blot := NewBlotter("sk-proj-0123456789abcdefghijklmnopqrstuvwxyz", "another-secret-value")
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		blot.Bytes(p)
	}
}
