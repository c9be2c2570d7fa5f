package handoff

import (
	"fmt"
	"slices"
	"strings"
)

// Switches make the machines wrong or more careful. The zero value is correct.
//
// A fault takes away the check or ordering that is its cure. With any fault on,
// everything that would notice it (coverage, generations, tags) is off too
// unless it is among Defences: that is an engine which has the bug and adopts
// the defences that are named. The cures of other faults stay.
type Switches struct {
	Faults   Faults   `json:"faults,omitzero"`
	Defences Defences `json:"defences,omitzero"` // in addition to those that are on anyway
	Without  Defences `json:"without,omitzero"`  // of those that are on anyway
}

// Faults is a set of faults.
type Faults uint16

// The faults.
const (
	// StaleReserve lets a prompt that prefill refuses live on as a placeholder
	// of one token whose pending refusal nobody looks at, while decode has
	// reserved pages for all of it and takes any transfer for a whole one.
	StaleReserve Faults = 1 << iota
	// DecodeUsage, with StaleReserve, reports the prompt's length as decode
	// knows it. Otherwise the answer's usage is what prefill has counted.
	DecodeUsage
	// LateWrite frees the pages of a request that ends before its transfer,
	// while writes to them may still land.
	LateWrite
	// StaleSource frees prefill's pages as soon as their writes have begun,
	// while writes still read them.
	StaleSource
	// DoubleOwner frees the pages of an aborted answer, and again when the step
	// that it was aborted in comes back, without looking.
	DoubleOwner
	// IDReuse makes the client's own request id the room.
	IDReuse
	// OtherAbort is StaleReserve for what prefill refuses for another reason than
	// its length, which is looked at before.
	OtherAbort
)

// Defences is a set of defences.
type Defences uint16

// The defences.
const (
	// Retire makes both doors honour a pending refusal before anything is
	// reserved or sent.
	Retire Defences = 1 << iota
	// ZeroOnAlloc clears pages when they are given to a room.
	ZeroOnAlloc
	// Coverage compares what was sent with what was reserved.
	Coverage
	// QuiesceFirst keeps the pages of a request that ends before its transfer from
	// everybody until prefill says that no write to them is under way.
	QuiesceFirst
	// Generations compare the reservation that a page was given out under with
	// the one that it is written, sent or read for.
	Generations
	// TagsAtReserve has decode tag pages when it gives them out; they are
	// compared before they are read.
	TagsAtReserve
	// TagsByWriter has whoever writes a page tag it, likewise.
	TagsByWriter
	// ChecksumSender sends a checksum of what prefill has sent, and decode
	// compares that much.
	ChecksumSender
	// ChecksumReceiver compares it with all that decode has reserved.
	ChecksumReceiver
	// AbsentSkipped leaves the checksum out for a prompt that prefill has
	// refused, and compares nothing then. Without another mode it is that of
	// ChecksumReceiver.
	AbsentSkipped
	// AbsentRefused leaves it out likewise, and refuses.
	AbsentRefused
	// UniqueIDs numbers rooms, none of them twice.
	UniqueIDs
)

const (
	tags      = TagsAtReserve | TagsByWriter
	checksums = ChecksumSender | ChecksumReceiver
	absent    = AbsentSkipped | AbsentRefused

	// cures are orderings; the rest of base notices.
	cures = Retire | QuiesceFirst | UniqueIDs
	base  = cures | Coverage | Generations | TagsByWriter
)

// On is the set of all defences that are on.
func (s Switches) On() Defences {
	on := base
	if s.Faults != 0 {
		on = cures
	}
	for _, c := range [...]struct {
		fault Faults
		cure  Defences
	}{{StaleReserve, Retire}, {LateWrite, QuiesceFirst}, {IDReuse, UniqueIDs}, {OtherAbort, Retire}} {
		if s.Faults&c.fault != 0 {
			on &^= c.cure
		}
	}
	if s.Defences&TagsAtReserve != 0 {
		on &^= TagsByWriter
	}
	on = on&^s.Without | s.Defences
	if on&absent != 0 && on&checksums == 0 {
		on |= ChecksumReceiver
	}
	return on
}

// Has reports whether any of the faults in f is on.
func (s Switches) Has(f Faults) bool { return s.Faults&f != 0 }

// Any reports whether any of the defences in of is on.
func (d Defences) Any(of Defences) bool { return d&of != 0 }

var faultNames = []string{
	"stale_reserve", "decode_usage", "late_write", "stale_source", "double_owner", "id_reuse", "other_abort",
}

var defenceNames = []string{
	"retire", "zero_on_alloc", "coverage", "quiesce", "generations", "tags:at_reserve", "tags:by_writer",
	"checksum:sender", "checksum:receiver", "checksum_absent:skip", "checksum_absent:reject", "unique_ids",
}

// String lists the names in the set.
func (f Faults) String() string { return nameSet(uint16(f), faultNames) }

// String lists the names in the set; "name:mode" where there are modes.
func (d Defences) String() string { return nameSet(uint16(d), defenceNames) }

// MarshalText lists the names.
func (f Faults) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// MarshalText lists the names.
func (d Defences) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads names with commas between them.
func (f *Faults) UnmarshalText(b []byte) error { return readSet((*uint16)(f), faultNames, "fault", b) }

// UnmarshalText reads names with commas between them.
func (d *Defences) UnmarshalText(b []byte) error {
	return readSet((*uint16)(d), defenceNames, "defence", b)
}

func nameSet(set uint16, names []string) string {
	var on []string
	for i, name := range names {
		if set&(1<<i) != 0 {
			on = append(on, name)
		}
	}
	return strings.Join(on, ",")
}

func readSet(to *uint16, names []string, what string, b []byte) error {
	*to = 0
	if len(b) == 0 {
		return nil
	}
	for name := range strings.SplitSeq(string(b), ",") {
		i := slices.Index(names, name)
		if i < 0 {
			return fmt.Errorf("unknown %s %q: use any of %s", what, name, strings.Join(names, ","))
		}
		*to |= 1 << i
	}
	return nil
}
