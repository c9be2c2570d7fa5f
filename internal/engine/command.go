package engine

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// Command is how an engine is started, as far as it is known.
type Command struct {
	Image string            // of its container, empty for none
	Args  []string          // the program and its arguments
	Env   map[string]string // what it finds in its environment
	At    string            // where it stands, for people: "deploy.yaml: prefill"
}

// setting takes the value of a flag, empty for a flag without one.
type setting func(f *Facts, value, source string)

// ReadCommand finds out which engine a command starts and what its flags and
// environment say. ok is false if it starts none that is known. Values of
// flags that say nothing about the pool are not kept.
func ReadCommand(c Command) (f Facts, ok bool) {
	e, ok := engineOf(c)
	if !ok {
		return Facts{}, false
	}
	f.Engine = e.Name
	if e.official(c.Image) {
		f.Version.set(tagOf(c.Image), c.At+": image")
	}
	bare := f
	for name, set := range e.environ {
		if value, given := c.Env[name]; given {
			set(&f, value, c.At+": "+name)
		}
	}
	complete := true // all that the engine is told stands here
	for i := e.startsAt(c.Args); i < len(c.Args); i++ {
		if e.isOpen(c.Args, i) {
			f, complete = bare, false // what stands there wins over what stood before
			continue
		}
		flag, value, glued, is := splitFlag(c.Args[i])
		complete = complete && !slices.Contains(settingsElsewhere, flag)
		set := e.setting(flag)
		if !is || set == nil {
			continue
		}
		if !glued && i+1 < len(c.Args) {
			if _, _, _, another := splitFlag(c.Args[i+1]); !another {
				value = c.Args[i+1]
			}
		}
		set(&f, value, c.At+": "+dashes(c.Args[i])+flagName(c.Args[i]))
	}
	f.Models = nil // a model's name may be a path of somebody's
	if e.defaults != nil && complete {
		e.defaults(&f)
	}
	f.infer()
	return f, true
}

// settingsElsewhere are flags that name a file with more settings: nothing is
// left to an engine's defaults that may stand there.
var settingsElsewhere = []string{"config", "extra-llm-api-options"}

// setting is what a flag means. Engines in Python take the beginning of a
// flag's name for it.
func (e *Engine) setting(flag string) setting {
	if set := e.flags[flag]; set != nil || len(flag) < 4 {
		return set
	}
	for _, name := range slices.Sorted(maps.Keys(e.flags)) {
		if strings.HasPrefix(name, flag) {
			return e.flags[name]
		}
	}
	return nil
}

// startsAt is where an engine's own arguments begin: at the word that names it.
func (e *Engine) startsAt(args []string) int {
	return max(0, slices.IndexFunc(args, func(arg string) bool {
		return slices.ContainsFunc(e.names, func(n string) bool { return startsEngine(arg, n) })
	}))
}

// isOpen reports whether a word is a variable that nobody has filled in and
// that can hold flags: one that stands by itself, or whose name says so.
func (e *Engine) isOpen(args []string, i int) bool {
	if i == 0 || !strings.HasPrefix(args[i], "$") || args[i-1] == "serve" {
		return false
	}
	flag, _, glued, is := splitFlag(args[i-1])
	if !is || glued {
		return true
	}
	name := strings.ToUpper(args[i])
	return e.setting(flag) == nil && slices.ContainsFunc([]string{"ARG", "OPT", "FLAG", "EXTRA", "PARAM", "$@", "$*"}, func(s string) bool { return strings.Contains(name, s) })
}

// official reports whether an image is the engine's own, or a mirror of it:
// the tag of another does not tell which release is in it.
func (e *Engine) official(image string) bool {
	image, _, _ = strings.Cut(image, "@")
	image = strings.TrimSuffix(image, ":"+tagOf(image))
	return slices.ContainsFunc(e.names, func(n string) bool {
		return strings.Contains(n, "/") && (image == n || strings.HasSuffix(image, "/"+n))
	})
}

// engineOf finds the engine that a command starts: by its words, then by its image.
func engineOf(c Command) (Engine, bool) {
	image, _, _ := strings.Cut(c.Image, "@")
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		image = image[:i]
	}
	for _, e := range All {
		for _, arg := range c.Args {
			for word := range strings.FieldsSeq(arg) {
				if slices.ContainsFunc(e.names, func(n string) bool { return startsEngine(word, n) }) {
					return e, true
				}
			}
		}
	}
	for _, e := range All {
		if slices.ContainsFunc(e.names, func(n string) bool { return image != "" && (strings.HasSuffix(image, n) || path.Base(image) == n) }) {
			return e, true
		}
	}
	return Engine{}, false
}

// startsEngine reports whether a word of a command is an engine's program or
// Python module: "vllm", "/usr/bin/llama-server", "sglang.launch_server".
func startsEngine(word, name string) bool {
	base := path.Base(word)
	return base == name || strings.HasPrefix(base, name+".") && !strings.Contains(word, "/")
}

// splitFlag takes "--context-length=4096" apart. Underscores are dashes.
func splitFlag(arg string) (flag, value string, glued, is bool) {
	if len(arg) < 2 || arg[0] != '-' || arg[1] >= '0' && arg[1] <= '9' {
		return "", "", false, false
	}
	flag = strings.TrimLeft(arg, "-")
	flag, value, glued = strings.Cut(flag, "=")
	if flag == "" {
		return "", "", false, false
	}
	return strings.ReplaceAll(flag, "_", "-"), value, glued, true
}

func flagName(arg string) string {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return name
}

func dashes(arg string) string { return arg[:len(arg)-len(strings.TrimLeft(arg, "-"))] }

// tagOf is the version that an image's tag names, empty if it names none.
func tagOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	i := strings.LastIndexByte(image, ':')
	if i < 0 || i < strings.LastIndexByte(image, '/') {
		return ""
	}
	tag := image[i+1:]
	if len(tag) > maxWord || !strings.ContainsAny(tag, "0123456789") || strings.Contains(tag, "latest") {
		return ""
	}
	return tag
}

func number(field func(*Facts) *Number) setting {
	return func(f *Facts, value, source string) {
		*field(f) = Number{} // the last one counts, also where it cannot be read
		if n := parseSize(value); n > 0 {
			*field(f) = Number{Value: int(n), Source: source, Basis: Stated}
		}
	}
}

// atMost is a number that an engine lowers to what it finds memory for.
func atMost(field func(*Facts) *Number) setting {
	set := number(field)
	return func(f *Facts, value, source string) {
		set(f, value, source)
		field(f).AtMost = field(f).Value > 0
	}
}

func text(field func(*Facts) *Text) setting {
	return func(f *Facts, value, source string) {
		if len(value) <= maxWord {
			field(f).set(value, source)
		}
	}
}

// on is a flag that switches something on, unless it is given as "false".
func on(field func(*Facts) *Flag) setting {
	return func(f *Facts, value, source string) {
		o := parseOnOff(value)
		field(f).set(!o.known || o.on, source)
	}
}

// off is a flag that switches something off.
func off(field func(*Facts) *Flag) setting {
	return func(f *Facts, value, source string) {
		o := parseOnOff(value)
		field(f).set(o.known && !o.on, source)
	}
}

// tier is a flag that puts storage behind the pool.
func tier(name string) setting {
	return func(f *Facts, value, source string) {
		o := parseOnOff(value)
		f.addTier(name, !o.known || o.on, source)
	}
}

// addTier notes a tier, or that there is none as far as one is known.
func (f *Facts) addTier(name string, is bool, source string) {
	switch {
	case !is && f.Offload.Value == "":
		f.Offload.set("none", source)
	case !is || slices.Contains(strings.Split(f.Offload.Value, ","), name):
	case f.Offload.Value == "" || f.Offload.Value == "none":
		f.Offload.set(name, source)
	default:
		f.Offload.set(f.Offload.Value+","+name, f.Offload.Source+", "+source)
	}
}

// parseSize reads a count as engines take it on a command line: "131072",
// "128k" (thousands) or "128K" (1024).
func parseSize(s string) count {
	unit := count(1)
	if n := len(s); n > 1 {
		switch s[n-1] {
		case 'k':
			unit = 1000
		case 'K':
			unit = 1 << 10
		case 'm':
			unit = 1_000_000
		case 'M':
			unit = 1 << 20
		}
		if unit > 1 {
			s = s[:n-1]
		}
	}
	return times(parseCount(s), unit)
}

// orDefault makes a flag known that nothing was said about.
func (f *Flag) orDefault(on bool, source string) {
	if !f.Known {
		*f = Flag{true, on, source, Inferred}
	}
}

func (t *Text) orDefault(w, source string) {
	if t.Value == "" {
		*t = Text{w, source, Inferred}
	}
}
