package watch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// strings of a document, as encoding/json reads it: values, names, in order.
func stringsOf(doc []byte) (out []string, ok bool) {
	d := json.NewDecoder(bytes.NewReader(doc))
	for {
		tok, err := d.Token()
		if err != nil {
			return out, json.Valid(doc)
		}
		if s, is := tok.(string); is {
			out = append(out, s)
		}
	}
}

// FuzzWalk: of a document that is JSON the walker finds every text that
// encoding/json finds and that is no name, and it never fails.
func FuzzWalk(f *testing.F) {
	for _, y := range carriers {
		_, doc, _ := strings.Cut(y.event(`"a \"word\" \\ \u0061 \ud835\udc1a"`), "{")
		f.Add([]byte("{" + doc))
	}
	for _, s := range []string{
		`{"a":[1,2,255],"b":[[1],2],"c":[300,"x"]}`, `{"top_logprobs":[{"x":1,"y":{"z":"w"}}]}`, `[`, `{"a`, `{"a":"\`, `"x"`, `[[[[["deep"]]]]]`, `{"a":{"index":2,"b":"c"},"index":1}`,
		`{"error":{}}`, `{"error": "x"}`, `{"a" : "b" , "c" : [ "d" , "e" ] }`, `{"\u0061":"\u0062"}`, `nul`, `{"a":tru}`, `{"a":-1.5e9,"usage":{"prompt_tokens":99999999999999999999}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		k := walker{most: maxParts, memory: new(memory)}
		k.read(doc)
		all, ok := stringsOf(doc)
		if !ok {
			return
		}
		if k.odd {
			t.Fatalf("%q is JSON and taken for odd", doc)
		}
		var got []string
		for i := range k.leaves {
			l := &k.leaves[i]
			if l.key == asNumbers {
				continue
			}
			if l.at < 0 && !bytes.Contains(doc, l.text) || l.at >= 0 && !bytes.HasPrefix(doc[l.at:], l.text) {
				t.Fatalf("%q: leaf %q does not stand at %d", doc, l.text, l.at)
			}
			var s string
			if err := json.Unmarshal([]byte(`"`+string(l.text)+`"`), &s); err != nil {
				t.Fatalf("%q: leaf %q: %v", doc, l.text, err)
			}
			got = append(got, s)
			k.places(l)
		}
		// The leaves are the strings without the names, in order.
		for _, s := range got {
			i := slices.Index(all, s)
			if i < 0 {
				t.Fatalf("%q: %q is not among the strings %q", doc, s, all)
			}
			all = all[i+1:]
		}
		if n := texts(doc); len(got) < n {
			t.Fatalf("%q: %d texts, want %d: %q", doc, len(got), n, got)
		}
	})
}

// texts counts the strings of a document that are values and not empty.
func texts(doc []byte) int {
	var v any
	if json.Unmarshal(doc, &v) != nil {
		return 0
	}
	var count func(v any) int
	count = func(v any) (n int) {
		switch v := v.(type) {
		case string:
			if v != "" {
				return 1
			}
		case []any:
			for _, e := range v {
				n += count(e)
			}
		case map[string]any:
			for _, e := range v {
				n += count(e)
			}
		}
		return n
	}
	return count(v)
}

// FuzzWatch: whatever an upstream sends, and however it is cut: an audit passes
// it as it is; a strict watch lets out what came but for what overtakes and what
// is held at a stop; and both find the same.
func FuzzWatch(f *testing.F) {
	c := testCoder(1)
	words := mint(c, theirs, 2, 9)
	for i, y := range carriers {
		f.Add([]byte(y.stream(strings.SplitAfter("is "+words+" is", " "))), uint16(i), true, y.dialect == "ollama")
		f.Add([]byte(lineEnds(y.stream([]string{"is it ", words[:9]}), "\r\n")), uint16(i), true, false)
	}
	for _, s := range []string{
		": " + words + " is\n\n", "data: " + words + "\n\n", strings.ReplaceAll(words, " ", "\n"), "event: x\rdata: y\r\r\n\n", "\ufeffdata: {}\n\n", "{\"a\":\"b\"}\n{", "data: [DONE]\n\ndata: {\"text\":\"x\"}\n\n",
		"data: {\"error\":1}\n\n", "data:\ndata:\n\n", ":\n:\n", "\n\n\n", "\r\r\r", "\r\n\r\n", "data: {\"a\":\"\ndata: \"}\n\n", `{"done":true,"message":{"content":"x"}}`,
	} {
		f.Add([]byte(s), uint16(3), true, false)
		f.Add([]byte(s), uint16(40), false, false)
	}
	f.Fuzz(func(t *testing.T, stream []byte, size uint16, isStream, ollama bool) {
		dialect := "openai"
		if ollama {
			dialect = "ollama"
		}
		o := Options{Dialect: dialect, Stream: isStream, Coders: []*canary.Coder{c}}
		n := max(1, int(size))
		whole := New(o)
		if out, stopped := send(whole, string(stream), max(1, len(stream))); stopped || out != string(stream) {
			t.Fatalf("an audit changed %q to %q", stream, out)
		}
		cut := New(o)
		send(cut, string(stream), n)
		if kinds(whole) != kinds(cut) {
			t.Fatalf("%q: %s; cut by %d: %s", stream, kinds(whole), n, kinds(cut))
		}
		o.Strict = true
		w := New(o)
		out, stopped := send(w, string(stream), n)
		if !stopped && len(out) != len(stream) || len(out) > len(stream) {
			t.Fatalf("%q: stopped %v, %d of %d bytes came out: %q", stream, stopped, len(out), len(stream), out)
		}
		if !bytes.Contains(stream, []byte(":")) && !bytes.HasPrefix(stream, []byte(out)) {
			t.Fatalf("%q: came out as %q", stream, out)
		}
		stops := slices.ContainsFunc(whole.Findings(), func(f Finding) bool { return f.Stops })
		if stops != stopped {
			t.Fatalf("%q: strict stopped %v, audit found %s, strict %s", stream, stopped, kinds(whole), kinds(w))
		}
		if n := len(c.Scan([]byte(out))); n > 0 && stopped {
			t.Fatalf("%q: %d canaries came out: %q", stream, n, out)
		}
	})
}

// TestProberFindsNoMore: of streams that the prober's own reader joins, the
// watch finds the canaries that stand in one text.
func TestProberFindsNoMore(t *testing.T) {
	c := testCoder(1)
	for _, y := range carriers {
		stream := y.stream(strings.SplitAfter("is "+mint(c, theirs, 2, 9)+" is", " "))
		strands, over := wire.Join([]byte(stream))
		if y.dialect == "ollama" {
			strands, over = wire.Join([]byte(strings.ReplaceAll("data: "+strings.TrimSpace(stream), "\n", "\n\ndata: ")))
		}
		found := 0
		for _, s := range strands {
			found += len(c.Scan([]byte(s.Text)))
		}
		w := y.watch(false, c)
		send(w, stream, 70)
		if got := fmt.Sprint(len(w.Findings())); found == 0 || over || got != "1" {
			t.Errorf("%s: the prober finds %d, the watch %s", y.name, found, got)
		}
	}
}
