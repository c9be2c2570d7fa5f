package request

import (
	"slices"
	"strings"
)

// mark says that an item has a member.
type mark uint8

const (
	markID   mark = 1 << iota // id, which alone names an item that is stored
	markBody                  // anything that makes it an item of its own
)

// look is why a value is looked at.
type look uint8

const (
	lookNothing look = iota
	lookRefuse       // it is refused, unless it is one that passes
	lookModel
	lookStream
	lookTokens // a bound on the answer's tokens
	lookType   // the type of a part of a prompt
	lookKind   // the type of an object deep inside one
	lookURL    // where media come from
	lookStored // the id of a file that is stored
	lookRole   // whose a message is
	lookCalled // the name of a tool that is called
	lookTool   // the type of a tool
)

// node is a place in the body that the guard knows.
type node struct {
	name string // as it is written
	path string

	look   look
	unless []string
	why    string
	drop   bool // the member is taken out
	stored bool // it names what the server keeps
	// allowed is what stands here where the policy has the row of the table not
	// acted on; nil for a place without a row.
	allowed *node
	opaque  bool // tokens that bytes do not bound are behind it
	each    bool // the same of every item of it
	mark    mark // of the object around it
	// structured is what a chat template writes anew, and may spread out.
	structured bool
	quoted     bool // a text here is that, too: it holds JSON

	fold  bool             // names are matched without regard to case, and variants refused
	known map[string]*node // members, by name in small letters
	rest  *node            // every other member
	elem  *node            // items of a list
	sets  []set            // of the top level: what the guard puts in
}

// item is the place of a list's items.
func (n *node) item() *node {
	if n == nil {
		return nil
	}
	return n.elem
}

// isStructured reports whether a template writes anew what stands here.
func (n *node) isStructured() bool { return n != nil && n.structured }

// idle says that nothing is done about a value here that holds no others.
func (n *node) idle() bool {
	return n == nil || n.look == lookNothing && !n.opaque && !n.each
}

func (n *node) child(name string) *node {
	if n.known == nil {
		n.known = map[string]*node{}
	}
	key := strings.ToLower(name)
	if n.known[key] == nil {
		path := name
		if n.path != "" {
			path = n.path + "." + name
		}
		n.known[key] = &node{name: name, path: path}
	}
	return n.known[key]
}

// trees are the places of each dialect.
var trees = func() map[string]*node {
	all := map[string]*node{}
	for _, d := range []string{"openai", "completions", "responses", "anthropic", "ollama"} {
		all[d] = plant(d)
	}
	return all
}()

// treeOf is the tree of a dialect, of OpenAI's for one that is not known.
func treeOf(dialect string) *node {
	if t := trees[dialect]; t != nil {
		return t
	}
	return trees["openai"]
}

// looked are the fields of every dialect that become facts.
var looked = map[string]look{"model": lookModel, "stream": lookStream, "max_tokens": lookTokens, "max_completion_tokens": lookTokens,
	"max_output_tokens": lookTokens, "max_new_tokens": lookTokens, "max_tokens_to_sample": lookTokens, "n_predict": lookTokens}

func plant(dialect string) *node {
	root := &node{fold: true, sets: sets[dialect]}
	for _, name := range known[dialect] {
		root.child(name)
	}
	for name, l := range looked {
		root.child(name).look = l
	}
	if dialect == "ollama" {
		root.child("options").child("num_predict").look = lookTokens
	}
	plantPrompts(root)
	for _, f := range Table {
		if f.Dialects == nil || slices.Contains(f.Dialects, dialect) {
			root.add(f)
		}
	}
	for _, s := range root.sets {
		root.child(s.name)
	}
	return root
}

// add makes a row of the table a place of the tree.
func (n *node) add(f Field) {
	for step := range strings.SplitSeq(f.Path, ".") {
		name, list := strings.CutSuffix(step, "[]")
		n.fold = true
		if n = n.child(name); list {
			if n.elem == nil {
				n.elem = &node{path: n.path + "[]"}
			}
			n = n.elem
		}
	}
	n.path = f.Path
	before := *n
	n.allowed, n.stored, n.why = &before, f.Stored, f.Why
	if f.Do == Strip {
		n.drop = true
		return
	}
	n.look, n.unless = lookRefuse, f.Unless
	n.known, n.rest, n.elem = nil, nil, nil
	if slices.Contains(f.Unless, "[]") { // an empty list passes, its first item does not
		n.elem = &node{name: n.name, path: n.path, look: lookRefuse, stored: f.Stored, why: f.Why}
	}
}
