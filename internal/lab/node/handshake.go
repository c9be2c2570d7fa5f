package node

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
)

// Version of the frames and of what the machines mean by them. Both ends of a
// link have the same one.
const Version = 3

// ErrHandshake is wrapped by all errors of a link that does not come about.
var ErrHandshake = errors.New("handshake refused")

// Greeting is what one end of a link says about itself.
type Greeting struct {
	Role  handoff.Role // what it is: ToRouter, ToPrefill or ToDecode
	Shape Shape
	Addr  string // where it listens for other nodes, or empty
	// Epoch numbers this acquaintance and Memory is the file of the pool that may
	// be written to: both decode's to prefill, else 0 and empty.
	Epoch  uint64
	Memory string

	version uint16
	nonce   [16]byte
}

const (
	magic        = "kvln"
	prefixBytes  = len(magic) + 2 + 2
	greetingSize = 1 + 16 + 4*4 + 1 + 8 + 1 + 2 // and the strings
	macBytes     = sha256.Size

	maxAddr = 255 // bytes
	maxPath = 4096
)

// Handshake greets the other end of conn and checks that both ends fit and
// know the same secret; the secret itself does not cross the wire. Deadlines
// are the caller's to set. It fails with ErrHandshake, naming both sides'
// values, or with an error of the connection.
func Handshake(conn net.Conn, me Greeting, secret []byte) (Greeting, error) {
	me.version = Version
	if _, err := rand.Read(me.nonce[:]); err != nil {
		return Greeting{}, err
	}
	return shake(conn, me, secret)
}

func shake(conn net.Conn, me Greeting, secret []byte) (Greeting, error) {
	mine, err := me.encode()
	if err != nil {
		return Greeting{}, err
	}
	// Both ends write first, and an unbuffered connection takes a write only
	// while the other end reads.
	wrote := make(chan error, 1)
	go func() { _, err := conn.Write(mine); wrote <- err }()
	theirs, err := readGreeting(conn)
	if err := firstOf(err, <-wrote); err != nil {
		return Greeting{}, err
	}
	peer, err := decodeGreeting(theirs)
	if err != nil {
		return Greeting{}, err
	}
	go func() { _, err := conn.Write(seal(secret, mine, theirs)); wrote <- err }()
	proof := make([]byte, macBytes)
	_, err = io.ReadFull(conn, proof)
	if err := firstOf(err, <-wrote); err != nil {
		return Greeting{}, err
	}
	if !hmac.Equal(proof, seal(secret, theirs, mine)) {
		return Greeting{}, fmt.Errorf("%w: %v does not know this engine's secret", ErrHandshake, peer.Role)
	}
	return peer, me.fits(peer)
}

// firstOf is the error of reading, which may say more than that of writing: a
// peer that is refused, or refuses, hangs up.
func firstOf(read, write error) error {
	switch {
	case read == nil && write == nil, errors.Is(read, ErrHandshake):
		return read
	case read == nil:
		read = write
	}
	return fmt.Errorf("%w: the other end hangs up: %w", ErrHandshake, read)
}

// seal proves that its writer knows the secret, for this connection and
// direction only.
func seal(secret, from, to []byte) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write(from)
	m.Write(to)
	return m.Sum(nil)
}

func (g Greeting) fits(peer Greeting) error {
	for _, c := range []struct {
		what         string
		here, theirs int
	}{
		{"page size", g.Shape.PageSize, peer.Shape.PageSize},
		{"bytes a page", g.Shape.PageBytes, peer.Shape.PageBytes},
		{"context", g.Shape.Context, peer.Shape.Context},
		{"pages", g.Shape.Pages, peer.Shape.Pages},
		{"one-sided writing", flag(g.Shape.OneSided), flag(peer.Shape.OneSided)},
	} {
		if c.here != c.theirs {
			return fmt.Errorf("%w: %s is %d here and %d at %v: start both with the same",
				ErrHandshake, c.what, c.here, c.theirs, peer.Role)
		}
	}
	if g.Role == peer.Role {
		return fmt.Errorf("%w: both ends are %v", ErrHandshake, peer.Role)
	}
	return nil
}

func flag(set bool) int {
	if set {
		return 1
	}
	return 0
}

func (g Greeting) encode() ([]byte, error) {
	if len(g.Addr) > maxAddr || len(g.Memory) > maxPath {
		return nil, fmt.Errorf("%w: an address of %d bytes or a path of %d is too long", ErrHandshake, len(g.Addr), len(g.Memory))
	}
	b := binary.LittleEndian.AppendUint16([]byte(magic), g.version)
	b = binary.LittleEndian.AppendUint16(b, uint16(greetingSize+len(g.Addr)+len(g.Memory)))
	b = append(append(b, byte(g.Role)), g.nonce[:]...)
	for _, v := range []int{g.Shape.PageSize, g.Shape.PageBytes, g.Shape.Context, g.Shape.Pages} {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	b = binary.LittleEndian.AppendUint64(append(b, byte(flag(g.Shape.OneSided))), g.Epoch)
	b = append(append(b, byte(len(g.Addr))), g.Addr...)
	return append(binary.LittleEndian.AppendUint16(b, uint16(len(g.Memory))), g.Memory...), nil
}

// readGreeting reads a greeting of this version; of another one it reads no
// more than the version.
func readGreeting(r io.Reader) ([]byte, error) {
	b := make([]byte, prefixBytes)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, fmt.Errorf("%w: the other end says nothing: %w", ErrHandshake, err)
	}
	if string(b[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: the other end is not a node of this lab", ErrHandshake)
	}
	if v := binary.LittleEndian.Uint16(b[len(magic):]); v != Version {
		return nil, fmt.Errorf("%w: version is %d here and %d at the other end: start both from the same program",
			ErrHandshake, Version, v)
	}
	b = append(b, make([]byte, min(int(binary.LittleEndian.Uint16(b[prefixBytes-2:])), greetingSize+maxAddr+maxPath))...)
	if _, err := io.ReadFull(r, b[prefixBytes:]); err != nil {
		return nil, fmt.Errorf("%w: the greeting is cut: %w", ErrHandshake, err)
	}
	return b, nil
}

func decodeGreeting(b []byte) (Greeting, error) {
	rest, ok := bytes.CutPrefix(b, []byte(magic))
	if !ok || len(rest) < 4+greetingSize || len(rest)-4 != int(binary.LittleEndian.Uint16(rest[2:])) {
		return Greeting{}, fmt.Errorf("%w: the greeting has %d bytes", ErrHandshake, len(b))
	}
	g := Greeting{version: binary.LittleEndian.Uint16(rest), Role: handoff.Role(rest[4])}
	r := reader{rest: rest[5:]}
	copy(g.nonce[:], r.take(len(g.nonce)))
	for _, p := range []*int{&g.Shape.PageSize, &g.Shape.PageBytes, &g.Shape.Context, &g.Shape.Pages} {
		*p = int(binary.LittleEndian.Uint32(r.take(4)))
	}
	oneSided := r.byte()
	g.Shape.OneSided, g.Epoch = oneSided == 1, r.uint64()
	g.Addr = string(r.take(int(r.byte())))
	g.Memory = string(r.take(int(binary.LittleEndian.Uint16(r.take(2)))))
	switch {
	case r.err != nil || len(r.rest) != 0 || oneSided > 1 || len(g.Memory) > maxPath:
		return Greeting{}, fmt.Errorf("%w: the greeting's parts do not make up its %d bytes", ErrHandshake, len(b))
	case g.Role != handoff.ToRouter && g.Role != handoff.ToPrefill && g.Role != handoff.ToDecode:
		return Greeting{}, fmt.Errorf("%w: the other end says it is %v", ErrHandshake, g.Role)
	}
	return g, nil
}
