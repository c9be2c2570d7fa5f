package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var guardKnown = GuardKnown{Engines: []string{"sglang", "vllm"}, Allow: []string{"previous_response_id", "store"}}

func readGuard(t *testing.T, path string) (*Guard, error) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return ReadGuard("guard.yaml", b, guardKnown)
}

func TestAllThatAGuardsFileCanSay(t *testing.T) {
	got, err := readGuard(t, "testdata/guard/good/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	digest := got.Tenancy.Tenants[1].KeySHA256
	want := &Guard{
		Listen: Listen{Address: "0.0.0.0:8443", Cert: "certs/guard.pem", Key: "certs/guard.key", ClientCA: "certs/clients.pem", Health: true},
		Upstreams: []Upstream{
			{Name: "glm", BaseURL: "https://sglang.internal:30000", Engine: "sglang", Models: []string{"zai-org/GLM-5", "glm"}, KeyEnv: "ENGINE_KEY",
				Workers: []string{"http://prefill-0:30000", "http://decode-0:30000"}, HealthPath: "/health_generate",
				CA: "certs/ca.pem", Cert: "certs/me.pem", ClientKey: "certs/me.key",
				Limits: TokenLimits{Prompt: 681000, Pool: 681280, Context: 1048576, DecodePool: 900000}},
			{Name: "small", BaseURL: "http://engine", Engine: "auto", Socket: "/run/vllm.sock", ForwardKey: true},
		},
		Tenancy: Tenancy{Tenants: []GuardTenant{
			{Name: "alpha", KeyEnv: "KEY_ALPHA", Concurrency: 8},
			{Name: "beta", KeySHA256: digest},
		}},
		Admission: Admission{Policy: "open", TokensPerByte: 1.5, Wide: 11, Template: 100, Opaque: 2048, Structured: 3, Margin: 64, CountOutput: true, Refresh: 30 * time.Second, MaxAge: 5 * time.Minute},
		Isolation: Isolation{SaltKeyFile: "keys/salt", Unknown: "refuse", Allow: []string{"previous_response_id"}},
		Watch:     Watch{Mode: "audit", KeyFiles: []string{"keys/canary"}, MaxHeld: 131072},
		Synthetic: Synthetic{KeyFile: "keys/synthetic", Model: "glm", Every: 30 * time.Second, Words: 2000, TokensPerDay: 5_000_000},
		Overlap:   Overlap{Memory: 32 << 20, Keep: 30 * time.Minute, Letters: 200},
		Limits: Limits{Body: 8 << 20, Headers: 16384, Document: 4 << 20, Buffered: 128 << 20, BodyRate: 4096, Concurrency: 500, TenantAtOnce: 50,
			HeaderTime: 5 * time.Second, BodyTime: 20 * time.Second, ConnectTime: 2 * time.Second, StallTime: 2 * time.Minute,
			WriteTime: 30 * time.Second, IdleTime: time.Minute, DrainTime: 20 * time.Second, HealthTime: 2 * time.Second},
		Metrics:  ":9464",
		Traces:   Traces{Endpoint: "http://collector:4318", Ratio: 0.1, Headers: []Named{{"x-team", "TRACE_TEAM"}}},
		Receipts: Receipts{Dir: "/var/lib/kvcanary", KeyFile: "keys/receipts"},
		Findings: "/var/log/kvcanary/findings.jsonl", Log: "json",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if len(digest) != 32 || digest[0] != 0x2b {
		t.Errorf("digest %x", digest)
	}
}

// What a file leaves out is as the defaults say, and the full file says
// something else everywhere, so that no field of it can be one that is not read.
func TestDefaultsOfAGuard(t *testing.T) {
	small, err := readGuard(t, "testdata/guard/good/small.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := GuardDefaults()
	want.Upstreams = []Upstream{{Name: "lab", BaseURL: "http://127.0.0.1:8000", Engine: "auto"}}
	want.Tenancy.Header = "X-Customer"
	if !reflect.DeepEqual(*small, want) {
		t.Errorf("got  %+v\nwant %+v", *small, want)
	}
	full, err := readGuard(t, "testdata/guard/good/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "", reflect.ValueOf(*full), reflect.ValueOf(*small))
	socket, err := readGuard(t, "testdata/guard/good/socket.yaml")
	if err != nil || socket.Listen.Socket != "/run/guard.sock" || socket.Listen.Address != "" {
		t.Errorf("%+v, %v", socket, err)
	}
}

// same names the fields in which a and b do not differ.
func same(t *testing.T, path string, a, b reflect.Value) {
	if a.Kind() != reflect.Struct {
		if reflect.DeepEqual(a.Interface(), b.Interface()) && path != ".Listen.Socket" {
			t.Errorf("the full file leaves %s at its default", path)
		}
		return
	}
	for i := range a.NumField() {
		if f := a.Type().Field(i).Name; f != "Tenancy" {
			same(t, path+"."+f, a.Field(i), b.Field(i))
		}
	}
}

func TestEveryRuleOfAGuardHasItsMessage(t *testing.T) {
	says := map[string]string{}
	for line := range strings.Lines(guardMessages) {
		if name, message, ok := strings.Cut(strings.TrimSpace(line), " | "); ok {
			says[name] = message
		}
	}
	files, err := filepath.Glob("testdata/guard/bad/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no bad files: %v", err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".yaml")
		_, err := readGuard(t, f)
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

// A path is no key, however mixed its folders are called; a key in its place is.
func TestPathsAreNoKeys(t *testing.T) {
	const rest = "\nupstreams: [{name: a, base_url: http://a}]\ntenants: any\n"
	for value, good := range map[string]bool{
		"/tmp/TestNothingIsWritten964681933Own/aB3dE5fG7hI9jK1lM2nO4/salt": true, "./keys/aB3dE5fG7hI9jK1lM2nO4pQ6": true, "keys/salt": true,
		"aB3dE5fG7hI9jK1lM2nO4pQ6rS8": false, "sk-proj-000000000000": false, "/keys/sk-proj-000000000000": false,
	} {
		_, err := ReadGuard("guard.yaml", []byte("isolation: {salt_key_file: "+value+"}"+rest), guardKnown)
		if (err == nil) != good {
			t.Errorf("%s: %v", value, err)
		}
		_, err = ReadRun("run.yaml", []byte("key_file: "+value), known)
		if (err == nil) != good {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestAllThatIsWrongIsSaid(t *testing.T) {
	_, err := ReadGuard("guard.yaml", []byte("listen: {address: x}\nwatch: {mode: off, mdoe: off}\nupstreams:\n  - name: a\n  - base_url: http://b\nlimit: {}\n"), guardKnown)
	bad, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("error %v", err)
	}
	var got []string
	for _, e := range bad.All() {
		got = append(got, e.Error())
	}
	want := []string{
		`guard.yaml:1:19: address: write HOST:PORT, such as 127.0.0.1:8080`,
		`guard.yaml:2:20: unknown field "mdoe" of watch: did you mean "mode"?`,
		`guard.yaml:4:5: upstream "a" has no base_url: add the engine's address`,
		`guard.yaml:5:5: an upstream has no name: add name`,
		`guard.yaml:6:1: unknown field "limit" of the file: did you mean "limits"?`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Whatever a file holds, it is read or refused in one line, and what is read
// keeps to the rules.
func FuzzReadGuard(f *testing.F) {
	for _, pattern := range []string{"testdata/guard/good/*.yaml", "testdata/guard/bad/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatalf("no files: %v", err)
		}
		for _, path := range files {
			b, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := ReadGuard("guard.yaml", b, guardKnown)
		if err != nil {
			if bad, ok := errors.AsType[*Error](err); !ok || strings.ContainsAny(bad.Reason, "\n\r\x1b") {
				t.Fatalf("error %T %q", err, err)
			}
			return
		}
		if len(g.Upstreams) == 0 || (g.Listen.Address == "") == (g.Listen.Socket == "") || g.Admission.MaxAge < g.Admission.Refresh ||
			!slices.Contains([]string{"closed", "open", "off"}, g.Admission.Policy) || !(g.Admission.TokensPerByte > 0) || g.Limits.Body <= 0 || g.Limits.StallTime <= 0 {
			t.Fatalf("%+v", g)
		}
	})
}

const guardMessages = `
age_below_refresh | guard.yaml:4:12: max_age is 1m0s, less than refresh, 10m0s: every limit would be too old before it is measured again
allow | guard.yaml:4:21: no field to allow "previous_respons_id": did you mean "previous_response_id"?
body_bytes | guard.yaml:4:22: body_bytes is 0: it must be at least 1024
count_word | guard.yaml:4:20: count holds text: write true or false
empty | guard.yaml: nothing is written in it: it needs at least upstreams and tenants
header_and_tenants | guard.yaml:1:1: tenant_header is for tenants: any: who has a key of its own is known by it
header_name | guard.yaml:4:16: tenant_header: write the name of a header, such as X-Customer
key_field | guard.yaml:4:5: unknown field "api_key" of an upstream: no key belongs into a file, name the environment variable that holds it, as key_env of a tenant
key_files_twice | guard.yaml:4:24: key_files: "k" is there twice
listen_both | guard.yaml:4:9: listen has an address and a socket: choose one
listen_ca | guard.yaml:4:9: client_ca needs TLS: name tls_cert and tls_key too
listen_half_tls | guard.yaml:4:9: tls_cert and tls_key belong together: name both or none
listen_health | guard.yaml:4:18: health holds a number: write true or false
listen_port | guard.yaml:4:19: address: write HOST:PORT, such as 127.0.0.1:8080
listen_port_far | guard.yaml:4:19: address: write HOST:PORT, such as 127.0.0.1:8080
log_format | guard.yaml:4:15: no format "xml": choose of text, json
max_held | guard.yaml:4:19: max_held is 10: it must be at least 4096
metrics_port | guard.yaml:4:19: listen: write HOST:PORT, such as 127.0.0.1:8080
mode | guard.yaml:4:15: no mode "stric": did you mean "strict"?
no_tenants | guard.yaml:1:1: tenants is missing: name them with their keys, or write tenants: any
no_upstream | guard.yaml:1:1: no upstream: say under upstreams which engine is guarded
overlap_keep | guard.yaml:4:10: keep is 10ms: a second is the least
overlap_letters | guard.yaml:4:43: letters is 10: it must be at least 39
overlap_much | guard.yaml:4:10: memory_bytes is 1000000000000: 64 GiB is the most
overlap_nowhere | guard.yaml:4:10: overlap has no memory_bytes: say how much the fingerprints may take, such as 67108864
policy | guard.yaml:4:21: no policy "half": choose of closed, open, off
receipts_nowhere | guard.yaml:4:11: receipts has no dir: name the folder that findings are sealed in
refresh_zero | guard.yaml:4:22: refresh is 0: write a time such as 10s
stall_number | guard.yaml:4:22: stall_time: write a time with its unit, such as 90s, 10m or 2h
stall_zero | guard.yaml:4:22: stall_time is 0: write a time such as 10s
structured_factor | guard.yaml:4:32: structured_factor: write a number from 1 to 1000
synthetic_fast | guard.yaml:4:12: every is 10ms: a prompt a second is the most
synthetic_no_key | guard.yaml:4:12: synthetic has no key_file: name the key that its canaries are made with
synthetic_no_model | guard.yaml:4:12: synthetic has no model: name the one to ask
template_negative | guard.yaml:4:30: template_tokens is -1: it must be at least 0
tenant_concurrency | guard.yaml:4:40: concurrency is 0: it must be at least 1
tenant_digest | guard.yaml:5:17: key_sha256: write the key's SHA-256, 64 hexadecimal digits: printf %s "$KEY" | sha256sum
tenant_key | guard.yaml:5:14: key_env: write the name of an environment variable, such as API_KEY: the key itself does not belong into a file
tenant_no_key | guard.yaml:4:5: tenant "a": say by key_env or by key_sha256 how its key is known, and not by both
tenant_no_name | guard.yaml:4:5: a tenant has no name: add name
tenant_same_digest | guard.yaml:5:5: tenants "a" and "b" have the same key: they would be one tenant
tenant_same_key | guard.yaml:5:5: tenants "a" and "b" have the same key: they would be one tenant
tenant_twice | guard.yaml:5:5: two tenants are called "a": give each a name of its own
tenant_two_keys | guard.yaml:4:5: tenant "a": say by key_env or by key_sha256 how its key is known, and not by both
tenants_empty | guard.yaml:3:10: tenants holds an empty list: write a list of tenants, or any
tenants_word | guard.yaml:3:10: tenants holds text: write a list of tenants, or any
tokens_per_byte | guard.yaml:4:30: tokens_per_byte: write a number from 1 to 100
tokens_per_byte_text | guard.yaml:4:30: tokens_per_byte: write a number from 1 to 100
traces_header | guard.yaml:4:54: headers "x-key": write the name of an environment variable, such as API_KEY: the key itself does not belong into a file
traces_nowhere | guard.yaml:4:9: traces has no endpoint: name the collector, such as http://127.0.0.1:4318
traces_ratio | guard.yaml:4:44: ratio: write a number from 0 to 1
two_documents | guard.yaml:4:1: a second document begins: one file is one guard
unknown | guard.yaml:4:1: unknown field "admision" of the file: did you mean "admission"?
unknown_fields | guard.yaml:4:29: no unknown_fields "strip": choose of pass, refuse
unknown_inside | guard.yaml:5:3: unknown field "mod" of watch: did you mean "mode"?
upstream_cert | guard.yaml:2:5: client_cert and client_key belong together: name both or none
upstream_engine | guard.yaml:2:45: no engine "sglan": did you mean "sglang"?
upstream_health | guard.yaml:2:50: health_path: write a path such as /health
upstream_limit | guard.yaml:2:52: pool is 0: it must be at least 1
upstream_models_twice | guard.yaml:2:49: models: "m" is there twice
upstream_name | guard.yaml:2:12: name "a b": use letters, digits, dots, dashes and underscores, 63 at most
upstream_no_host | guard.yaml:2:25: base_url: write an address such as http://127.0.0.1:8000
upstream_no_name | guard.yaml:2:5: an upstream has no name: add name
upstream_no_url | guard.yaml:2:5: upstream "a" has no base_url: add the engine's address
upstream_other | guard.yaml:2:5: an upstream is called other: metrics use that word for what is none, choose another name
upstream_password | guard.yaml:2:25: base_url holds a name or a password: no key belongs into a file, name the environment variable that holds it
upstream_query | guard.yaml:2:25: base_url: write the address without ? and #
upstream_scheme | guard.yaml:2:25: base_url: write an address such as http://127.0.0.1:8000
upstream_twice | guard.yaml:3:5: two upstreams are called "a": give each a name of its own
upstream_two_keys | guard.yaml:2:5: upstream "a" has key_env and forward_key: it can be shown one key
upstream_worker | guard.yaml:2:47: workers: write an address such as http://127.0.0.1:8000
upstreams_empty | guard.yaml:1:12: upstreams holds an empty list: write a list, each entry on a line of its own behind a dash
wide_factor | guard.yaml:4:26: wide_factor: write a number from 1 to 100
`
