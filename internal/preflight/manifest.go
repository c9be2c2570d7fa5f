package preflight

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/kvcanary/kvcanary/internal/engine"
)

// Why a manifest cannot be read.
var (
	ErrTemplate = errors.New("this is a template: render it first (helm template, kustomize build)")
	ErrNoEngine = errors.New("no inference engine is started here")
)

const (
	maxManifest = 8 << 20 // bytes
	maxDepth    = 64      // maps and lists within each other
)

// ReadManifest finds the engines that a file starts: Kubernetes objects with a
// pod template anywhere in them, a compose file, a systemd unit, or a plain
// command line. Values of variables and flags that say nothing about KV are
// dropped, since they may be secrets.
func ReadManifest(name string, r io.Reader) ([]Worker, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxManifest+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case len(text) > maxManifest:
		return nil, fmt.Errorf("%s: longer than %d bytes: give the manifests of the engines alone", name, maxManifest)
	case bytes.Contains(text, []byte("{{")):
		return nil, fmt.Errorf("%s: %w", name, ErrTemplate)
	}
	var commands []engine.Command
	switch trimmed := strings.TrimSpace(string(text)); {
	case strings.HasPrefix(trimmed, "[Unit]") || strings.Contains(trimmed, "\n[Service]") || strings.HasPrefix(trimmed, "[Service]"):
		commands = readUnit(name, trimmed)
	case isCommandLine(trimmed):
		commands = readCommandLines(name, trimmed)
	default:
		if commands, err = readYAML(name, text); err != nil {
			return nil, err
		}
	}
	var out []Worker
	for _, c := range commands {
		if f, ok := engine.ReadCommand(c); ok {
			out = append(out, Worker{Name: c.At, Facts: f})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: %w", name, ErrNoEngine)
	}
	return out, nil
}

// readYAML reads all documents of a file.
func readYAML(name string, text []byte) ([]engine.Command, error) {
	var out []engine.Command
	d := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc any
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			hint := ""
			if bytes.Contains(text, []byte("\n\t")) {
				hint = " (YAML is indented with spaces, not tabs)"
			}
			return nil, fmt.Errorf("%s: %w%s", name, err, hint)
		}
		top := asMap(doc)
		at := name
		if kind := asString(top["kind"]); kind != "" {
			at += ": " + kind + " " + asString(asMap(top["metadata"])["name"])
		}
		if services := asMap(top["services"]); services != nil {
			out = append(out, compose(at, services)...)
		} else {
			out = append(out, containers(at, doc, 0)...)
		}
	}
}

// containers finds the containers of every pod template below a node.
func containers(at string, node any, depth int) []engine.Command {
	var out []engine.Command
	if depth > maxDepth {
		return nil
	}
	if list, ok := node.([]any); ok {
		for _, x := range list {
			out = append(out, containers(at, x, depth+1)...)
		}
	}
	m := asMap(node)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list, isList := m[key].([]any)
		if key != "containers" && key != "initContainers" || !isList {
			out = append(out, containers(at, m[key], depth+1)...)
			continue
		}
		for _, x := range list {
			c := asMap(x)
			env := map[string]string{}
			for _, e := range asList(c["env"]) {
				name := asString(asMap(e)["name"])
				env[name] = "$(" + name + ")" // from elsewhere, unless it stands here
				if value, here := asMap(e)["value"]; here {
					env[name] = asString(value)
				}
			}
			out = append(out, command(at+", container "+asString(c["name"]), asString(c["image"]), append(words(c["command"]), words(c["args"])...), env))
		}
	}
	return out
}

func compose(at string, services map[string]any) []engine.Command {
	var out []engine.Command
	for _, name := range slices.Sorted(maps.Keys(services)) {
		s := asMap(services[name])
		env := map[string]string{}
		for k, v := range asMap(s["environment"]) {
			env[k] = asString(v)
		}
		for _, e := range asList(s["environment"]) {
			k, v, _ := strings.Cut(asString(e), "=")
			env[k] = v
		}
		out = append(out, command(at+": service "+name, asString(s["image"]), append(words(s["entrypoint"]), words(s["command"])...), env))
	}
	return out
}

// command fills in what a shell or the kubelet would: "$(NAME)", "${NAME}" and
// the script of "sh -c".
func command(at, image string, args []string, env map[string]string) engine.Command {
	for i := range args {
		args[i] = expand(args[i], env)
	}
	var all []string
	for i, a := range args {
		if i > 0 && (args[i-1] == "-c" || args[i-1] == "-lc" || args[i-1] == "-ec") && strings.ContainsAny(a, " \n") {
			all = append(all, shellWords(a)...)
		} else {
			all = append(all, a)
		}
	}
	return engine.Command{Image: image, Args: all, Env: env, At: plain(at)}
}

// variable is a reference to one: "$(NAME)", "${NAME}" or "$NAME".
var variable = regexp.MustCompile(`\$\([A-Za-z_]\w*\)|\$\{[A-Za-z_]\w*\}|\$[A-Za-z_]\w*`)

// expand fills in the variables that are known.
func expand(arg string, env map[string]string) string {
	return variable.ReplaceAllStringFunc(arg, func(ref string) string {
		if value, known := env[strings.Trim(ref, "$(){}")]; known {
			return value
		}
		return ref
	})
}

// plain is a name of a manifest as it may be shown: its author may be anybody.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// readUnit reads ExecStart and Environment of a systemd unit.
func readUnit(name, text string) []engine.Command {
	env := map[string]string{}
	var starts [][]string
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch strings.TrimSpace(key) {
		case "Environment":
			for _, w := range shellWords(value) {
				k, v, _ := strings.Cut(w, "=")
				env[k] = v
			}
		case "ExecStart":
			starts = append(starts, shellWords(strings.TrimLeft(value, "-@:+! ")))
		}
	}
	var out []engine.Command
	for _, args := range starts {
		out = append(out, command(name, "", args, env))
	}
	return out
}

// isCommandLine reports whether a text is a command rather than YAML: its
// first line that says something names an engine's program.
func isCommandLine(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		_, ok := engine.ReadCommand(commandOf("", line))
		return ok && !strings.HasSuffix(strings.Fields(line)[0], ":")
	}
	return false
}

func readCommandLines(name, text string) []engine.Command {
	var out []engine.Command
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, commandOf(name, line))
		}
	}
	return out
}

// commandOf takes leading NAME=value words for the environment.
func commandOf(at, line string) engine.Command {
	args, env := shellWords(line), map[string]string{}
	for len(args) > 0 && strings.Contains(args[0], "=") && !strings.HasPrefix(args[0], "-") {
		k, v, _ := strings.Cut(args[0], "=")
		env[k], args = v, args[1:]
	}
	return command(at, "", args, env)
}

// shellWords splits a command line as a shell does, without expanding anything.
func shellWords(s string) []string {
	var out []string
	var word strings.Builder
	quote, started := rune(0), false
	flush := func() {
		if started {
			out = append(out, word.String())
			word.Reset()
			started = false
		}
	}
	escaped := false
	for _, r := range s {
		switch {
		case escaped:
			if escaped = false; r != '\n' {
				word.WriteRune(r)
				started = true
			}
		case r == '\\' && quote != '\'':
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, started = r, true
		case r == ' ' || r == '\t' || r == '\n' || r == '\r' || r == ';' || r == '&' || r == '|':
			flush()
		default:
			word.WriteRune(r)
			started = true
		}
	}
	flush()
	return out
}

func asMap(v any) map[string]any {
	if m, is := v.(map[any]any); is { // a key is no text: 8080, true
		out := map[string]any{}
		for k, v := range m {
			out[asString(k)] = v
		}
		return out
	}
	m, _ := v.(map[string]any)
	return m
}

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}

// asString is a scalar as it would be written.
func asString(v any) string {
	switch v.(type) {
	case nil, map[string]any, []any:
		return ""
	}
	return fmt.Sprint(v)
}

// words is a list of arguments, or a command line.
func words(v any) []string {
	if list, ok := v.([]any); ok {
		var out []string
		for _, x := range list {
			out = append(out, asString(x))
		}
		return out
	}
	return shellWords(asString(v))
}
