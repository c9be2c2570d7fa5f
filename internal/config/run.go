package config

import (
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Run is the file of `kvcanary run`: what its flags say, written down. A zero
// field was left out. Flags win over it.
type Run struct {
	BaseURL, Model, Dialect string
	Headers, Query          []Named // sent with every request
	CA                      string  // file of authorities to trust
	ClientCert, ClientKey   string  // files of a certificate to show
	Socket                  string  // unix socket to reach the target by

	Tenants   []Tenant
	Protocols []string

	Context, Pool int // tokens

	Tokens, Requests int           // budget
	Time             time.Duration // budget
	Concurrency      int
	Seed             *uint64
	KeyFile, Out     string
}

// Tenant is an identity and the environment variable that holds its key; KeyEnv
// is empty for one that sends no key.
type Tenant struct{ Name, KeyEnv string }

// Named is a header or a query parameter, and the environment variable that
// holds its value.
type Named struct{ Name, Env string }

// Known is what there is to choose of.
type Known struct{ Protocols, Dialects []string }

// ReadRun reads the file of a run. file names it in errors, all of which are an
// [*Error]. Paths in it are taken as flags take them: from the directory in
// which kvcanary runs.
func ReadRun(file string, b []byte, known Known) (*Run, error) {
	root, bad := parse(b, kind{"target", "one run"})
	r := &Run{}
	if bad == nil {
		bad = r.fields(root, known)
	}
	if bad != nil {
		return nil, bad.in(file)
	}
	return r, nil
}

func (r *Run) fields(root *yaml.Node, known Known) *Error {
	return object(root, "the file",
		field{"target", func(n *yaml.Node) *Error { return r.target(n, known) }},
		field{"tenants", r.tenants},
		field{"protocols", func(n *yaml.Node) *Error { return r.protocols(n, known) }},
		field{"facts", func(n *yaml.Node) *Error {
			return object(n, "facts", count("context", 1, &r.Context), count("pool", 1, &r.Pool))
		}},
		field{"budget", func(n *yaml.Node) *Error {
			return object(n, "budget", count("tokens", 0, &r.Tokens), count("requests", 0, &r.Requests), duration("time", &r.Time))
		}},
		count("concurrency", 1, &r.Concurrency),
		seed("seed", &r.Seed),
		file("key_file", &r.KeyFile),
		file("out", &r.Out),
	)
}

func (r *Run) target(n *yaml.Node, known Known) *Error {
	return object(n, "target",
		str("base_url", &r.BaseURL),
		str("model", &r.Model),
		field{"dialect", func(n *yaml.Node) *Error {
			if err := str("dialect", &r.Dialect).set(n); err != nil {
				return err
			}
			return oneOf(n, "dialect", known.Dialects)
		}},
		field{"headers", func(n *yaml.Node) *Error { return named(n, "headers", &r.Headers) }},
		field{"query", func(n *yaml.Node) *Error { return named(n, "query", &r.Query) }},
		file("ca", &r.CA),
		file("client_cert", &r.ClientCert),
		file("client_key", &r.ClientKey),
		file("socket", &r.Socket),
	)
}

// named takes names with the environment variables that hold their values.
func named(n *yaml.Node, what string, out *[]Named) *Error {
	return pairs(n, what, func(key, value *yaml.Node) *Error {
		if looksSecret(key.Value) {
			return at(key, "%s holds a name that looks like a key: write it as name: ENVIRONMENT_VARIABLE", what)
		}
		e := Named{Name: key.Value}
		if err := variable(what+" "+quoted(key), &e.Env).set(value); err != nil {
			return err
		}
		*out = append(*out, e)
		return nil
	})
}

func (r *Run) tenants(n *yaml.Node) *Error {
	return list(n, "tenants", func(_ int, entry *yaml.Node) *Error {
		var t Tenant
		if err := object(entry, "a tenant", str("name", &t.Name), variable("key_env", &t.KeyEnv)); err != nil {
			return err
		}
		if t.Name == "" {
			return at(entry, "a tenant has no name: add name")
		}
		for _, o := range r.Tenants {
			if o.Name == t.Name {
				return at(entry, "two tenants are called %q: give each a name of its own", t.Name)
			}
			if o.KeyEnv == t.KeyEnv {
				return at(entry, "tenants %q and %q have the same key_env: they would be one tenant", o.Name, t.Name)
			}
		}
		r.Tenants = append(r.Tenants, t)
		return nil
	})
}

func (r *Run) protocols(n *yaml.Node, known Known) *Error {
	return list(n, "protocols", func(_ int, entry *yaml.Node) *Error {
		var name string
		if err := str("protocols", &name).set(entry); err != nil {
			return err
		}
		if err := oneOf(entry, "protocol", known.Protocols); err != nil {
			return err
		}
		if slices.Contains(r.Protocols, name) {
			return at(entry, "protocol %q is named twice", name)
		}
		r.Protocols = append(r.Protocols, name)
		return nil
	})
}

func oneOf(n *yaml.Node, what string, names []string) *Error {
	if slices.Contains(names, n.Value) {
		return nil
	}
	if near := nearest(n.Value, names); near != "" {
		return at(n, "no %s %s: did you mean %q?", what, quoted(n), near)
	}
	return at(n, "no %s %s: choose of %s", what, quoted(n), strings.Join(names, ", "))
}
