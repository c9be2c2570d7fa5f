package lab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/node"
	"github.com/kvcanary/kvcanary/internal/lab/prefix"
)

// Switch is a fault or a defence that can be switched on.
type Switch struct {
	Name    string
	Modes   []string // the first is the default; none if there is only one way
	Does    string   // one sentence
	Reports []string // public reports of it
	// OneSided says that a fault shows only where writes are one-sided.
	OneSided bool

	apply func(mode string, s *Settings)
}

// Settings are the switches of every part of the engine. The zero value is
// correct. Each part decides for itself which of its defences are on.
type Settings struct {
	Handoff handoff.Switches
	Prefix  prefix.Switches
	Gateway GatewaySettings
	Node    node.Switches
	IDs     IDSettings
	// Admission has the door look at the limits of both nodes. Without a fault
	// it is on.
	Admission bool
	Faulty    bool // a fault is on somewhere
}

// Faults are the known bug classes, one file each. A fault removes a check or
// an ordering; none of them copies text.
var Faults = []Switch{
	staleReserve, lateWrite, staleSource, earlyPublish, doubleOwner, thinKey, sharedPrefix, idReuse,
	dirtySlot, rowSkew, streamDesync, answerCache,
}

// Defences are measures against them, one file each. Without a fault most of
// them are on; with one, only those that are named and the cures of the others.
var Defences = []Switch{
	retire, zeroOnAlloc, coverage, quiesce, quiesceDeadline, generations, tags, checksum, checksumAbsent, uniqueIDs, liveIDs,
	salt, fullCompare, publishAfterCommit, blockTags, tierGenerations, tierChecksum,
	poisonConns, ownParsers, echoIDs, tenantKey, rowIDs, slotReset, slotTags, ownerAudit, admission,
}

// ParseFault finds the fault that "name" or "name:mode" means.
func ParseFault(spec string) (func(*Settings), error) { return parse("fault", Faults, spec) }

// ParseDefence finds the defence that "name" or "name:mode" means.
func ParseDefence(spec string) (func(*Settings), error) {
	return parse("defence", Defences, spec)
}

func parse(kind string, table []Switch, spec string) (func(*Settings), error) {
	name, mode, moded := strings.Cut(spec, ":")
	i := slices.IndexFunc(table, func(s Switch) bool { return s.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("unknown %s %q: use one of %s", kind, name, names(table))
	}
	s := table[i]
	switch {
	case !moded && len(s.Modes) > 0:
		mode = s.Modes[0]
	case moded && len(s.Modes) == 0:
		return nil, fmt.Errorf("%s %s has no modes: leave out %q", kind, name, ":"+mode)
	case moded && !slices.Contains(s.Modes, mode):
		return nil, fmt.Errorf("%s %s has no mode %q: use one of %s", kind, name, mode, strings.Join(s.Modes, ", "))
	}
	return func(to *Settings) { s.apply(mode, to) }, nil
}

func names(table []Switch) string {
	var all []string
	for _, s := range table {
		all = append(all, s.Name)
	}
	return strings.Join(all, ", ")
}
