package pagetag

import "encoding/binary"

// Size is the length of an encoded tag in bytes: one cache line.
const Size = 64

// DigestSize is the length of a digest in bytes.
const DigestSize = 16

// headerSize is the length of what stands before the digest and is bound by it.
const headerSize = Size - DigestSize

const flagComplete = 1

// Bytes encodes t. An absent tag is all zeros.
func (t *Tag) Bytes() (b [Size]byte) {
	if t.Strength == 0 {
		return b
	}
	header := t.header()
	copy(b[:], header[:])
	copy(b[headerSize:], t.Digest[:])
	return b
}

func (t *Tag) header() (b [headerSize]byte) {
	le := binary.LittleEndian
	b[0] = Version
	b[1] = byte(t.Strength)
	if t.Complete {
		le.PutUint16(b[2:], flagComplete)
	}
	le.PutUint32(b[4:], t.Index)
	le.PutUint32(b[8:], t.Length)
	le.PutUint32(b[12:], t.Space)
	le.PutUint64(b[16:], t.Epoch)
	le.PutUint64(b[24:], t.Tenant)
	le.PutUint64(b[32:], t.Request)
	le.PutUint64(b[40:], t.Generation)
	return b
}

// Parse decodes a tag. What it accepts, [Tag.Bytes] encodes to the same bytes.
// It refuses an absent tag as [Absent], and what it cannot wholly understand as
// [BadVersion] or [Malformed].
func Parse(b []byte) (Tag, error) {
	if len(b) != Size {
		return Tag{}, &Refusal{Class: Malformed}
	}
	switch b[0] {
	case Version:
	case 0:
		return Tag{}, &Refusal{Class: Absent}
	default:
		return Tag{}, &Refusal{Class: BadVersion, Got: uint64(b[0]), Want: Version}
	}
	le := binary.LittleEndian
	flags := le.Uint16(b[2:])
	t := Tag{
		Strength: Strength(b[1]),
		Complete: flags&flagComplete != 0,
		Place:    Place{Index: le.Uint32(b[4:]), Length: le.Uint32(b[8:])},
		Owner: Owner{
			Space: le.Uint32(b[12:]), Epoch: le.Uint64(b[16:]), Tenant: le.Uint64(b[24:]),
			Request: le.Uint64(b[32:]), Generation: le.Uint64(b[40:]),
		},
		Digest: [DigestSize]byte(b[headerSize:]),
	}
	undigested := t.Strength == OwnerOnly && t.Digest != [DigestSize]byte{}
	if flags&^flagComplete != 0 || !known(t.Strength) || t.Length > MaxLength || undigested {
		return Tag{}, &Refusal{Class: Malformed}
	}
	return t, nil
}
