package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// The twin does what the reader does, the slow and obvious way: it decodes the
// whole body with encoding/json, edits the tree by the table, and compares.

// object is a decoded object whose members keep their order and their doubles.
type object []entry

type entry struct {
	name  string
	value any
}

var errTwin = errors.New("the twin refuses")

// decodeTree reads one document.
func decodeTree(body []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if !json.Valid(body) {
		return nil, errTwin
	}
	return decodeValue(d)
}

func decodeValue(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		o := object{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			o = append(o, entry{name.(string), v})
		}
		_, err = d.Token()
		return o, err
	case json.Delim('['):
		l := []any{}
		for d.More() {
			v, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			l = append(l, v)
		}
		_, err = d.Token()
		return l, err
	}
	return t, nil
}

// doubles reports whether an object anywhere has two members of one name; at
// levels that the table knows, of one name in any letters.
func doubles(v any, path string, levels map[string]bool) bool {
	switch v := v.(type) {
	case object:
		seen := map[string]bool{}
		for _, e := range v {
			name := e.name
			if levels[path] {
				name = strings.ToLower(strings.NewReplacer("\u017f", "s", "\u212a", "k").Replace(name))
			}
			if seen[name] || doubles(e.value, path+"."+e.name, levels) {
				return true
			}
			seen[name] = true
		}
	case []any:
		return slices.ContainsFunc(v, func(x any) bool { return doubles(x, path+"[]", levels) })
	}
	return false
}

// levels are the places whose members the table names.
func levels(dialect string) map[string]bool {
	out := map[string]bool{"": true}
	for _, f := range applied(dialect) {
		steps := strings.Split(f.Path, ".")
		for i := range steps {
			out["."+strings.Join(steps[:i], ".")] = true
		}
	}
	return out
}

func applied(dialect string) []Field {
	return slices.DeleteFunc(slices.Clone(Table), func(f Field) bool { return f.Dialects != nil && !slices.Contains(f.Dialects, dialect) })
}

var (
	pair      = regexp.MustCompile(`(?i)\\ud[89ab]..\\ud[c-f]..`)
	surrogate = regexp.MustCompile(`(?i)\\ud[89a-f]..`)
	numeral   = regexp.MustCompile(`^-?\d+$`)
)

// readAlike reports whether every parser reads the document as this one does.
func readAlike(body []byte) bool {
	plain := strings.ReplaceAll(string(body), `\\`, "")
	if !utf8.Valid(body) || surrogate.MatchString(pair.ReplaceAllString(plain, "")) {
		return false
	}
	v, err := decodeTree(body)
	return err == nil && numbersAlike(v)
}

func numbersAlike(v any) bool {
	switch v := v.(type) {
	case object:
		return !slices.ContainsFunc(v, func(e entry) bool { return !numbersAlike(e.value) })
	case []any:
		return !slices.ContainsFunc(v, func(x any) bool { return !numbersAlike(x) })
	case json.Number:
		_, i := strconv.ParseInt(v.String(), 10, 64)
		_, u := strconv.ParseUint(v.String(), 10, 64)
		_, f := strconv.ParseFloat(v.String(), 64)
		return len(v) <= maxNumber && f == nil && (!numeral.MatchString(v.String()) || i == nil || u == nil)
	}
	return true
}

// edit applies a row of the table to the tree: what is left of it, or errTwin.
func edit(v any, steps []string, f Field) (any, error) {
	name, list := strings.CutSuffix(steps[0], "[]")
	o, ok := v.(object)
	if !ok {
		return v, nil
	}
	out := object{}
	for _, e := range o {
		switch {
		case e.name != name:
			if strings.EqualFold(e.name, name) {
				return nil, errTwin
			}
		case len(steps) == 1 && !list && f.Do == Strip:
			continue
		case len(steps) == 1 && !list:
			text := compact(e.value)
			if _, isObject := e.value.(object); isObject {
				text = "{}"
			}
			if text != "null" && !slices.Contains(f.Unless, text) {
				return nil, errTwin
			}
		case list:
			items, _ := e.value.([]any)
			for i, item := range items {
				var err error
				if items[i], err = edit(item, steps[1:], f); err != nil {
					return nil, err
				}
			}
		default:
			var err error
			if e.value, err = edit(e.value, steps[1:], f); err != nil {
				return nil, err
			}
		}
		out = append(out, e)
	}
	return out, nil
}

// compact writes a tree so that two that mean the same are the same bytes.
func compact(v any) string {
	switch v := v.(type) {
	case object:
		var b strings.Builder
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "%q:%s", e.name, compact(e.value))
		}
		return "{" + b.String() + "}"
	case []any:
		var parts []string
		for _, x := range v {
			parts = append(parts, compact(x))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case nil:
		return "null"
	case string:
		return strconv.Quote(v)
	}
	return fmt.Sprint(v)
}

// twin is what a policy makes of a body.
func twin(body []byte, p Policy) (string, error) {
	v, err := decodeTree(body)
	top, ok := v.(object)
	if err != nil || !ok || !readAlike(body) || doubles(v, "", levels(p.Dialect)) {
		return "", errTwin
	}
	for name := range treeOf(p.Dialect).known {
		if _, err := edit(v, []string{name}, Field{Do: Strip}); err != nil {
			return "", err
		}
	}
	own := object{}
	if p.Salt != "" {
		for _, name := range p.SaltFields {
			own = append(own, entry{name, p.Salt})
		}
	}
	for _, s := range sets[p.Dialect] {
		v, _ := decodeTree([]byte(`{"x":` + s.value + `}`))
		own = append(own, entry{s.name, v.(object)[0].value})
	}
	v = top
	for _, f := range applied(p.Dialect) {
		if v, err = edit(v, strings.Split(f.Path, "."), f); err != nil {
			return "", err
		}
	}
	for _, e := range own {
		if v, err = edit(v, []string{e.name}, Field{Do: Strip}); err != nil {
			return "", err
		}
	}
	return compact(append(own, v.(object)...)), nil
}

// document draws a body: names of the table, of the dialects and of nobody, in
// odd letters and escapes now and then, with values that mean much or nothing.
func document(t *rapid.T, dialect string) []byte {
	var names []string
	for _, f := range Table {
		names = append(names, strings.Split(strings.ReplaceAll(f.Path, "[]", ""), ".")...)
	}
	names = slices.DeleteFunc(names, func(s string) bool {
		return slices.Contains([]string{"messages", "content", "prompt", "image_embeds", "audio_embeds"}, s)
	})
	slices.Sort(names)
	names = append(slices.Compact(names), "temperature", "stop", "metadata", "x", "y", "", "id", "naïve", "日本")
	var b bytes.Buffer
	space := func() { b.WriteString(rapid.SampledFrom([]string{"", "", "", " ", "\n\t", "  \r\n"}).Draw(t, "space")) }
	text := func(s string) {
		b.WriteByte('"')
		for _, r := range s {
			switch {
			case rapid.IntRange(0, 30).Draw(t, "escape") == 0 && r < 0x10000:
				fmt.Fprintf(&b, `\u%04X`, r)
			case r == '"' || r == '\\':
				fmt.Fprintf(&b, `\%c`, r)
			case r < 0x20:
				fmt.Fprintf(&b, `\u%04x`, r)
			default:
				b.WriteRune(r)
			}
		}
		b.WriteByte('"')
	}
	var value func(depth int)
	value = func(depth int) {
		space()
		switch n := rapid.IntRange(0, 11).Draw(t, "kind"); {
		case n < 3 && depth > 0:
			b.WriteByte('{')
			for i := range rapid.IntRange(0, 5).Draw(t, "members") {
				if i > 0 {
					b.WriteByte(',')
				}
				space()
				name := rapid.SampledFrom(names).Draw(t, "name")
				if rapid.IntRange(0, 40).Draw(t, "odd") == 0 {
					name = rapid.SampledFrom([]string{strings.ToUpper(name), strings.Replace(name, "s", "\u017f", 1), strings.Replace(name, "k", "\u212a", 1)}).Draw(t, "letters")
				}
				text(name)
				space()
				b.WriteByte(':')
				value(depth - 1)
				space()
			}
			b.WriteByte('}')
		case n < 5 && depth > 0:
			b.WriteByte('[')
			for i := range rapid.IntRange(0, 4).Draw(t, "items") {
				if i > 0 {
					b.WriteByte(',')
				}
				value(depth - 1)
			}
			b.WriteByte(']')
		case n < 8:
			text(rapid.OneOf(rapid.SampledFrom([]string{"auto", "disabled", "", "\"},{", "\\\"", "\U0001F600"}), rapid.String()).Draw(t, "text"))
		default:
			b.WriteString(rapid.SampledFrom([]string{"true", "false", "null", "0", "-0", "12", "1.5", "-1e3", "18446744073709551615", "1,2,3", "1e999", "0.1E-7", "18446744073709551616", "01"}[:rapid.SampledFrom([]int{9, 9, 9, 14}).Draw(t, "care")]).Draw(t, "word"))
		}
		space()
	}
	for b.Len() == 0 || b.Bytes()[0] != '{' {
		b.Reset()
		value(4)
		b = *bytes.NewBuffer(bytes.TrimLeft(b.Bytes(), " \r\n\t"))
	}
	return b.Bytes()
}

func TestReaderDoesWhatItsTwinDoes(t *testing.T) {
	var passed, refused int
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{Dialect: rapid.SampledFrom([]string{"openai", "completions", "responses", "anthropic", "ollama"}).Draw(t, "dialect"), MaxOpaque: -1}
		if rapid.Bool().Draw(t, "salted") {
			p.Salt, p.SaltFields = `pe"pp`+"\n\u00e9", []string{"cache_salt", "extra_key"}
		}
		body := document(t, p.Dialect)
		if cut := rapid.IntRange(0, 60).Draw(t, "cut"); cut == 0 {
			body = body[:rapid.IntRange(0, len(body)).Draw(t, "length")]
		}
		want, wantErr := twin(body, p)
		out, f, err := rewrite(string(body), p, rapid.IntRange(0, 50).Draw(t, "pieces"))
		var no *Refused
		switch {
		case err != nil && !errors.As(err, &no):
			t.Fatalf("%s: %v", body, err)
		case (err != nil) != (wantErr != nil):
			t.Fatalf("%s: %s\n reader: %v\n twin: %v", p.Dialect, body, err, wantErr)
		case err != nil:
			refused++
			return
		}
		passed++
		got, err := decodeTree([]byte(out))
		if err != nil || compact(got) != want {
			t.Fatalf("%s: %s\n reader: %s\n %s\n twin: %s", p.Dialect, body, out, compact(got), want)
		}
		if grown := NewReader(nil, p).Grown(); len(out) != len(body)+grown || !f.Known || f.Bytes != int64(len(body)) {
			t.Fatalf("%s: %d bytes of %d, grown %d, facts %+v", body, len(out), len(body), grown, f)
		}
	})
	t.Logf("%d passed, %d refused", passed, refused)
	if passed == 0 || refused == 0 {
		t.Errorf("%d passed, %d refused: one of them is not tried", passed, refused)
	}
}
