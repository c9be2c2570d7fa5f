package request

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/kvcanary/kvcanary/internal/guard/shape"
)

// Bounds of what is held at a time.
const (
	maxName    = 1 << 10 // bytes of a name, as it is written
	maxScalar  = 1 << 10 // bytes of a value that the guard looks at, as it is written
	maxNumber  = 64      // digits and signs of a number
	maxBlank   = 1 << 10 // white space that is held back together with what follows it
	deepestAny = 10_000  // bound on MaxDepth
)

// state is what may come next in the document.
type state uint8

const (
	atStart  state = iota // the top level's brace
	atValue               // a value
	atItem                // a value, or the end of a list that is empty so far
	atMember              // a name, or the end of an object that is empty so far
	atName                // a name
	atColon
	atAfter // a comma, or the end of the object or list
	inText  // inside a string that is a value
	atEnd   // white space
)

// frame is an object or a list that is open.
type frame struct {
	list  bool
	node  *node   // what the guard knows of it; nil for nothing
	names int     // where its names begin in machine.names
	set   nameSet // its names, once there are many
	count int     // its names
	kept  int     // members that were passed on
	part  bool    // counted as an opaque part
	anew  bool    // inside what a template writes anew
	seen  mark    // what it has, of what tells an item from a reference to one
}

// machine is the rewriter without its reader: a pushdown automaton over JSON
// that is fed the document in pieces and appends to out what may go on. Every
// byte that comes in goes out, or white space in its place.
type machine struct {
	p        Policy
	state    state
	stack    []frame
	root     *node
	next     *node // of the value that comes next; nil for one that does not matter
	inserted []byte
	own      []string // names of the members that the guard sets
	gap      bool     // a byte is due before the next name: a comma, or a space in its place
	dropping bool
	dropAt   int // depth of the member that is dropped

	out     []byte
	tail    []byte // the last brace and what follows it, held to the end
	taken   int64  // bytes of the document before those at hand
	names   []uint64
	open    int     // names of all open objects
	spare   nameSet // emptied, for the next object with many names
	scratch []byte
	folded  []byte

	taking bool   // the value is being looked at
	over   bool   // it is longer than what is looked at
	kind   byte   // its first byte
	value  []byte // as it is written, without quotes

	beyond int64 // bytes beyond ASCII in the piece of a string gone over last

	model   string // that was read last, also of an earlier body
	facts   Facts
	refused *Refused
}

func (m *machine) reset(p Policy) {
	if p.MaxDepth <= 0 {
		p.MaxDepth = 64
	}
	p.MaxDepth = min(p.MaxDepth, deepestAny)
	for _, f := range m.stack { // of a body that was left half read
		m.spareSet(f.set)
	}
	if cap(m.names) > 16*fewNames { // of a body that had more than its like
		m.names = nil
	}
	*m = machine{p: p, root: treeOf(p.Dialect), stack: m.stack[:0], inserted: m.inserted[:0], own: m.own[:0], out: m.out[:0],
		tail: m.tail[:0], names: m.names[:0], spare: m.spare, scratch: m.scratch[:0], folded: m.folded[:0], value: m.value[:0], model: m.model}
	m.facts.Stream = p.Dialect == "ollama"
	m.insert()
}

// insert writes the members that the guard sets, and a comma behind them, which
// becomes a space if nothing of the client's follows.
func (m *machine) insert() {
	if m.p.Counts {
		return
	}
	if m.p.Salt != "" {
		for _, name := range m.p.SaltFields {
			m.set(name, m.p.Salt, true)
		}
	}
	if m.p.RequestID != "" {
		for _, name := range m.p.RequestIDFields {
			m.set(name, m.p.RequestID, true)
		}
	}
	for _, s := range m.p.Set {
		m.set(s.Name, s.Value, false)
	}
	for _, s := range m.root.sets {
		if !(s.stored && m.p.AllowStored) && !slices.Contains(m.p.Allow, s.name) {
			m.set(s.name, s.value, false)
		}
	}
	if len(m.own) > 0 {
		m.inserted = append(m.inserted, ',')
	}
}

// set adds a member, text or JSON. Of two of one name the first stands.
func (m *machine) set(name, value string, text bool) {
	if slices.Contains(m.own, name) {
		return
	}
	if len(m.own) > 0 {
		m.inserted = append(m.inserted, ',')
	}
	m.own = append(m.own, name)
	m.inserted = append(appendQuoted(m.inserted, name), ':')
	if text {
		m.inserted = appendQuoted(m.inserted, value)
	} else {
		m.inserted = append(m.inserted, value...)
	}
}

// feed takes as much of in as can be understood without what follows it, at
// most all but a few bytes of a name, a number or an escape.
func (m *machine) feed(in []byte) (used int) {
	i := 0
	for i < len(in) && m.refused == nil {
		anew := m.anew()
		n := m.step(in, i)
		if n == 0 {
			break
		}
		if i += n; anew || m.anew() {
			m.facts.Structured += int64(n)
		}
	}
	m.taken += int64(i)
	return i
}

// anew reports whether the place is one of those that a template writes anew.
func (m *machine) anew() bool {
	return len(m.stack) > 0 && (m.stack[len(m.stack)-1].anew || m.state == inText && m.quoted()) && !m.dropping
}

// quoted reports whether the text at hand holds what a template writes anew.
func (m *machine) quoted() bool {
	return m.next != nil && m.next.quoted
}

// finish ends the document.
func (m *machine) finish() {
	if m.refused != nil {
		return
	}
	if m.state != atEnd {
		m.invalid(0, "it ends too early")
		return
	}
	m.out = append(m.out, m.tail...)
	m.facts.Known = true
}

// step takes the next token, or the next piece of a string, and returns its
// length; 0 if more is needed to tell.
func (m *machine) step(in []byte, i int) int {
	if m.state == inText {
		return m.text(in, i)
	}
	c := in[i]
	if c == ' ' || c == '\n' || c == '\r' || c == '\t' {
		return m.blank(in, i)
	}
	switch m.state {
	case atStart:
		if c != '{' {
			return m.notObject(in, i)
		}
		m.begin(c, i)
		return 1
	case atItem, atValue:
		if c == ']' && m.state == atItem {
			return m.close(in, i)
		}
		return m.startValue(in, i)
	case atMember, atName:
		if c == '}' && m.state == atMember {
			return m.close(in, i)
		}
		return m.name(in, i, i)
	case atColon:
		if c != ':' {
			return m.invalid(i, "a colon is missing")
		}
		m.put(in[i : i+1])
		m.state = atValue
		return 1
	case atAfter:
		return m.after(in, i)
	}
	return m.invalid(i, "something follows its end")
}

// blank passes white space on. Between a comma and a name it is held back with
// the comma, within bounds, so that what is not changed stays the same bytes.
func (m *machine) blank(in []byte, i int) int {
	j := i
	for j < len(in) && (in[j] == ' ' || in[j] == '\n' || in[j] == '\r' || in[j] == '\t') {
		j++
	}
	if (m.state == atName || m.state == atMember) && m.gap && j-i < maxBlank {
		if j == len(in) {
			return 0
		}
		if in[j] == '"' {
			return m.name(in, i, j)
		}
	}
	if m.state == atEnd && len(m.tail)+j-i < maxBlank {
		m.tail = append(m.tail, in[i:j]...)
	} else {
		m.put(in[i:j])
	}
	return j - i
}

// after takes what separates values.
func (m *machine) after(in []byte, i int) int {
	f := &m.stack[len(m.stack)-1]
	switch c := in[i]; {
	case c == ',' && f.list:
		m.put(in[i : i+1])
		m.state, m.next = atValue, f.node.item()
	case c == ',':
		m.state, m.gap = atName, true
	case c == ']' && f.list || c == '}' && !f.list:
		return m.close(in, i)
	default:
		return m.invalid(i, "a comma or a bracket is missing")
	}
	return 1
}

// put passes bytes on.
func (m *machine) put(p []byte) {
	if !m.dropping {
		m.out = append(m.out, p...)
		return
	}
	for range p {
		m.out = append(m.out, ' ')
	}
}

// putByte passes a byte on.
func (m *machine) putByte(c byte) {
	if m.dropping {
		c = ' '
	}
	m.out = append(m.out, c)
}

// begin opens an object or a list.
func (m *machine) begin(c byte, i int) int {
	if len(m.stack) >= m.p.MaxDepth {
		return m.invalid(i, fmt.Sprintf("objects and lists are more than %d deep", m.p.MaxDepth))
	}
	m.putByte(c)
	f := frame{list: c == '[', node: m.next, names: len(m.names)}
	if len(m.stack) == 0 {
		f.node = m.root
		m.out = append(m.out, m.inserted...)
		if n := len(m.own); n > 0 { // the comma at the end of it comes with the next name
			m.out = m.out[:len(m.out)-1]
			f.kept, m.gap = n, true
		}
	}
	if f.anew = f.node.isStructured() || m.anew(); f.anew {
		m.facts.Depth = max(m.facts.Depth, len(m.stack))
	}
	m.stack = append(m.stack, f)
	m.state, m.next = atMember, nil
	if f.list {
		m.state, m.next = atItem, f.node.item()
	}
	return 1
}

// close ends the innermost object or list.
func (m *machine) close(in []byte, i int) int {
	if m.gap { // only where nothing followed the guard's own members
		m.putByte(' ')
		m.gap = false
	}
	f := &m.stack[len(m.stack)-1]
	if f.seen&(markID|markBody) == markID && !m.p.AllowStored {
		m.refuseStored("input[]")
		return 0
	}
	m.names, m.open = m.names[:f.names], m.open-f.count
	m.spareSet(f.set)
	m.stack = m.stack[:len(m.stack)-1]
	if len(m.stack) == 0 {
		m.tail = append(m.tail, in[i])
		m.state = atEnd
		return 1
	}
	m.put(in[i : i+1])
	m.ended()
	return 1
}

// ended follows every value.
func (m *machine) ended() {
	if m.dropping && len(m.stack) == m.dropAt {
		m.dropping = false
	}
	m.state, m.next = atAfter, nil
}

// notObject says what stands in place of the document.
func (m *machine) notObject(in []byte, i int) int {
	switch c := in[i]; {
	case c == 0xEF || c == 0xFE || c == 0xFF || c == 0:
		return m.invalid(i, "it begins with a byte order mark, or is not UTF-8")
	case c == '[' || c == '"' || c == '-' || '0' <= c && c <= '9' || c == 't' || c == 'f' || c == 'n':
		return m.invalid(i, "it is not an object")
	}
	return m.invalid(i, "it is not JSON")
}

// invalid refuses a document that is not JSON, or not JSON that everybody
// reads alike.
func (m *machine) invalid(i int, what string) int {
	m.refuseAs(http.StatusBadRequest, CodeInvalid, "", "the body cannot be accepted: "+what+", at byte "+strconv.FormatInt(m.taken+int64(i), 10))
	return 0
}

// refuseAs keeps the first reason to refuse.
func (m *machine) refuseAs(status int, code, param, message string) {
	if m.refused == nil {
		m.refused = &Refused{shape.Error{Status: status, Code: code, Param: param, Message: message}}
	}
}
