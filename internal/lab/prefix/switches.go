package prefix

// Switches make the cache wrong or more careful. The zero value is correct.
//
// A fault takes away the check or ordering that is its cure. With any fault on,
// what would only notice it (tags, the checksum of the second tier) is off unless
// it is among Defences.
type Switches struct {
	Faults   Faults
	Defences Defences // in addition to those that are on anyway
	// Elsewhere says that another part of the engine has a fault, which this one
	// shall not notice by itself.
	Elsewhere bool
}

// Faults is a set of faults.
type Faults uint16

// The faults.
const (
	// NeverWritten lets a block be found from the moment that its prompt is
	// scheduled; one that is aborted leaves blocks that nobody has written.
	NeverWritten Faults = 1 << iota
	// LastSlot counts the first token of the answer as computed, so that a block
	// that ends with it is taken for whole: its last slot holds what was there.
	LastSlot
	// CopyRace copies a chunk's blocks when half of the chunk is computed.
	CopyRace
	// WeakHash keeps few bits of a key and does not compare tokens.
	WeakHash
	// OmitMedia leaves pictures out of the key, OmitAdapter the adapter.
	OmitMedia
	OmitAdapter
	// SharedPrefix leaves the tenant out of the key.
	SharedPrefix
	// SharedBlobs leaves it out in the second tier only.
	SharedBlobs
	// StaleBlob reads a blob where it once was, whatever is there now.
	StaleBlob
)

// EarlyPublish are the faults that publish what is not written.
const EarlyPublish = NeverWritten | LastSlot | CopyRace

// Defences is a set of defences.
type Defences uint16

// The defences.
const (
	// Salt begins keys with the tenant, in both tiers.
	Salt Defences = 1 << iota
	// SaltCacheOnly does so in the first tier and drops the tenant in the second.
	SaltCacheOnly
	// FullCompare compares the tokens of a block that was found, and all before it.
	FullCompare
	// AfterCommit lets a block be found only once all of it has been written.
	AfterCommit
	// BlobGenerations compare the number of a blob with the one that it was put
	// away under, before it is copied and after.
	BlobGenerations
	// TagsByWriter has who writes a block say whose it is (tenant, adapter,
	// pictures); compared when it is found.
	TagsByWriter
	// TagsAtReserve has the cache say so when it gives out the page.
	TagsAtReserve
	// ChecksumOfKey takes a checksum when a blob is put away and keeps it with the key.
	ChecksumOfKey
	// ChecksumOfHop keeps it with the blob: it fits whatever is there.
	ChecksumOfHop
	// ZeroOnAlloc clears a page when it is given to a block.
	ZeroOnAlloc
	// SaltByClient begins keys with what the client says, in both tiers: what
	// somebody else says too, or does not say either, keeps nobody apart.
	SaltByClient
)

const (
	salts  = Salt | SaltCacheOnly | SaltByClient
	tags   = TagsByWriter | TagsAtReserve
	sums   = ChecksumOfKey | ChecksumOfHop
	cures  = Salt | FullCompare | AfterCommit | BlobGenerations
	notice = TagsByWriter | ChecksumOfKey
)

// On is the set of all defences that are on.
func (s Switches) On() Defences {
	on := cures | notice
	if s.Faults != 0 || s.Elsewhere {
		on &^= notice
	}
	for _, c := range [...]struct {
		fault Faults
		cure  Defences
	}{
		{EarlyPublish, AfterCommit},
		{WeakHash, FullCompare | Salt},
		{OmitMedia | OmitAdapter | SharedPrefix, Salt}, // a salt keeps what a thin key mixes up within one tenant
		{StaleBlob, BlobGenerations},
	} {
		if s.Faults&c.fault != 0 {
			on &^= c.cure
		}
	}
	if s.Faults&SharedBlobs != 0 && on&Salt != 0 {
		on ^= Salt | SaltCacheOnly
	}
	for _, modes := range [...]Defences{salts, tags, sums} {
		if s.Defences&modes != 0 {
			on &^= modes
		}
	}
	return on | s.Defences
}

// Needed reports whether a fault is on that needs a cache to show.
func (s Switches) Needed() bool { return s.Faults != 0 }

// NeedsTier reports whether one is on that needs the second tier.
func (s Switches) NeedsTier() bool {
	return s.Faults&(StaleBlob|SharedBlobs) != 0 || s.Defences&SaltCacheOnly != 0
}

// Has reports whether any of the faults in f is on.
func (s Switches) Has(f Faults) bool { return s.Faults&f != 0 }

// Any reports whether any of the defences in of is on.
func (d Defences) Any(of Defences) bool { return d&of != 0 }
