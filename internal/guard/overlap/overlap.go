// Package overlap notices answers that carry a lot of what another tenant has
// sent, in one run or as pages in any order, without keeping what anybody has sent. Of recent prompts it holds
// keyed fingerprints in bounded memory, chosen by winnowing (Schleimer,
// Wilkerson and Aiken, 2003), so that each run of [Sure] letters that two texts
// share leaves one fingerprint in common at least.
//
// What it finds is a suspicion for people and no proof: a model may know the
// text by itself. Text that several tenants have sent, or that the model said
// before anybody had sent it, is nobody's and is not reported.
package overlap

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Kind is what a finding of this package is called. It is not a leak: that word
// is for what is proved.
const Kind = "overlap"

// Letters are what texts are compared by: bytes of ASCII letters, small and
// capital alike, and digits, and all bytes beyond ASCII. White space and
// punctuation are passed over.
const (
	gram   = 24 // letters of which a fingerprint is made
	window = 16 // runs of letters of which one is chosen

	// Sure is from how many letters on a run that two texts share leaves a
	// fingerprint in common.
	Sure = gram + window - 1
	// Least is the fewest letters that an Index can report.
	Least = Sure
)

// Bounds of what an index may take, bytes.
const (
	LeastMemory = 1 << 20
	MostMemory  = 64 << 30
)

// perPrint is what a fingerprint takes, bytes: its entry, and two places in the
// table by which it is found.
const perPrint = 24

// Options make an [Index].
type Options struct {
	Memory  int           // bytes that the fingerprints take, from the start on
	Keep    time.Duration // how long a text is remembered after it was sent last; a second at least
	Letters int           // so many in one stretch of an answer are reported; Least or more
	Key     [32]byte      // a secret: who has it can try texts against the fingerprints
	Start   time.Time     // from when on times are counted
}

// Index holds the fingerprints of what tenants have sent. It is safe for
// concurrent use.
type Index struct {
	o      Options
	roller roller
	block  cipher.Block

	mu    sync.Mutex
	table table
}

// New makes an empty index.
func New(o Options) (*Index, error) {
	switch {
	case o.Memory < LeastMemory || o.Memory > MostMemory:
		return nil, fmt.Errorf("the memory for overlap is %d bytes: choose from %d to %d", o.Memory, LeastMemory, MostMemory)
	case o.Letters < Least:
		return nil, fmt.Errorf("overlap of %d letters is to be reported: from %d on it can be seen", o.Letters, Least)
	case o.Keep < time.Second:
		return nil, errors.New("overlap keeps fingerprints for less than a second: choose a longer time")
	}
	block, err := aes.NewCipher(o.Key[:16])
	if err != nil {
		panic("kvcanary: internal error: " + err.Error())
	}
	return &Index{
		o: o, block: block, roller: newRoller(binary.LittleEndian.Uint64(o.Key[16:])), table: newTable(o.Memory/perPrint, seconds(o.Keep)),
	}, nil
}

// AlwaysFrom is from how many letters on one run is reported whatever stands
// around it, if it does not repeat itself: the ends of a run may lie between two
// fingerprints.
func (x *Index) AlwaysFrom() int { return x.o.Letters + 2*(window-1) }

// Tenant names a tenant within the index; it tells nobody without the key whose
// name it is.
func (x *Index) Tenant(name string) Tenant {
	m := hmac.New(sha256.New, x.o.Key[:])
	m.Write([]byte("kvcanary overlap\x00"))
	m.Write([]byte(name))
	return max(Tenant(binary.LittleEndian.Uint32(m.Sum(nil)))&^again, firstTenant)
}

// Tenant is who has sent a text: a keyed digest of 31 bits.
type Tenant uint32

// What an entry has in place of a tenant.
const (
	nobody      Tenant = iota // there is no such entry
	several                   // more than one tenant has sent it
	said                      // a model said it while nobody was known to have sent it
	firstTenant               // and all from here on are tenants
)

// at is a time as entries have it.
func (x *Index) at(now time.Time) uint32 { return seconds(now.Sub(x.o.Start)) }

func seconds(d time.Duration) uint32 {
	return uint32(min(max(int64(d/time.Second), 0), 1<<32-1))
}

// secret turns the choice of a sieve into a fingerprint: one block of AES, so
// that a table which gets out tells nothing without the key.
func (x *Index) secret(s *sieve, hash uint64) uint64 {
	s.block = [aes.BlockSize]byte{}
	binary.LittleEndian.PutUint64(s.block[:], hash)
	x.block.Encrypt(s.block[:], s.block[:])
	return binary.LittleEndian.Uint64(s.block[:])
}
