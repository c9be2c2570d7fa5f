package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var known = Known{Protocols: []string{"smoke", "boundary", "straddle", "tenants"}, Dialects: []string{"auto", "openai", "ollama"}}

func read(t *testing.T, path string) (*Run, error) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", path))
	if err != nil {
		t.Fatal(err)
	}
	return ReadRun("run.yaml", b, known)
}

func TestAllThatAFileCanSay(t *testing.T) {
	got, err := read(t, "good/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(1<<64 - 1)
	want := &Run{
		BaseURL: "https://example.openai.azure.com/openai/deployments/prod", Model: "gpt-4.1-mini", Dialect: "openai",
		Headers: []Named{{"api-key", "AZURE_KEY"}}, Query: []Named{{"api-version", "AZURE_VERSION"}},
		CA: "certs/ca.pem", ClientCert: "certs/me.pem", ClientKey: "certs/me.key", Socket: "/run/vllm.sock",
		Tenants: []Tenant{{"alpha", "KEY_A"}, {"beta", "KEY_B"}}, Protocols: []string{"boundary", "straddle"},
		Context: 1048576, Pool: 681280, Tokens: 40_000_000, Requests: 500, Time: 150 * time.Minute,
		Concurrency: 8, Seed: &seed, KeyFile: "keys/canary", Out: "runs/nightly",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	v := reflect.ValueOf(*got)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("the full file leaves %s out", v.Type().Field(i).Name)
		}
	}
	if got, err := read(t, "good/small.yaml"); err != nil || got.Model != "7" || got.BaseURL == "" {
		t.Errorf("small file: %+v, %v", got, err)
	}
}

// Every rule has a file that breaks it and a message that says so.
func TestEveryRuleHasItsMessage(t *testing.T) {
	says := map[string]string{}
	for line := range strings.Lines(messages) {
		if name, message, ok := strings.Cut(strings.TrimSpace(line), " | "); ok {
			says[strings.TrimSpace(name)] = message
		}
	}
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no bad files: %v", err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".yaml")
		_, err := read(t, "bad/"+name+".yaml")
		bad, ok := errors.AsType[*Error](err)
		if !ok {
			t.Errorf("%s: error %v", name, err)
			continue
		}
		if got := bad.Error(); got != says[name] {
			t.Errorf("%s | %s", name, got)
		}
		delete(says, name)
	}
	for name := range says {
		t.Errorf("no file breaks the rule %s", name)
	}
}

const messages = `
alias | run.yaml: anchors and aliases are not taken: write the value out
alias_of_anchor | run.yaml:2:18: anchors and aliases are not taken: write the value out
anchor | run.yaml:1:9: anchors and aliases are not taken: write the value out
base_url_key | run.yaml:2:13: base_url: this looks like a key: no key belongs into a file, name the environment variable that holds it
broken_second_document | run.yaml:2: this is no YAML: did not find expected key
budget_list | run.yaml:2:13: requests holds a list: write a whole number
budget_negative | run.yaml:2:11: tokens is -5: it must be at least 0
budget_nothing | run.yaml:2:10: tokens: nothing is written behind it: write a whole number, or leave the line out
comment_only | run.yaml: nothing is written in it: it needs at least target
concurrency_zero | run.yaml:1:14: concurrency is 0: it must be at least 1
dialect | run.yaml:2:12: no dialect "open-ai": did you mean "openai"?
dialect_far | run.yaml:2:12: no dialect "smoke-signals": choose of auto, openai, ollama
duplicate | run.yaml:3:1: "seed" is given twice: first in line 1
duplicate_inside | run.yaml:3:3: "model" is given twice: first in line 2
empty | run.yaml: nothing is written in it: it needs at least target
facts_fraction | run.yaml:2:12: context holds a number with a fraction: write a whole number, such as 4096
facts_hex | run.yaml:2:12: context: write a whole number in decimal digits, no more than 2147483647000
facts_huge | run.yaml:2:12: context: write a whole number in decimal digits, no more than 2147483647000
facts_negative | run.yaml:2:12: context is -1: it must be at least 1
facts_text | run.yaml:2:12: context holds text: write a whole number, such as 4096
facts_zero | run.yaml:2:9: pool is 0: it must be at least 1
header_key | run.yaml:3:14: headers "api-key": write the name of an environment variable, such as API_KEY: the key itself does not belong into a file
header_list | run.yaml:2:12: headers holds a list: write fields, each as name: value
header_name_key | run.yaml:3:5: headers holds a name that looks like a key: write it as name: ENVIRONMENT_VARIABLE
header_value | run.yaml:3:13: headers "X-Team": write the name of an environment variable, such as API_KEY: the key itself does not belong into a file
key_as_field | run.yaml:1:1: unknown field a name that looks like a key of the file: no key belongs into a file, name the environment variable that holds it, as key_env of a tenant
key_field | run.yaml:2:3: unknown field "api_key" of target: no key belongs into a file, name the environment variable that holds it, as key_env of a tenant
list_at_top | run.yaml:1:1: the file holds a list: write fields, each as name: value
merge | run.yaml:2:3: anchors and aliases are not taken: write the value out
model_bool | run.yaml:3:12: dialect holds true or false: write a text, in quotes if it looks like something else
model_empty | run.yaml:2:10: model is empty: write a text, or leave the line out
model_key | run.yaml:2:10: model: this looks like a key: no key belongs into a file, name the environment variable that holds it
model_map | run.yaml:2:10: model holds fields: write a text
model_nothing | run.yaml:2:9: model: nothing is written behind it: write a text, or leave the line out
not_yaml | run.yaml:1: this is no YAML: did not find expected ',' or '}'
number_as_name | run.yaml:2:3: target: the name of a field must be a word
out_number_list | run.yaml:1:6: out holds a list: write a text
protocol_far | run.yaml:1:13: no protocol "everything": choose of smoke, boundary, straddle, tenants
protocol_twice | run.yaml:1:20: protocol "smoke" is named twice
protocol_unknown | run.yaml:1:20: no protocol "boundry": did you mean "boundary"?
protocols_word | run.yaml:1:12: protocols holds text: write a list, each entry on a line of its own behind a dash
query_number | run.yaml:3:18: query "api-version": write the name of an environment variable, such as API_KEY: the key itself does not belong into a file
seed_list | run.yaml:1:7: seed holds a list: write a whole number
seed_negative | run.yaml:1:7: seed: write a whole number from 0 to 18446744073709551615
seed_text | run.yaml:1:7: seed: write a whole number from 0 to 18446744073709551615
tab | run.yaml:2:1: the line is indented with a tab: use spaces
tag | run.yaml:1:7: tags are not taken: write the value without !!str
target_list | run.yaml:1:9: target holds a list: write fields, each as name: value
target_nothing | run.yaml:1:8: target: nothing is written behind it: write its fields below it, or leave the line out
target_word | run.yaml:1:9: target holds text: write fields, each as name: value
tenant_key | run.yaml:3:14: key_env: write the name of an environment variable, such as API_KEY: the key itself does not belong into a file
tenant_no_name | run.yaml:2:5: a tenant has no name: add name
tenant_random_key | run.yaml:3:14: key_env: write the name of an environment variable, such as API_KEY: the key itself does not belong into a file
tenant_same_key | run.yaml:3:5: tenants "a" and "b" have the same key_env: they would be one tenant
tenant_twice | run.yaml:3:5: two tenants are called "a": give each a name of its own
tenant_unknown | run.yaml:3:5: unknown field "keyenv" of a tenant: did you mean "key_env"?
tenant_word | run.yaml:2:5: a tenant holds text: write fields, each as name: value
tenants_empty | run.yaml:1:10: tenants holds an empty list: write a list, each entry on a line of its own behind a dash
tenants_map | run.yaml:2:3: tenants holds fields: write a list, each entry on a line of its own behind a dash
time_negative | run.yaml:2:9: time is -10m0s: it must not be negative
time_nothing | run.yaml:2:8: time: nothing is written behind it: write a time with its unit, such as 10m, or leave the line out
time_number | run.yaml:2:9: time: write a time with its unit, such as 90s, 10m or 2h
time_words | run.yaml:2:9: time: write a time with its unit, such as 90s, 10m or 2h
two_documents | run.yaml:2:1: a second document begins: one file is one run
unclosed_quote | run.yaml:2: this is no YAML: found unexpected end of stream
unknown | run.yaml:1:1: unknown field "budgets" of the file: did you mean "budget"?
unknown_dash | run.yaml:2:3: unknown field "base-url" of target: did you mean "base_url"?
unknown_far | run.yaml:1:1: unknown field "zebra" of the file: there are target, tenants, protocols, facts, budget, concurrency, seed, key_file, out
unknown_inside | run.yaml:3:3: unknown field "modle" of target: did you mean "model"?
word_at_top | run.yaml:1:1: the file holds text: write fields, each as name: value
`

// Whatever is wrong with a file, the message repeats nothing that may be a key.
func TestNoMessageHoldsAKey(t *testing.T) {
	const key = "sk-marked-a8F3kQ0zP4mX7cV2bN9tR6wY"
	b, err := os.ReadFile("testdata/good/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	for i, line := range lines {
		for _, with := range []string{strings.Replace(line, ": ", ": "+key+" #", 1), strings.Replace(line, ": ", ": ["+key+"] #", 1), key + ": " + line, line + key} {
			changed := append(append(append([]string{}, lines[:i]...), with), lines[i+1:]...)
			if _, err := ReadRun("run.yaml", []byte(strings.Join(changed, "\n")), known); err != nil && strings.Contains(err.Error(), "marked") {
				t.Errorf("with line %q: %v", with, err)
			}
		}
	}
}

func TestWhatLooksLikeAKey(t *testing.T) {
	for _, s := range []string{
		"sk-proj-abcdef123456", "Bearer abcdefgh", "hf_abcdefghijklmnop", "AIzaSyA000000000", "eyJhbGciOiJIUzI1NiJ9",
		"a8F3kQ0zP4mX7cV2bN9tR6wY", "gsk_000000000000",
	} {
		if !looksSecret(s) {
			t.Errorf("%q is taken for no key", s)
		}
	}
	for _, s := range []string{
		"API_KEY", "meta-llama/Llama-3.3-70B-Instruct", "Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "deepseek-ai/DeepSeek-V3.2-Exp", "kvcanary-lab",
		"http://127.0.0.1:8000/v1", "AZURE_OPENAI_API_KEY_TENANT_BETA", "/run/vllm.sock", "runs/2026-11-30T13-30-00", "sk", "unsloth/Llama-4-Maverick-17B-128E-Instruct-GGUF",
		"https://my-resource.openai.azure.com/openai/deployments/gpt-4o-2024-08-06",
	} {
		if looksSecret(s) {
			t.Errorf("%q is taken for a key", s)
		}
	}
}

func FuzzReadRun(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range files {
			b, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ReadRun("f", b, known)
		if (r == nil) == (err == nil) {
			t.Fatalf("%+v and %v", r, err)
		}
		if err != nil && (strings.ContainsAny(err.Error(), "\n\t\x00\x1b") || len(err.Error()) > 500) {
			t.Fatalf("the message is no line: %q", err)
		}
	})
}
