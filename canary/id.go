package canary

import "fmt"

// Bits of the parts of an [ID].
const (
	runBits    = 13
	tenantBits = 4
	seqBits    = 17
	idBits     = runBits + tenantBits + seqBits
)

// The largest values of the parts of an [ID].
const (
	MaxRun    = 1<<runBits - 1
	MaxTenant = 1<<tenantBits - 1
	MaxSeq    = 1<<seqBits - 1
)

// ID names one exchange: 34 bits, of which 13 name the run, 4 the tenant and
// 17 the exchange within the run.
type ID uint64

// MakeID puts an id together. It panics if a part is negative or over its
// maximum: ids that wrap around would make one exchange answer for another.
func MakeID(run, tenant, seq int) ID {
	if uint(run) > MaxRun || uint(tenant) > MaxTenant || uint(seq) > MaxSeq {
		panic(fmt.Sprintf("kvcanary: internal error: canary id out of range: run %d of %d, tenant %d of %d, seq %d of %d",
			run, MaxRun, tenant, MaxTenant, seq, MaxSeq))
	}
	return ID(run)<<(tenantBits+seqBits) | ID(tenant)<<seqBits | ID(seq)
}

// Run is the run that the exchange belongs to.
func (id ID) Run() int { return int(id >> (tenantBits + seqBits) & MaxRun) }

// Tenant is the number of the identity that the exchange was made under.
func (id ID) Tenant() int { return int(id >> seqBits & MaxTenant) }

// Seq is the number of the exchange within its run.
func (id ID) Seq() int { return int(id & MaxSeq) }

// String shows the parts of the id for people: run/tenant/seq.
func (id ID) String() string { return fmt.Sprintf("%d/%d/%d", id.Run(), id.Tenant(), id.Seq()) }

// check panics on a number that is no id.
func (id ID) check() {
	if id>>idBits != 0 {
		panic(fmt.Sprintf("kvcanary: internal error: %d is no canary id: it has more than %d bits", uint64(id), idBits))
	}
}
