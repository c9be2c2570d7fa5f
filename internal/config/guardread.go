package config

import (
	"cmp"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

func (g *Guard) fields(root *yaml.Node, known GuardKnown) *Error {
	tenants := false
	if err := object(root, "the file",
		field{"listen", g.Listen.read},
		field{"upstreams", func(n *yaml.Node) *Error { return g.upstreams(n, known) }},
		field{"tenants", func(n *yaml.Node) *Error { tenants = true; return g.Tenancy.read(n) }},
		headerName("tenant_header", &g.Tenancy.Header),
		field{"admission", g.Admission.read},
		field{"isolation", func(n *yaml.Node) *Error { return g.Isolation.read(n, known) }},
		field{"watch", g.Watch.read},
		field{"synthetic", g.Synthetic.read},
		field{"overlap", g.Overlap.read},
		field{"limits", g.Limits.read},
		field{"metrics", func(n *yaml.Node) *Error { return object(n, "metrics", address("listen", &g.Metrics)) }},
		field{"traces", g.Traces.read},
		field{"receipts", g.Receipts.read},
		file("findings_file", &g.Findings),
		field{"log", func(n *yaml.Node) *Error {
			return object(n, "log", choice("format", []string{"text", "json"}, &g.Log))
		}},
	); err != nil {
		return err
	}
	switch {
	case len(g.Upstreams) == 0:
		return at(root, "no upstream: say under upstreams which engine is guarded")
	case !tenants:
		return at(root, "tenants is missing: name them with their keys, or write tenants: any")
	case g.Tenancy.Header != "" && len(g.Tenancy.Tenants) > 0:
		return at(root, "tenant_header is for tenants: any: who has a key of its own is known by it")
	}
	return nil
}

func (l *Listen) read(n *yaml.Node) *Error {
	address, socket := address("address", &l.Address), file("socket", &l.Socket)
	both := 0
	count := func(f field) field {
		return field{f.name, func(n *yaml.Node) *Error { both++; return f.set(n) }}
	}
	if err := object(n, "listen", count(address), count(socket),
		file("tls_cert", &l.Cert), file("tls_key", &l.Key), file("client_ca", &l.ClientCA), flag("health", &l.Health)); err != nil {
		return err
	}
	switch {
	case both > 1:
		return at(n, "listen has an address and a socket: choose one")
	case (l.Cert == "") != (l.Key == ""):
		return at(n, "tls_cert and tls_key belong together: name both or none")
	case l.ClientCA != "" && l.Cert == "":
		return at(n, "client_ca needs TLS: name tls_cert and tls_key too")
	}
	if l.Socket != "" {
		l.Address = ""
	}
	return nil
}

func (g *Guard) upstreams(n *yaml.Node, known GuardKnown) *Error {
	return list(n, "upstreams", func(_ int, entry *yaml.Node) *Error {
		u := Upstream{Engine: "auto"}
		if err := object(entry, "an upstream",
			label("name", &u.Name),
			serverURL("base_url", &u.BaseURL),
			choice("engine", append([]string{"auto"}, known.Engines...), &u.Engine),
			texts("models", &u.Models),
			listOf(serverURL, "workers", &u.Workers),
			variable("key_env", &u.KeyEnv),
			flag("forward_key", &u.ForwardKey),
			file("ca", &u.CA),
			file("client_cert", &u.Cert),
			file("client_key", &u.ClientKey),
			file("socket", &u.Socket),
			path("health_path", &u.HealthPath),
			field{"limits", u.Limits.read},
		); err != nil {
			return err
		}
		u.BaseURL = strings.TrimSuffix(strings.TrimRight(u.BaseURL, "/"), "/v1")
		switch {
		case u.Name == "":
			return at(entry, "an upstream has no name: add name")
		case u.Name == "other":
			return at(entry, "an upstream is called other: metrics use that word for what is none, choose another name")
		case u.BaseURL == "":
			return at(entry, "upstream %q has no base_url: add the engine's address", u.Name)
		case u.KeyEnv != "" && u.ForwardKey:
			return at(entry, "upstream %q has key_env and forward_key: it can be shown one key", u.Name)
		case (u.Cert == "") != (u.ClientKey == ""):
			return at(entry, "client_cert and client_key belong together: name both or none")
		case slices.ContainsFunc(g.Upstreams, func(o Upstream) bool { return o.Name == u.Name }):
			return at(entry, "two upstreams are called %q: give each a name of its own", u.Name)
		}
		g.Upstreams = append(g.Upstreams, u)
		return nil
	})
}

func (l *TokenLimits) read(n *yaml.Node) *Error {
	return object(n, "limits", count("prompt", 1, &l.Prompt), count("pool", 1, &l.Pool), count("context", 1, &l.Context), count("decode_pool", 1, &l.DecodePool))
}

// read takes the word any, or a list of tenants.
func (t *Tenancy) read(n *yaml.Node) *Error {
	if err := plain(n); err != nil {
		return err
	}
	if n.Kind == yaml.ScalarNode && n.Value == "any" {
		return nil
	}
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return at(n, "tenants holds %s: write a list of tenants, or any", kindOf(n))
	}
	return list(n, "tenants", func(_ int, entry *yaml.Node) *Error {
		var c GuardTenant
		if err := object(entry, "a tenant",
			label("name", &c.Name), variable("key_env", &c.KeyEnv), digest("key_sha256", &c.KeySHA256), count("concurrency", 1, &c.Concurrency)); err != nil {
			return err
		}
		switch {
		case c.Name == "":
			return at(entry, "a tenant has no name: add name")
		case (c.KeyEnv == "") == (c.KeySHA256 == nil):
			return at(entry, "tenant %q: say by key_env or by key_sha256 how its key is known, and not by both", c.Name)
		}
		for _, o := range t.Tenants {
			if o.Name == c.Name {
				return at(entry, "two tenants are called %q: give each a name of its own", c.Name)
			}
			if c.KeyEnv != "" && o.KeyEnv == c.KeyEnv || c.KeySHA256 != nil && slices.Equal(o.KeySHA256, c.KeySHA256) {
				return at(entry, "tenants %q and %q have the same key: they would be one tenant", o.Name, c.Name)
			}
		}
		t.Tenants = append(t.Tenants, c)
		return nil
	})
}

func (a *Admission) read(n *yaml.Node) *Error {
	if err := object(n, "admission",
		choice("policy", []string{"closed", "open", "off"}, &a.Policy),
		decimal("tokens_per_byte", 1, 100, &a.TokensPerByte),
		count("template_tokens", 0, &a.Template),
		count("opaque_tokens", 0, &a.Opaque),
		decimal("wide_factor", 1, 100, &a.Wide),
		decimal("structured_factor", 1, 1000, &a.Structured),
		count("margin_tokens", 0, &a.Margin),
		flag("count", &a.Count),
		flag("count_output", &a.CountOutput),
		positive("refresh", &a.Refresh),
		positive("max_age", &a.MaxAge),
	); err != nil {
		return err
	}
	if a.MaxAge < a.Refresh {
		return at(n, "max_age is %v, less than refresh, %v: every limit would be too old before it is measured again", a.MaxAge, a.Refresh)
	}
	return nil
}

func (i *Isolation) read(n *yaml.Node, known GuardKnown) *Error {
	return object(n, "isolation",
		file("salt_key_file", &i.SaltKeyFile),
		choice("unknown_fields", []string{"pass", "refuse"}, &i.Unknown),
		field{"allow", func(n *yaml.Node) *Error {
			return list(n, "allow", func(_ int, entry *yaml.Node) *Error {
				var name string
				if err := str("allow", &name).set(entry); err != nil {
					return err
				}
				i.Allow = append(i.Allow, name)
				if known.Allow == nil {
					return nil
				}
				return oneOf(entry, "field to allow", known.Allow)
			})
		}},
	)
}

func (w *Watch) read(n *yaml.Node) *Error {
	return object(n, "watch",
		choice("mode", []string{"strict", "audit", "off"}, &w.Mode),
		listOf(file, "key_files", &w.KeyFiles),
		count("max_held", 4096, &w.MaxHeld),
	)
}

func (s *Synthetic) read(n *yaml.Node) *Error {
	if err := object(n, "synthetic",
		file("key_file", &s.KeyFile), str("model", &s.Model), positive("every", &s.Every), count("words", 16, &s.Words), count("tokens_per_day", 1000, &s.TokensPerDay),
	); err != nil {
		return err
	}
	switch {
	case s.KeyFile == "":
		return at(n, "synthetic has no key_file: name the key that its canaries are made with")
	case s.Model == "":
		return at(n, "synthetic has no model: name the one to ask")
	case s.Every < time.Second:
		return at(n, "every is %v: a prompt a second is the most", s.Every)
	}
	return nil
}

func (o *Overlap) read(n *yaml.Node) *Error {
	if err := object(n, "overlap", count("memory_bytes", 1<<20, &o.Memory), positive("keep", &o.Keep), count("letters", 39, &o.Letters)); err != nil {
		return err
	}
	switch {
	case o.Memory == 0:
		return at(n, "overlap has no memory_bytes: say how much the fingerprints may take, such as 67108864")
	case o.Memory > 64<<30:
		return at(n, "memory_bytes is %d: 64 GiB is the most", o.Memory)
	case o.Keep < time.Second:
		return at(n, "keep is %v: a second is the least", o.Keep)
	}
	return nil
}

func (l *Limits) read(n *yaml.Node) *Error {
	return object(n, "limits",
		count("body_bytes", 1024, &l.Body),
		count("header_bytes", 1024, &l.Headers),
		count("document_bytes", 1024, &l.Document),
		count("buffered_bytes", 64<<10, &l.Buffered),
		count("body_rate", 1, &l.BodyRate),
		count("concurrency", 1, &l.Concurrency),
		count("tenant_concurrency", 1, &l.TenantAtOnce),
		positive("header_time", &l.HeaderTime),
		positive("body_time", &l.BodyTime),
		positive("connect_time", &l.ConnectTime),
		positive("stall_time", &l.StallTime),
		positive("write_time", &l.WriteTime),
		positive("idle_time", &l.IdleTime),
		positive("drain_time", &l.DrainTime),
		positive("health_time", &l.HealthTime),
	)
}

func (t *Traces) read(n *yaml.Node) *Error {
	if err := object(n, "traces",
		serverURL("endpoint", &t.Endpoint),
		decimal("ratio", 0, 1, &t.Ratio),
		field{"headers", func(n *yaml.Node) *Error { return named(n, "headers", &t.Headers) }},
	); err != nil {
		return err
	}
	if t.Endpoint == "" {
		return at(n, "traces has no endpoint: name the collector, such as http://127.0.0.1:4318")
	}
	return nil
}

func (r *Receipts) read(n *yaml.Node) *Error {
	if err := object(n, "receipts", file("dir", &r.Dir), file("key_file", &r.KeyFile)); err != nil {
		return err
	}
	if r.Dir == "" {
		return at(n, "receipts has no dir: name the folder that findings are sealed in")
	}
	r.KeyFile = cmp.Or(r.KeyFile, r.Dir+"/receipt-key")
	return nil
}

var (
	labelWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	tokenWord = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+.^_|~-]{1,64}$`)
)

// label takes a name that becomes a label of metrics.
func label(what string, out *string) field {
	return field{what, func(n *yaml.Node) *Error {
		if err := str(what, out).set(n); err != nil {
			return err
		}
		if !labelWord.MatchString(*out) {
			return at(n, "%s %s: use letters, digits, dots, dashes and underscores, 63 at most", what, quoted(n))
		}
		return nil
	}}
}

// headerName takes the name of a header.
func headerName(what string, out *string) field {
	return field{what, func(n *yaml.Node) *Error {
		if err := str(what, out).set(n); err != nil {
			return err
		}
		if !tokenWord.MatchString(*out) {
			return at(n, "%s: write the name of a header, such as X-Customer", what)
		}
		return nil
	}}
}

// positive takes a time that is not nothing.
func positive(what string, out *time.Duration) field {
	return field{what, func(n *yaml.Node) *Error {
		if err := duration(what, out).set(n); err != nil {
			return err
		}
		if *out == 0 {
			return at(n, "%s is 0: write a time such as 10s", what)
		}
		return nil
	}}
}

// path takes a path of a URL.
func path(what string, out *string) field {
	return field{what, func(n *yaml.Node) *Error {
		if err := str(what, out).set(n); err != nil {
			return err
		}
		if !strings.HasPrefix(*out, "/") || strings.ContainsAny(*out, "?# \r\n\t") {
			return at(n, "%s: write a path such as /health", what)
		}
		return nil
	}}
}

// texts takes a list of texts, none of them twice.
func texts(what string, out *[]string) field { return listOf(str, what, out) }

// listOf takes a list of what one takes, nothing twice.
func listOf(one func(string, *string) field, what string, out *[]string) field {
	return field{what, func(n *yaml.Node) *Error {
		return list(n, what, func(_ int, entry *yaml.Node) *Error {
			var s string
			if err := one(what, &s).set(entry); err != nil {
				return err
			}
			if slices.Contains(*out, s) {
				return at(entry, "%s: %s is there twice", what, quoted(entry))
			}
			*out = append(*out, s)
			return nil
		})
	}}
}

// digest takes a SHA-256 in hexadecimal. It is no key, much as it looks like one.
func digest(what string, out *[]byte) field {
	return field{what, func(n *yaml.Node) *Error {
		if err := scalar(n, what, "a digest"); err != nil {
			return err
		}
		b, err := hex.DecodeString(n.Value)
		if err != nil || len(b) != 32 {
			return at(n, "%s: write the key's SHA-256, 64 hexadecimal digits: printf %%s \"$KEY\" | sha256sum", what)
		}
		*out = b
		return nil
	}}
}
