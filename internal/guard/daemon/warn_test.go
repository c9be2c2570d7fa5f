package daemon

import (
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/config"
)

func TestWhatAGoodFileLeavesOpenIsSaid(t *testing.T) {
	tenants := "tenants: [{name: a, key_env: A}]\n"
	key := "watch: {key_files: [k]}\n"
	for _, c := range []struct{ name, text, want string }{
		{"nothing", tenants + key, ""},
		{"own canaries", tenants + "synthetic: {key_file: k, model: m}\n", ""},
		{"open", tenants + key + "admission: {policy: open}\n", "admission is open"},
		{"off", tenants + key + "admission: {policy: off}\n", "admission is off"},
		{"audit", tenants + "watch: {mode: audit, key_files: [k]}\n", "the watch is audit"},
		{"no key", tenants, "the watch has no key of canaries"},
		{"everybody", "tenants: any\n" + key + "listen: {address: \":80\"}\n", "everybody who reaches :80 is let in"},
		{"everybody here", "tenants: any\n" + key + "listen: {address: \"[::1]:80\"}\n", ""},
		{"a gateway", "tenants: any\ntenant_header: X-Customer\n" + key + "listen: {address: \"10.0.0.1:80\"}\n", "says in X-Customer whose request it is"},
		{"a gateway with a certificate", "tenants: any\ntenant_header: X-Customer\n" + key + "listen: {address: \"10.0.0.1:80\", tls_cert: a, tls_key: b, client_ca: c}\n", ""},
		{"a socket", "tenants: any\n" + key + "listen: {socket: /s}\n", ""},
	} {
		g, err := config.ReadGuard("guard.yaml", []byte("upstreams: [{name: a, base_url: http://a}]\n"+c.text), config.GuardKnown{})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got := strings.Join((&Setup{Config: *g}).Warnings(), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) || strings.Contains(got, "\n") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
