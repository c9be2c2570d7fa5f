package lab

// GatewaySettings say how the gateway in front of the engine is built.
type GatewaySettings struct {
	Cache    CacheKind
	Faults   GatewayFaults
	Defences GatewayDefences // in addition to those that are on anyway
	// Faulty says that a fault is on somewhere: what would only notice is off
	// unless it is among Defences.
	Faulty bool
}

// CacheKind is what the gateway's cache takes for the same question.
type CacheKind string

// The kinds of cache. The empty one is none.
const (
	CacheExact    CacheKind = "exact"    // the same prompt
	CacheSemantic CacheKind = "semantic" // one that is much like it
)

// GatewayFaults is a set of faults of the gateway.
type GatewayFaults uint8

// The faults of the gateway.
const (
	// KeepCancelled uses a connection again whose last request was given up,
	// with its answer unread.
	KeepCancelled GatewayFaults = 1 << iota
	// GiveTwice has the buffer of a request that is given up made free twice:
	// by whoever gives it up and by whoever reads into it.
	GiveTwice
	// SharedParser has one parser for the streams of all connections.
	SharedParser
	// ForgetTenant leaves the tenant out of what kept answers are found by.
	ForgetTenant
	// SoftTenant makes it one feature of the prompt among many.
	SoftTenant
)

// GatewayDefences is a set of defences of the gateway.
type GatewayDefences uint8

// The defences of the gateway.
const (
	// PoisonConns hangs up on a connection whose request was given up.
	PoisonConns GatewayDefences = 1 << iota
	// OwnParsers has a parser for each stream, and a buffer that only its
	// reader makes free.
	OwnParsers
	// EchoIDs compares the name that each event of an answer carries.
	EchoIDs
	// BufferGenerations notices that a buffer was handed out again.
	BufferGenerations
	// TenantKey keeps answers apart by tenant.
	TenantKey
	// CompareTokens lets a kept answer be found only by the very same prompt.
	CompareTokens
)

// On is the set of all defences that are on.
func (s GatewaySettings) On() GatewayDefences {
	on := PoisonConns | OwnParsers | TenantKey
	if !s.Faulty {
		on |= EchoIDs | BufferGenerations
	}
	for _, c := range [...]struct {
		fault GatewayFaults
		cure  GatewayDefences
	}{
		{KeepCancelled, PoisonConns}, {GiveTwice | SharedParser, OwnParsers}, {ForgetTenant | SoftTenant, TenantKey},
	} {
		if s.Faults.Any(c.fault) {
			on &^= c.cure
		}
	}
	return on | s.Defences
}

// Any reports whether any of the faults in of is on.
func (f GatewayFaults) Any(of GatewayFaults) bool { return f&of != 0 }

// Any reports whether any of the defences in of is on.
func (d GatewayDefences) Any(of GatewayDefences) bool { return d&of != 0 }
