// Package config reads configuration files strictly.
//
// A file is a tree of named fields and nothing else: what is not known, said
// twice or of the wrong kind is an error that names the place and the way out.
// No file ever holds a secret, only the names of environment variables that
// do; what looks like a key is refused, and not repeated in the message.
package config

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Error is what is wrong in a file, and where. Lines and columns count from 1;
// Column is 0 where only the line is known, both are for the file as a whole.
type Error struct {
	File         string
	Line, Column int
	Reason       string   // one line: what is wrong and what to do
	More         []*Error // what else is wrong, in the order of the file
}

// All are e and what else is wrong with the file.
func (e *Error) All() []*Error { return append([]*Error{e}, e.More...) }

// in names the file of all that is wrong in it.
func (e *Error) in(file string) *Error {
	for _, x := range e.All() {
		x.File = file
	}
	return e
}

// and joins what is wrong in two places; either may be nil.
func (e *Error) and(o *Error) *Error {
	switch {
	case e == nil:
		return o
	case o != nil && len(e.More) < maxWrong:
		e.More = append(e.More, o.All()...)
		o.More = nil
	}
	return e
}

// maxWrong bounds what is said of one file.
const maxWrong = 100

func (e *Error) Error() string {
	switch {
	case e.Line == 0:
		return e.File + ": " + e.Reason
	case e.Column == 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
}

// maxFile bounds a file, bytes: a configuration is written by hand.
const maxFile = 1 << 20

// field is one name that an object may hold, and what takes its value.
type field struct {
	name string
	set  func(*yaml.Node) *Error
}

// kind is what a file is about, for messages.
type kind struct {
	needs string // the field that no such file can do without
	one   string // what one file is
}

// parse returns the one document of a file.
func parse(b []byte, k kind) (*yaml.Node, *Error) {
	if len(b) > maxFile {
		return nil, &Error{Reason: fmt.Sprintf("more than %d bytes: is this a configuration?", maxFile)}
	}
	if line := tabbed(b); line > 0 {
		return nil, &Error{Line: line, Column: 1, Reason: "the line is indented with a tab: use spaces"}
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil || len(doc.Content) == 0 || isNull(doc.Content[0]) {
		if err != nil && err.Error() != "EOF" {
			return nil, syntaxError(err)
		}
		return nil, &Error{Reason: "nothing is written in it: it needs at least " + k.needs}
	}
	switch err := dec.Decode(&more); {
	case err == nil:
		return nil, &Error{Line: more.Line, Column: more.Column, Reason: "a second document begins: one file is " + k.one}
	case err.Error() != "EOF":
		return nil, syntaxError(err)
	}
	return doc.Content[0], nil
}

// tabbed is the first line that has a tab in its indentation, 0 for none.
func tabbed(b []byte) int {
	n := 0
	for line := range bytes.Lines(b) {
		n++
		indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
		if len(bytes.TrimSpace(line)) > 0 && bytes.ContainsRune(indent, '\t') {
			return n
		}
	}
	return 0
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntaxError says what the parser says, with its line where it has one.
func syntaxError(err error) *Error {
	if strings.Contains(err.Error(), "unknown anchor") { // the parser repeats its name, whatever that is
		return &Error{Reason: noAnchors}
	}
	m := yamlLine.FindStringSubmatch(err.Error())
	e := &Error{Reason: "this is no YAML: " + yamlLine.ReplaceAllString(err.Error(), "")}
	if m != nil {
		e.Line, _ = strconv.Atoi(m[1])
	}
	return e
}

func at(n *yaml.Node, format string, args ...any) *Error {
	return &Error{Line: n.Line, Column: n.Column, Reason: fmt.Sprintf(format, args...)}
}

// object takes a mapping whose fields are those named and no others. what
// names it in messages.
func object(n *yaml.Node, what string, fields ...field) *Error {
	if err := pairs(n, what, func(key, value *yaml.Node) *Error {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == key.Value })
		if i < 0 {
			return unknown(key, what, fields)
		}
		return fields[i].set(value)
	}); err != nil {
		return err
	}
	return nil
}

// pairs calls f for each name and value of a mapping, in the order of the file.
func pairs(n *yaml.Node, what string, f func(key, value *yaml.Node) *Error) *Error {
	if err := plain(n); err != nil {
		return err
	}
	if isNull(n) {
		return at(n, "%s: nothing is written behind it: write its fields below it, or leave the line out", what)
	}
	if n.Kind != yaml.MappingNode {
		return at(n, "%s holds %s: write fields, each as name: value", what, kindOf(n))
	}
	seen := map[string]int{}
	var wrong *Error
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if err := name(key, what, seen); err != nil {
			wrong = wrong.and(err)
			continue
		}
		seen[key.Value] = key.Line
		wrong = wrong.and(f(key, value))
	}
	return wrong
}

// name takes the name of a field, once.
func name(key *yaml.Node, what string, seen map[string]int) *Error {
	if err := plain(key); err != nil {
		return err
	}
	if key.Tag == "!!merge" {
		return at(key, noAnchors)
	}
	if key.Kind != yaml.ScalarNode || key.Value == "" {
		return at(key, "%s: the name of a field must be a word", what)
	}
	if line := seen[key.Value]; line > 0 {
		return at(key, "%s is given twice: first in line %d", quoted(key), line)
	}
	return nil
}

// list calls f for each entry of a sequence.
func list(n *yaml.Node, what string, f func(i int, entry *yaml.Node) *Error) *Error {
	if err := plain(n); err != nil {
		return err
	}
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return at(n, "%s holds %s: write a list, each entry on a line of its own behind a dash", what, kindOf(n))
	}
	var wrong *Error
	for i, entry := range n.Content {
		wrong = wrong.and(f(i, entry))
	}
	return wrong
}

const noAnchors = "anchors and aliases are not taken: write the value out"

// plain refuses what hides a value behind another one or changes its kind.
func plain(n *yaml.Node) *Error {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return at(n, noAnchors)
	case n.Style&yaml.TaggedStyle != 0:
		return at(n, "tags are not taken: write the value without %s", n.Tag)
	}
	return nil
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// kindOf is what stands at a node, in words.
func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "fields"
	case n.Kind == yaml.SequenceNode && len(n.Content) == 0:
		return "an empty list"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "nothing"
	}
	return map[string]string{
		"!!int": "a number", "!!float": "a number with a fraction", "!!bool": "true or false", "!!timestamp": "a date",
	}[n.Tag] + map[bool]string{true: "text"}[n.Tag == "!!str" || n.Tag == "!!binary"]
}

// quoted is a name as messages show it: short, and not if it may be a key.
func quoted(n *yaml.Node) string {
	if looksSecret(n.Value) {
		return "a name that looks like a key"
	}
	s := n.Value
	if len(s) > 40 {
		s = strings.ToValidUTF8(s[:40], "") + "..."
	}
	return strconv.Quote(s)
}
