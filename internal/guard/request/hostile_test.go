package request

import (
	"errors"
	"strconv"
	"strings"
	"testing"
)

// hostile are documents that one parser reads and another does not, or that
// they read differently.
var hostile = []string{
	``, ` `, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1}}`, `{"a":1} x`, `{}{}`, `{}` + "\x00", `null`, `[]`, `"x"`, `1`, `true`,
	"\ufeff{}", "\xff\xfe{\x00}\x00", "\x00{", `{/**/}`, `{"a":1/**/}`, `{"a":1}//`, `#{}`, `{"a":1,}`, `{,"a":1}`, `{"a":1,,"b":2}`, `{"a":[1,]}`, `{"a":[,1]}`,
	`{'a':1}`, `{a:1}`, `{"a":'b'}`, `{"a" 1}`, `{"a":1 "b":2}`, `{"a":[1 2]}`, `{"a":1]}`, `{"a":[1}}`, `{"a":}`, `{"a":,}`, `{:1}`, `{1:2}`, `{null:1}`,
	`{"a":NaN}`, `{"a":Infinity}`, `{"a":-Infinity}`, `{"a":+1}`, `{"a":.5}`, `{"a":1.}`, `{"a":01}`, `{"a":-01}`, `{"a":-}`, `{"a":0x10}`, `{"a":1e}`, `{"a":1e+}`, `{"a":1_000}`, `{"a":1.5.2}`,
	`{"a":1e400}`, `{"a":-1e999}`, `{"a":18446744073709551616}`, `{"a":-9223372036854775809}`, `{"a":` + strings.Repeat("9", 70) + `}`, `{"a":0.` + strings.Repeat("1", 70) + `}`,
	`{"a":tru}`, `{"a":truex}`, `{"a":True}`, `{"a":nul`, `{"a":undefined}`,
	`{"a":"` + "\n" + `"}`, `{"a":"` + "\x00" + `"}`, `{"a":"` + "\x1f" + `"}`, `{"` + "\t" + `":1}`, `{"a":"\x"}`, `{"a":"\u12"}`, `{"a":"\u12G4"}`, `{"a":"\U0001F600"}`, `{"a":"`,
	`{"a":"` + "\xff" + `"}`, `{"a":"` + "\xc0\x80" + `"}`, `{"a":"` + "\xed\xa0\x80" + `"}`, `{"a":"` + "\xf4\x90\x80\x80" + `"}`, `{"` + "\xe2\x82" + `":1}`, `{"a":"` + "\xe2" + `"}`,
	`{"a":"\ud800"}`, `{"a":"\udc00"}`, `{"a":"\ud800x"}`, `{"a":"\ud800\n"}`, `{"a":"\ud800\ud800"}`, `{"a":"\ud800\u0041"}`, `{"\ud800":1}`, `{"a":"\udc00\ud800"}`,
	`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a":{"b":1,"b":1}}`, `{"a":[{"b":{},"\u0062":{}}]}`, `{"":1,"":2}`, `{"rid":1,"rid":2}`, `{"rid":{"a":1,"a":2}}`,
	`{"Model":"m"}`, `{"model":"a","MODEL":"b"}`, `{"Cache_Salt":"x"}`, `{"cache_\u017falt":"x"}`, `{"\u212av_transfer_params":{}}`, `{"foo":1,"FOO":2}`,
	strings.Repeat(`{"a":`, 65) + `1` + strings.Repeat(`}`, 65), `{"a":` + strings.Repeat(`[`, 100_000), `{"` + strings.Repeat("n", 1100) + `":1}`,
}

func TestHostileDocuments(t *testing.T) {
	for _, body := range hostile {
		for n := range 5 {
			out, f, err := rewrite(body, Policy{Dialect: "openai", MaxOpaque: -1}, n)
			var refused *Refused
			if !errors.As(err, &refused) || refused.Reason.Status != 400 || f.Known {
				t.Errorf("%.60q in pieces of %d passes as %.60q, %v", body, n, out, err)
			}
			if strings.HasSuffix(strings.TrimSpace(out), "}") && strings.Count(out, "{") == strings.Count(out, "}") {
				t.Errorf("%.60q: a whole document %.60q went out before it was refused", body, out)
			}
		}
	}
}

// Whatever is refused late, the engine has not had a whole document.
func TestNothingWholeGoesOutBeforeTheEnd(t *testing.T) {
	long := strings.Repeat("words ", 20_000)
	for _, end := range []string{`"}x`, `"}{}`, `","truncation":"auto"}`, `","a":1,"a":1}`, "\xff\"}", `"`, `"}` + "\x00"} {
		out, _, err := rewrite(`{"model":"m","prompt":"`+long+end, Policy{Dialect: "completions"}, 0)
		if err == nil || len(out) < 50_000 || strings.Contains(out, "}") {
			t.Errorf("%q: %d bytes went out, %v", end, len(out), err)
		}
	}
}

// The bounds hold where memory is what is attacked.
func TestBounds(t *testing.T) {
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(`"k` + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strconv.Itoa(i) + `":0`)
		}
		return `{"metadata":{` + b.String() + `}}`
	}
	for _, c := range []struct {
		name, body, want string
		p                Policy
	}{
		{"members", many(70_000), "more than 65536 members", Policy{}},
		{"members that go", many(60_000), "", Policy{}},
		{"a member twice among many", strings.Replace(many(1000), `}}`, `,"kxxxd3":1}}`, 1), "two members of one name", Policy{}},
		{"bytes", `{"a":"` + strings.Repeat("x", 1000) + `"}`, "longer than 1000 bytes", Policy{MaxBytes: 1000}},
		{"depth", strings.Repeat(`{"a":`, 3) + `1` + strings.Repeat(`}`, 3), "more than 2 deep", Policy{MaxDepth: 2}},
		{"a model", `{"model":"` + strings.Repeat("m", 600) + `"}`, "at most 512 bytes", Policy{}},
		{"white space", `{"a":1,` + strings.Repeat(" ", 100_000) + `"b":2}` + strings.Repeat("\n", 100_000), "", Policy{}},
	} {
		_, _, err := rewrite(c.body, c.p, 0)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A long body takes no more memory than a short one.
func TestMemoryIsConstant(t *testing.T) {
	r := NewReader(strings.NewReader(`{"prompt":["`+strings.Repeat(`x\u00e9日\n`, 1<<18)+`",`+strings.Repeat(" ", 1<<20)+`1`+strings.Repeat(",12345", 1<<18)+`],"rid":"`+strings.Repeat("y", 1<<20)+`"}`), Policy{Dialect: "completions"})
	buf := make([]byte, 8<<10)
	total := 0
	for {
		n, err := r.Read(buf)
		total += n
		if err != nil {
			break
		}
	}
	if held := cap(r.buf) + cap(r.m.out) + cap(r.m.tail) + cap(r.m.value) + cap(r.m.scratch) + 8*cap(r.m.names); !r.Facts().Known || total < 5<<20 || held > 160<<10 {
		t.Errorf("%d bytes are held for a body of %d, facts %+v", held, total, r.Facts())
	}
}
