package request

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
)

// bodyWith is a body that has a value at a path of the table.
func bodyWith(path, value string) string {
	step, rest, more := strings.Cut(path, ".")
	name, list := strings.CutSuffix(step, "[]")
	if more {
		value = bodyWith(rest, value)
	}
	if list {
		value = "[" + value + "]"
	}
	return `{"` + name + `":` + value + `}`
}

// Every row of the table does what it says, in every dialect that it is for and
// in no other.
func TestEveryRowOfTheTable(t *testing.T) {
	for i, f := range Table {
		twice := slices.ContainsFunc(Table[:i], func(g Field) bool {
			return g.Path == f.Path && (f.Dialects == nil || g.Dialects == nil || slices.ContainsFunc(f.Dialects, func(d string) bool { return slices.Contains(g.Dialects, d) }))
		})
		if twice || f.Why == "" || f.Source == "" || f.Do == Strip && f.Unless != nil || strings.ToLower(f.Path) != f.Path {
			t.Errorf("row %s: it stands twice, or lacks something", f.Path)
		}
		for dialect := range trees {
			applies := f.Dialects == nil || slices.Contains(f.Dialects, dialect)
			for _, value := range append([]string{`"x"`, `7`, `{"a":[1]}`, `["x",{}]`, `true`, `null`}, f.Unless...) {
				p := Policy{Dialect: dialect, MaxOpaque: -1}
				body := bodyWith(f.Path, value)
				out, facts, err := rewrite(body, p, 3)
				var refused *Refused
				errors.As(err, &refused)
				if slices.Contains(f.Unless, "{}") && value[0] == '{' {
					value = "{}"
				}
				switch wantRefused := f.Do == Refuse && value != "null" && !slices.Contains(f.Unless, value); {
				case !applies:
					if refused != nil && strings.Contains(refused.Error(), f.Why) {
						t.Errorf("%s: %s is refused: %v", dialect, body, err)
					}
				case wantRefused:
					if refused == nil || refused.Reason.Status != 400 || refused.Reason.Code != CodeFieldRefused || refused.Reason.Param != f.Path || !strings.Contains(err.Error(), f.Why) {
						t.Errorf("%s: %s: %q, %v", dialect, body, out, err)
					}
				case err != nil:
					t.Errorf("%s: %s: %v", dialect, body, err)
				case f.Do == Strip && (!slices.Equal(facts.Changed, []string{f.Path}) || strings.Contains(strings.ReplaceAll(out, `"store":false,"truncation":"disabled"`, ""), f.Path[strings.LastIndex(f.Path, ".")+1:])):
					t.Errorf("%s: %s: %q, changed %v", dialect, body, out, facts.Changed)
				case f.Do == Refuse && !ownIn(dialect, f.Path) && (facts.Changed != nil || !strings.Contains(out, f.Path[strings.LastIndexAny(f.Path, ".]")+1:])):
					t.Errorf("%s: %s: %q, changed %v", dialect, body, out, facts.Changed)
				}
				if !applies {
					continue
				}
				for _, p := range []Policy{{Dialect: dialect, MaxOpaque: -1, Allow: []string{f.Path}}, {Dialect: dialect, MaxOpaque: -1, AllowStored: true}} {
					if p.AllowStored && !f.Stored || strings.Contains(f.Path, "[]") && slices.Contains(f.Unless, "{}") {
						continue
					}
					out, facts, err := rewrite(body, p, 3)
					if err != nil && errors.As(err, &refused) && refused.Reason.Param != f.Path {
						continue // for what the value is, not for that it is set
					}
					if err != nil || !strings.HasSuffix(out, body[1:]) || facts.Changed != nil {
						t.Errorf("%s, allowed: %s: %q, %v", dialect, body, out, err)
					}
				}
			}
		}
	}
}

// ownIn reports whether the guard sets the field by itself.
func ownIn(dialect, path string) bool {
	return slices.ContainsFunc(sets[dialect], func(s set) bool { return s.name == path })
}

// The trees know what the issue and the facts of the engines name.
func TestTheTableIsNotShort(t *testing.T) {
	for _, path := range strings.Fields("kv_transfer_params bootstrap_host bootstrap_port bootstrap_room rid request_id id_slot cache_prompt extra_key cache_salt truncate shift " +
		"options.num_ctx options.num_keep truncate_prompt_tokens transforms truncation session_params session_id routed_dp_rank disagg_prefill_dp_rank data_parallel_rank " +
		"custom_logit_processor return_hidden_states prompt_embeds input_embeds lora_path priority keep_alive chat_template previous_response_id conversation background store prompt") {
		if !slices.ContainsFunc(Table, func(f Field) bool { return f.Path == path }) {
			t.Errorf("the table has no %s", path)
		}
	}
}

// Where the unknown is refused, nothing is that OpenAI's own client can send.
func TestDocumentedFieldsAreKnown(t *testing.T) {
	for dialect, params := range map[string]any{"openai": openai.ChatCompletionNewParams{}, "completions": openai.CompletionNewParams{}, "responses": responses.ResponseNewParams{}} {
		fields := 0
		for f := range reflect.TypeOf(params).Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" || name == "-" {
				continue
			}
			fields++
			_, _, err := rewrite(`{"`+name+`":null}`, Policy{Dialect: dialect, RefuseUnknown: true}, 0)
			if err != nil {
				t.Errorf("%s: %s: %v", dialect, name, err)
			}
		}
		if fields < 15 {
			t.Errorf("%s has %d fields: the test is empty", dialect, fields)
		}
	}
}
