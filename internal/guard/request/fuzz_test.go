package request

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
)

// FuzzReader holds the reader against its twin on bytes of any kind: what
// passes is what encoding/json reads, edited; and what is refused as no JSON is
// none, or none that every parser reads alike.
func FuzzReader(f *testing.F) {
	for _, s := range append(slices.Clone(hostile),
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}],"stream":true}`,
		`{"model":"m","input":[{"type":"function_call_output","call_id":"c","output":"{\"a\":1}"},{"id":"x"}],"truncation":"disabled","tools":[{"type":"code_interpreter","container":{"type":"auto"}}]}`,
		`{"model":"m","prompt":[[1,2,3],[4,5]],"max_tokens":7,"rid":["a"],"kv_transfer_params":{"a":{"b":[null,true,1.5e-7]}}}`,
		`{"model":"m","options":{"num_ctx":8,"num_predict":-1},"images":["AA"],"truncate":false,"raw":true}`,
	) {
		for n := range uint8(5) {
			f.Add([]byte(s), n, uint16(n)*3)
		}
	}
	dialects := []string{"openai", "completions", "responses", "anthropic", "ollama"}
	f.Fuzz(func(t *testing.T, body []byte, dialect uint8, n uint16) {
		p := Policy{Dialect: dialects[int(dialect)%len(dialects)], Salt: "s", SaltFields: []string{"cache_salt"}, MaxOpaque: -1}
		out, facts, err := rewrite(string(body), p, int(n))
		var refused *Refused
		if errors.As(err, &refused) {
			v, decoded := decodeTree(body)
			_, top := v.(object)
			if refused.Reason.Code == CodeInvalid && decoded == nil && top && readAlike(body) && !doubles(v, "", levels(p.Dialect)) && !deep(v, 60) && !wordy(v) {
				t.Fatalf("%q is refused: %v", body, err)
			}
			return
		}
		want, wantErr := twin(body, p)
		got, gotErr := decodeTree([]byte(out))
		if err != nil || wantErr != nil || gotErr != nil || compact(got) != want || !json.Valid([]byte(out)) {
			t.Fatalf("%q becomes %q, %v; the twin has %q, %v", body, out, err, want, wantErr)
		}
		if !facts.Known || facts.Bytes != int64(len(body)) || len(out) != len(body)+NewReader(nil, p).Grown() {
			t.Fatalf("%q: facts %+v, %d bytes", body, facts, len(out))
		}
	})
}

// deep reports whether objects and lists are more than n deep.
func deep(v any, n int) bool {
	switch v := v.(type) {
	case object:
		return n == 0 || slices.ContainsFunc(v, func(e entry) bool { return deep(e.value, n-1) })
	case []any:
		return n == 0 || slices.ContainsFunc(v, func(x any) bool { return deep(x, n-1) })
	}
	return false
}

// wordy reports whether a name may be too long, or there may be too many. A
// place that the reader knows and the twin does not may also know names in
// other letters: two that differ in their letters only are enough.
func wordy(v any) bool {
	switch v := v.(type) {
	case object:
		all := map[string]bool{"": true}
		return doubles(v, "", all) || len(v) > 1000 || slices.ContainsFunc(v, func(e entry) bool {
			return len(e.name) > maxName/6 || doubles(e.value, "", all) || wordy(e.value)
		})
	case []any:
		return slices.ContainsFunc(v, func(x any) bool { return doubles(x, "", map[string]bool{"": true}) || wordy(x) })
	}
	return false
}
