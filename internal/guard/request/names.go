package request

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"
)

const (
	fewNames = 48      // of an object, that are compared one by one
	maxNames = 1 << 16 // of all objects that are open at a time
)

// nameSet holds the hashes of an object's names. Two names with the same hash
// are refused as if they were the same, which a client can only do to itself.
type nameSet map[uint64]struct{}

// name takes the name of a member, with the white space before it that begins
// at in[from], and decides what becomes of the member.
func (m *machine) name(in []byte, from, i int) int {
	if in[i] != '"' {
		return m.noName(in, i)
	}
	end, closed := m.characters(in, i+1)
	switch {
	case m.refused != nil:
		return 0
	case end-i > maxName:
		return m.invalid(i, fmt.Sprintf("a name is longer than %d bytes", maxName))
	case !closed:
		return 0
	}
	m.facts.Wide += m.beyond
	name := in[i+1 : end-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		m.scratch = unescape(m.scratch[:0], name)
		name = m.scratch
	}
	f := &m.stack[len(m.stack)-1]
	drop := m.member(f, name, i)
	if m.refused != nil {
		return 0
	}
	m.pass(f, in[from:end], drop)
	m.state = atColon
	return end - from
}

// pass writes a name, or white space in its place, and what stands between it
// and the member before.
func (m *machine) pass(f *frame, p []byte, drop bool) {
	if m.gap {
		m.gap = false
		if drop || f.kept == 0 {
			m.putByte(' ')
		} else {
			m.putByte(',')
		}
	}
	if drop && !m.dropping {
		m.dropping, m.dropAt = true, len(m.stack)
	}
	m.put(p)
	if !drop {
		f.kept++
	}
}

// member looks a name up, sets what the guard knows of the value, and reports
// whether the member is to be dropped.
func (m *machine) member(f *frame, name []byte, i int) (drop bool) {
	m.next = nil
	n := f.node
	if n == nil {
		m.unique(f, name, i)
		return false
	}
	plain := fold(&m.folded, name)
	if n.fold {
		m.unique(f, plain, i)
	} else {
		m.unique(f, name, i)
	}
	child := n.known[string(plain)]
	switch {
	case child == nil && len(m.stack) == 1 && m.isOwn(plain, name):
		return m.refused == nil
	case child == nil:
		if m.p.RefuseUnknown && len(m.stack) == 1 {
			m.refuseAs(http.StatusBadRequest, CodeFieldRefused, string(name), "the field is not known, and unknown fields are refused")
		}
		m.next = n.rest
		return false
	case child.name != string(name) && n.fold:
		m.refuseAs(http.StatusBadRequest, CodeFieldRefused, child.path, "the field is written in other letters than "+child.name)
		return false
	case child.name != string(name):
		m.next = n.rest
		if child.opaque {
			m.next = child
		}
		return false
	}
	if len(m.stack) == 1 && slices.Contains(m.own, child.name) {
		m.changed(child.path)
		if child.look == lookRefuse { // replaced, but not where it asks for the opposite
			m.next = child
		}
		return true
	}
	if child.allowed != nil && m.lets(child) {
		child = child.allowed
	}
	if child.drop {
		m.changed(child.path)
		return true
	}
	f.seen |= child.mark
	m.next = child
	return false
}

// lets reports whether the policy has a row of the table not acted on.
func (m *machine) lets(n *node) bool {
	return n.stored && m.p.AllowStored || slices.Contains(m.p.Allow, n.path)
}

// isOwn reports whether the guard sets a member of this name, though its table
// does not have it.
func (m *machine) isOwn(plain, name []byte) bool {
	for _, own := range m.own {
		switch {
		case own == string(name):
			m.changed(own)
			return true
		case len(own) == len(plain) && strings.EqualFold(own, string(plain)):
			m.refuseAs(http.StatusBadRequest, CodeFieldRefused, own, "the field is written in other letters than "+own)
			return true
		}
	}
	return false
}

// changed notes that a field was taken out or replaced.
func (m *machine) changed(path string) {
	if i, found := slices.BinarySearch(m.facts.Changed, path); !found {
		m.facts.Changed = slices.Insert(m.facts.Changed, i, path)
	}
}

// unique refuses a second member of the same name: of two, one parser takes the
// first and another the last.
func (m *machine) unique(f *frame, name []byte, i int) {
	h := xxh3.Hash(name)
	twice := false
	if f.set != nil {
		_, twice = f.set[h]
		f.set[h] = struct{}{}
	} else {
		twice = slices.Contains(m.names[f.names:], h)
		m.names = append(m.names, h)
	}
	f.count++
	m.open++
	switch {
	case twice:
		m.invalid(i, "an object has two members of one name")
	case m.open > maxNames:
		m.invalid(i, fmt.Sprintf("objects have more than %d members", maxNames))
	case f.set == nil && f.count >= fewNames:
		f.set, m.spare = m.spare, nil
		if f.set == nil {
			f.set = make(nameSet, 4*fewNames)
		}
		for _, h := range m.names[f.names:] {
			f.set[h] = struct{}{}
		}
		m.names = m.names[:f.names]
	}
}

// spareSet keeps a set for the next object that needs one, unless it has grown
// large: a map never gives its memory back.
func (m *machine) spareSet(s nameSet) {
	if s != nil && len(s) <= 16*fewNames {
		clear(s)
		m.spare = s
	}
}

// noName says what stands in place of a name.
func (m *machine) noName(in []byte, i int) int {
	switch c := in[i]; {
	case c == '/' || c == '#':
		return m.invalid(i, "it has a comment")
	case c == '\'':
		return m.invalid(i, "a string stands in single quotes")
	case c == '}' || c == ',':
		return m.invalid(i, "a comma is too many")
	}
	return m.invalid(i, "a name is missing")
}

// fold writes a name in small letters, as decoders that match names without
// regard to case compare them: the long s and the Kelvin sign are s and k to
// them, too. A name that is in small letters is returned as it is.
func fold(buf *[]byte, name []byte) []byte {
	i := 0
	for i < len(name) && name[i] < 0x80 && (name[i] < 'A' || name[i] > 'Z') {
		i++
	}
	if i == len(name) {
		return name
	}
	out := append((*buf)[:0], name[:i]...)
	for i < len(name) {
		switch c := name[i]; {
		case 'A' <= c && c <= 'Z':
			out = append(out, c|0x20)
		case bytes.HasPrefix(name[i:], []byte("\u017f")):
			out = append(out, 's')
			i++
		case bytes.HasPrefix(name[i:], []byte("\u212a")):
			out = append(out, 'k')
			i += 2
		default:
			out = append(out, c)
		}
		i++
	}
	*buf = out
	return out
}
