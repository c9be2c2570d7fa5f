package receipt

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Policy says which witnesses are believed, and how many of them have to have
// cosigned a checkpoint: c2sp.org/tlog-policy.
type Policy struct {
	Witnesses []PolicyWitness
	// Logs are the public keys of logs that the policy is for; none for any.
	Logs []string

	quorum string // name of a witness or group; "" if none is needed
	groups map[string]group
}

// PolicyWitness is a witness of a policy.
type PolicyWitness struct {
	Name string // within the policy
	Key  *Witness
	URL  string // where it takes checkpoints; "" if the policy does not say
}

// group counts as one that has cosigned if need of its members have.
type group struct {
	need    int
	members []string
}

// maxPolicy bounds how many logs, witnesses and groups a policy has each.
const maxPolicy = 64

// ErrQuorum means that too few witnesses have cosigned.
var ErrQuorum = errors.New("too few witnesses have cosigned")

// PolicyOf is a policy that wants every one of some witnesses.
func PolicyOf(witnesses ...PolicyWitness) (*Policy, error) {
	p := &Policy{groups: map[string]group{}}
	var names []string
	for i, w := range witnesses {
		w.Name = fmt.Sprint("w", i)
		if err := p.add(w); err != nil {
			return nil, err
		}
		names = append(names, w.Name)
	}
	if len(names) == 0 {
		return nil, errors.New("a policy without a witness says nothing")
	}
	p.quorum = "all"
	p.groups["all"] = group{len(names), names}
	return p, nil
}

// ParsePolicy reads a policy file. Errors name the line.
func ParsePolicy(text string) (*Policy, error) {
	p := &Policy{groups: map[string]group{}}
	decided := false
	used := map[string]bool{} // names that are a member of a group
	for i, line := range strings.Split(text, "\n") {
		if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return nil, fmt.Errorf("line %d: has a control character", i+1)
		}
		f := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		var err error
		switch {
		case f[0] == "log" && (len(f) == 2 || len(f) == 3):
			err = p.addLog(f[1])
		case f[0] == "witness" && (len(f) == 3 || len(f) == 4):
			err = p.addLine(f[1:])
		case f[0] == "group" && len(f) >= 4:
			err = p.addGroup(f[1], f[2], f[3:], used)
		case f[0] == "quorum" && len(f) == 2 && !decided:
			decided = true
			err = p.decide(f[1])
		default:
			err = errors.New("is none of: log KEY [URL], witness NAME KEY [URL], group NAME all|any|N NAME..., quorum NAME (once)")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	if !decided {
		return nil, errors.New("has no quorum line: write quorum NAME of a witness or group, or quorum none")
	}
	return p, nil
}

func (p *Policy) addLog(line string) error {
	v, err := ParseVerifier(line)
	if err != nil {
		return err
	}
	for _, other := range p.Logs {
		if keyOf(other) == keyOf(v.text) {
			return errors.New("this log's key is there already")
		}
	}
	if len(p.Logs) == maxPolicy {
		return fmt.Errorf("more than %d logs", maxPolicy)
	}
	p.Logs = append(p.Logs, v.text)
	return nil
}

// keyOf is the key in a line name+hash+key, in base64 and with its type.
func keyOf(line string) string { return line[strings.LastIndexByte(line, '+')+1:] }

// addLine adds a witness as a line has it: name, key and perhaps an address.
func (p *Policy) addLine(f []string) error {
	key, err := ParseWitness(f[1])
	if err != nil {
		return err
	}
	w := PolicyWitness{Name: f[0], Key: key}
	if len(f) == 3 {
		w.URL = f[2]
	}
	return p.add(w)
}

func (p *Policy) add(w PolicyWitness) error {
	if err := p.free(w.Name); err != nil {
		return err
	}
	for _, other := range p.Witnesses {
		if other.Key.key.Equal(w.Key.key) {
			return fmt.Errorf("witness %q has the key of %q: it would count twice", w.Key.name, other.Key.name)
		}
	}
	if len(p.Witnesses) == maxPolicy {
		return fmt.Errorf("more than %d witnesses", maxPolicy)
	}
	if w.URL != "" {
		if err := checkURL(w.URL); err != nil {
			return err
		}
	}
	p.Witnesses = append(p.Witnesses, w)
	return nil
}

// checkURL takes addresses of witnesses, and none that holds a password: it
// would be shown with errors.
func checkURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("the witness's address is no http or https URL without user, query and fragment")
	}
	return nil
}

func (p *Policy) free(name string) error {
	_, isGroup := p.groups[name]
	if isGroup || p.witness(name) != nil || name == "none" {
		return fmt.Errorf("the name %q is taken", name)
	}
	return nil
}

func (p *Policy) witness(name string) *PolicyWitness {
	i := slices.IndexFunc(p.Witnesses, func(w PolicyWitness) bool { return w.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Witnesses[i]
}

func (p *Policy) known(name string) error {
	if _, isGroup := p.groups[name]; !isGroup && p.witness(name) == nil {
		return fmt.Errorf("no witness or group %q on the lines before", name)
	}
	return nil
}

// addGroup adds a group. used are the names that are in one already: a witness
// counts in one way only.
func (p *Policy) addGroup(name, need string, members []string, used map[string]bool) error {
	if err := p.free(name); err != nil {
		return err
	}
	g := group{members: members}
	switch need {
	case "any":
		g.need = 1
	case "all":
		g.need = len(members)
	default:
		n, err := strconv.Atoi(need)
		if err != nil || n < 1 || n > len(members) || strconv.Itoa(n) != need {
			return fmt.Errorf("of %d members %q is wanted: write all, any or a number from 1 to %d", len(members), need, len(members))
		}
		g.need = n
	}
	for _, m := range members {
		if err := p.known(m); err != nil {
			return err
		}
		if used[m] {
			return fmt.Errorf("%q is a member already: it would count twice", m)
		}
		used[m] = true
	}
	if len(p.groups) == maxPolicy {
		return fmt.Errorf("more than %d groups", maxPolicy)
	}
	p.groups[name] = g
	return nil
}

func (p *Policy) decide(name string) error {
	if name == "none" {
		return nil
	}
	p.quorum = name
	return p.known(name)
}

// keys are those of the witnesses; none of no policy.
func (p *Policy) keys() []*Witness {
	if p == nil {
		return nil
	}
	var out []*Witness
	for _, w := range p.Witnesses {
		out = append(out, w.Key)
	}
	return out
}

// For says why the policy is none for a log: it is for others, or the log
// would be its own witness.
func (p *Policy) For(v *Verifier) error {
	if p == nil {
		return nil
	}
	if len(p.Logs) > 0 && !slices.Contains(p.Logs, v.text) {
		return fmt.Errorf("the policy is for other logs, and not for %s with this key", v.Name())
	}
	for _, w := range p.Witnesses {
		if w.Key.isLog(v) {
			return fmt.Errorf("witness %q has the log's own key: nobody is a witness for himself", w.Key.name)
		}
	}
	return nil
}

// Met returns an error that wraps [ErrQuorum] and names who is missing, unless
// enough witnesses have cosigned. A nil policy wants nobody.
func (p *Policy) Met(by []Cosignature) error {
	if p == nil || p.quorum == "" {
		return nil
	}
	if p.counts(p.quorum, by) {
		return nil
	}
	var missing []string
	for _, w := range p.Witnesses {
		if !p.counts(w.Name, by) {
			missing = append(missing, w.Key.name)
		}
	}
	return fmt.Errorf("%w: %d of %d have, not %s", ErrQuorum, len(p.Witnesses)-len(missing), len(p.Witnesses), strings.Join(missing, ", "))
}

// counts reports whether a witness, or enough of a group, has cosigned. Groups
// name only what stands before them, so this ends.
func (p *Policy) counts(name string, by []Cosignature) bool {
	if w := p.witness(name); w != nil {
		return slices.ContainsFunc(by, func(c Cosignature) bool { return c.Witness == w.Key.name && c.hash == w.Key.hash })
	}
	g := p.groups[name]
	n := 0
	for _, m := range g.members {
		if p.counts(m, by) {
			n++
		}
	}
	return n >= g.need
}
