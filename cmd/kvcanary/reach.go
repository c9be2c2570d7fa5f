package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/kvcanary/kvcanary/internal/campaign"
	"github.com/kvcanary/kvcanary/internal/config"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// reach is how a target is reached where a base URL and a key are not enough.
type reach struct {
	Header     []string `sep:"none" placeholder:"NAME=ENVVAR" help:"A header to send with every request, and the environment variable that holds its value. Repeat for more."`
	Query      []string `sep:"none" placeholder:"NAME=ENVVAR" help:"A query parameter to send with every request, and the environment variable that holds its value. Repeat for more."`
	CA         string   `name:"ca" placeholder:"FILE" help:"Certificate of an authority to trust besides those of the system, PEM."`
	ClientCert string   `name:"client-cert" placeholder:"FILE" help:"Certificate to show to the server, PEM."`
	ClientKey  string   `name:"client-key" placeholder:"FILE" help:"Key of that certificate, PEM."`
	Socket     string   `placeholder:"PATH" help:"Unix socket to connect to in place of the host; a base URL unix:///PATH says the same."`

	headers, query map[string]string // with their values: secrets
	tls            *tls.Config
}

// fill takes from the file what no flag says.
func (r *reach) fill(f *config.Run) {
	r.Header, r.Query = fromFile(r.Header, f.Headers), fromFile(r.Query, f.Query)
	r.CA, r.Socket = cmp.Or(r.CA, f.CA), cmp.Or(r.Socket, f.Socket)
	if r.ClientCert == "" && r.ClientKey == "" {
		r.ClientCert, r.ClientKey = f.ClientCert, f.ClientKey
	}
}

func fromFile(flags []string, file []config.Named) []string {
	for _, n := range file {
		if !slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix(strings.ToLower(f), strings.ToLower(n.Name)+"=") }) {
			flags = append(flags, n.Name+"="+n.Env)
		}
	}
	return flags
}

// load reads the values from the environment and the certificates from their
// files.
func (r *reach) load(s *session) (err error) {
	if r.headers, err = fromEnvironment(s, "--header", r.Header); err != nil {
		return err
	}
	if r.query, err = fromEnvironment(s, "--query", r.Query); err != nil {
		return err
	}
	r.tls, err = wire.LoadTLS(r.CA, r.ClientCert, r.ClientKey)
	var file *fs.PathError
	switch {
	case errors.As(err, &file):
		return unreachable(err)
	case err != nil:
		return exitError{exitUsage, err}
	}
	return nil
}

func fromEnvironment(s *session, flag string, pairs []string) (map[string]string, error) {
	out := map[string]string{}
	for _, p := range pairs {
		name, variable, ok := strings.Cut(p, "=")
		if !ok || name == "" || variable == "" {
			return nil, usageErrorf("%s %q: write NAME=ENVVAR, the name of an environment variable that holds the value", flag, name)
		}
		value := s.getenv(variable)
		if value == "" {
			return nil, usageErrorf("environment variable %s is not set: export it with the value of %s", variable, name)
		}
		out[name] = value
	}
	return out, nil
}

// options are those of a client for the target; "auto" and "" leave the dialect
// to the client.
func (c runCmd) options(dialect string) wire.Options {
	if dialect == "auto" {
		dialect = ""
	}
	return wire.Options{
		BaseURL: c.BaseURL, Dialect: dialect, Socket: c.Socket, TLS: c.tls,
		Headers: c.headers, Query: c.query, UserAgent: "kvcanary/" + version(),
	}
}

// speakChat are the engines that serve chat completions, whatever else they
// serve: with them no dialect needs to be found out.
var speakChat = []string{"sglang", "vllm", "dynamo", "trtllm", "tgi", "lmdeploy", "llamacpp", "ollama"}

// dialectOf finds out how the target speaks, unless it was said or is known of
// the engine, and takes what that cost off the budget.
func (c runCmd) dialectOf(s *session, cfg *campaign.Config, engineName string) (string, error) {
	const greetings, tokens = 8, 1000 // more than finding out may take
	b := &cfg.Budget
	switch {
	case c.Dialect != "auto":
		return c.Dialect, nil
	case slices.Contains(speakChat, engineName):
		return "openai", nil
	case b.Requests > 0 && b.Requests <= greetings || b.Tokens > 0 && b.Tokens <= tokens:
		fmt.Fprintln(s.stderr, "kvcanary: the budget leaves no room to find out the dialect, so openai is taken: say --dialect")
		return "openai", nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, greetPatience)
	defer cancel()
	d, err := wire.Detect(ctx, c.options(""), cfg.Tenants[0].Key, c.Model)
	cfg.Before = campaign.Before{Requests: d.Requests, Tokens: d.Tokens}
	var call *wire.CallError
	switch {
	case errors.As(err, &call) && ctx.Err() != nil:
		fmt.Fprintf(s.stderr, "kvcanary: no answer within %v that shows the dialect, so openai is taken: say --dialect\n", greetPatience)
		return "openai", nil
	case errors.As(err, &call):
		return "", unreachable(call)
	case err != nil: // what a run in the usual dialect ends with says more
		fmt.Fprintf(s.stderr, "kvcanary: %v\n", err)
		return "openai", nil
	}
	if d.Dialect != "openai" || d.Requests > 1 {
		fmt.Fprintf(s.stderr, "kvcanary: dialect %s: %s (%d requests, %d tokens to find out)\n", d.Dialect, d.Why, d.Requests, d.Tokens)
	}
	return d.Dialect, nil
}
