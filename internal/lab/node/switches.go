package node

// Switches make what a node has beside its machine wrong or more careful: the
// batch that decode computes, the state that goes with a slot, the audit of
// page tables. The zero value is correct.
type Switches struct {
	Faults   Faults   `json:"faults,omitzero"`
	Defences Defences `json:"defences,omitzero"` // in addition to those that are on anyway
	// Faulty says that a fault is on somewhere: what would only notice is off
	// unless it is among Defences.
	Faulty bool `json:"faulty,omitzero"`
}

// Faults is a set of faults.
type Faults uint16

// The faults.
const (
	// RowSkew gives results back in an order of rows that is not the one they
	// were computed in.
	RowSkew Faults = 1 << iota
	// DirtyRecurrent clears the state in the slot that is next only when there is
	// nothing else to do.
	DirtyRecurrent
	// DirtyRestore takes a slot's prompt for restored when nothing matched.
	DirtyRestore
	// DirtyTail keeps what is behind the matching part of a slot's prompt, up
	// to the end of its page.
	DirtyTail
	// MetadataSlot has what ends a transfer be a write into a numbered slot, which
	// its next owner finds.
	MetadataSlot
)

// Defences is a set of defences.
type Defences uint16

// The defences.
const (
	// RowIDs compares whose a result is with whom it is given to.
	RowIDs Defences = 1 << iota
	// SlotReset clears what goes with a slot when it is given out, and keeps of
	// its prompt only what matches.
	SlotReset
	// ZeroSlots clears what a slot holds beside, as zeroing pages clears them.
	ZeroSlots
	// OwnerAudit looks for pages that are in two tables before each step.
	OwnerAudit
	// CompareRestored compares the prompt that a slot was restored with.
	CompareRestored
	// SlotTags has the record in a slot name its request, and compares that.
	SlotTags
	// DrainDeadline gives out pages that drain after a while, unasked.
	DrainDeadline
)

// On is the set of all defences that are on.
func (s Switches) On() Defences {
	on := RowIDs | SlotReset | SlotTags
	if !s.Faulty {
		on |= OwnerAudit
	}
	for _, c := range [...]struct {
		fault Faults
		cure  Defences
	}{{RowSkew, RowIDs}, {DirtyRecurrent | DirtyRestore | DirtyTail, SlotReset}, {MetadataSlot, SlotTags}} {
		if s.Faults&c.fault != 0 {
			on &^= c.cure
		}
	}
	return on | s.Defences
}

// Any reports whether any of the faults in of is on.
func (f Faults) Any(of Faults) bool { return f&of != 0 }

// Any reports whether any of the defences in of is on.
func (d Defences) Any(of Defences) bool { return d&of != 0 }
