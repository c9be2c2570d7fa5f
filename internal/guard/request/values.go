package request

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// meet is called before every value with its first byte, and reports whether
// it may be gone into.
func (m *machine) meet(c byte) bool {
	n := m.next
	if n == nil {
		return true
	}
	if n.opaque && c != 'n' {
		m.opaquePart()
	}
	if n.each && c != 'n' && c != '[' {
		m.opaqueOne()
	}
	if n.look != lookNothing {
		m.kind, m.value, m.over = c, m.value[:0], false
		if c == '{' || c == '[' {
			m.nested(n)
		} else {
			m.taking = true
		}
	}
	return m.refused == nil
}

// opaquePart counts the object at hand as one part, however many members say so.
func (m *machine) opaquePart() {
	if f := &m.stack[len(m.stack)-1]; !f.part {
		f.part = true
		m.opaqueOne()
	}
}

func (m *machine) opaqueOne() {
	if m.facts.Opaque++; m.p.MaxOpaque >= 0 && m.facts.Opaque > m.p.MaxOpaque {
		m.refuseAs(http.StatusBadRequest, CodeOpaque, "", "the body has more images, audio or files than "+strconv.Itoa(m.p.MaxOpaque)+
			": their tokens are not bounded by its bytes")
	}
}

// nested judges a value that is an object or a list.
func (m *machine) nested(n *node) {
	switch n.look {
	case lookRefuse:
		if m.kind == '[' && slices.Contains(n.unless, "[]") || m.kind == '{' && slices.Contains(n.unless, "{}") {
			return
		}
		m.refuseField(n)
	case lookModel:
		m.badValue(n, "must be a string")
	case lookStream:
		m.badValue(n, "must be true or false")
	case lookTokens:
		m.badValue(n, "must be a whole number")
	case lookType, lookStored:
		m.badValue(n, "must be a string")
	case lookURL:
		if !n.opaque && !n.each { // those that are hold an object with an address
			m.badValue(n, "must be a string")
		}
	}
}

// take keeps a piece of a value that is looked at.
func (m *machine) take(p []byte, closed bool) {
	if closed {
		p = p[:len(p)-1]
	}
	if room := maxScalar - len(m.value); len(p) > room {
		m.over, p = true, p[:room]
	}
	m.value = append(m.value, p...)
}

// endScalar ends a string, a number or a word.
func (m *machine) endScalar() {
	if m.taking {
		m.taking = false
		if m.kind != 'n' {
			m.judge(m.next)
		}
	}
	m.ended()
}

// judge looks at a whole value that is not null.
func (m *machine) judge(n *node) {
	switch n.look {
	case lookRefuse:
		if !m.passes(n.unless) {
			m.refuseField(n)
		}
	case lookModel:
		m.modelName(n)
	case lookStream:
		if m.kind != 't' && m.kind != 'f' {
			m.badValue(n, "must be true or false")
		}
		m.facts.Stream = m.kind == 't'
	case lookTokens:
		m.tokens(n)
	case lookType:
		m.partType(n)
	case lookKind:
		switch s, ok := m.string(); {
		case !ok:
		case opaqueTypes[string(s)]:
			m.opaquePart()
		case string(s) == "tool_reference":
			m.facts.References++
		}
	case lookURL:
		m.mediaURL(n)
	case lookStored:
		if !m.p.AllowStored {
			m.refuseStored(n.path)
		}
	case lookRole:
		m.role()
	case lookCalled:
		m.called(n)
	case lookTool:
		if s, ok := m.string(); !ok || !clientTools[string(s)] && !slices.ContainsFunc(clientToolsOf, func(p string) bool { return strings.HasPrefix(string(s), p) }) {
			m.opaquePart()
		}
	}
}

// role takes whose a message is: of a tool, if it is not one of those that speak.
func (m *machine) role() {
	s, _ := m.string()
	switch string(s) {
	case "user", "assistant", "system", "developer":
	default:
		m.facts.Results++
	}
}

// called takes the name of a tool that was called. Templates say it again with
// each answer of the tool, of which none need have it.
func (m *machine) called(n *node) {
	if m.kind != '"' {
		return
	}
	if m.over {
		m.badValue(n, "must have at most "+strconv.Itoa(maxScalar)+" bytes")
		return
	}
	long := len(m.value)
	if bytes.ContainsFunc(m.value, func(r rune) bool { return r >= utf8.RuneSelf || r == '\\' }) {
		long *= mostNormal
	}
	m.facts.Called = max(m.facts.Called, long)
}

// mostNormal is how many bytes any normalisation makes of one.
const mostNormal = 11

// passes reports whether the value is one of those that may stand.
func (m *machine) passes(unless []string) bool {
	if m.kind != '"' {
		return slices.Contains(unless, string(m.value))
	}
	s, ok := m.string()
	return ok && slices.ContainsFunc(unless, func(u string) bool { return u == `"`+string(s)+`"` })
}

// string is what a string says; ok is false for other values, and for one too
// long to be looked at.
func (m *machine) string() (s []byte, ok bool) {
	if m.kind != '"' || m.over {
		return nil, false
	}
	if bytes.IndexByte(m.value, '\\') < 0 {
		return m.value, true
	}
	m.scratch = unescape(m.scratch[:0], m.value)
	return m.scratch, true
}

func (m *machine) modelName(n *node) {
	s, ok := m.string()
	if !ok || len(s) > 512 || bytes.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 || r == utf8.RuneError }) {
		m.badValue(n, "must be a string of at most 512 bytes without control characters")
		return
	}
	if m.model != string(s) { // most often it is the last request's
		m.model = string(s)
	}
	m.facts.Model = m.model
}

// tokens takes a bound on the answer: a whole number that fits 31 bits. Ollama
// has -1 and -2 for no bound.
func (m *machine) tokens(n *node) {
	v, err := strconv.ParseInt(string(m.value), 10, 32)
	if m.kind == '"' || err != nil || string(m.value) == "-0" || v < -2 {
		m.badValue(n, "must be a whole number")
		return
	}
	m.facts.MaxTokens = max(m.facts.MaxTokens, int(v))
}

// partType takes the type of a part or of an item.
func (m *machine) partType(n *node) {
	s, ok := m.string()
	switch {
	case !ok:
		m.badValue(n, "must be a short string")
	case string(s) == "item_reference":
		if !m.p.AllowStored {
			m.refuseStored("input[]")
		}
	case !textTypes[string(s)]:
		m.opaquePart()
	case resultTypes[string(s)]:
		m.facts.Results++
	case string(s) == "tool_reference":
		m.facts.References++
	}
}

func (m *machine) refuseField(n *node) {
	m.refuseAs(http.StatusBadRequest, CodeFieldRefused, n.path, "a client may not set "+n.path+" ("+n.why+")")
}

func (m *machine) refuseStored(path string) {
	m.refuseAs(http.StatusBadRequest, CodeFieldRefused, path, "stored content may not be named: send it in the body")
}

func (m *machine) badValue(n *node, what string) {
	m.refuseAs(http.StatusBadRequest, CodeFieldInvalid, n.path, n.path+" "+what)
}
