package receipt

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"
)

// The types of key that a name+hash+key line may hold: the byte before the key
// (c2sp.org/signed-note, c2sp.org/tlog-cosignature).
const (
	keyOfLog     = 0x01
	keyOfWitness = 0x04
	keyOfMLDSA   = 0x06
)

// Witness is the public key of somebody who cosigns checkpoints: Ed25519, with
// the time of signing in what is signed (c2sp.org/tlog-cosignature).
type Witness struct {
	name string
	hash uint32
	key  ed25519.PublicKey
}

// ParseWitness reads the public key of a witness, a line name+hash+key.
func ParseWitness(line string) (*Witness, error) {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "PRIVATE+KEY") {
		return nil, errors.New("this is a private key: a witness is known by its public one")
	}
	name, rest, _ := strings.Cut(line, "+")
	hash, encoded, _ := strings.Cut(rest, "+")
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(key) == 0 || !validName(name) {
		return nil, errors.New("this is no public key of a witness: it looks like name+hash+key")
	}
	switch {
	case key[0] == keyOfLog:
		return nil, fmt.Errorf("the key of %q signs checkpoints or notes (type 1) and is none that cosigns (type 4): ask the witness for that one", name)
	case key[0] == keyOfMLDSA:
		return nil, fmt.Errorf("the key of %q is of ML-DSA-44 (type 6), which cannot be checked here: ask the witness for its Ed25519 one (type 4)", name)
	case key[0] != keyOfWitness || len(key) != 1+ed25519.PublicKeySize:
		return nil, fmt.Errorf("the key of %q is of type %d and %d bytes, and a witness's of type 4 and %d", name, key[0], len(key)-1, ed25519.PublicKeySize)
	}
	w := &Witness{name, witnessHash(name, key[1:]), key[1:]}
	if hash != fmt.Sprintf("%08x", w.hash) {
		return nil, fmt.Errorf("the key of %q has another hash than it says: part of the line was changed", name)
	}
	return w, nil
}

// validName is what signed-note lets a key be called.
func validName(name string) bool {
	return name != "" && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '+' })
}

func witnessHash(name string, key []byte) uint32 {
	sum := sha256.Sum256(append(append([]byte(name+"\n"), keyOfWitness), key...))
	return binary.BigEndian.Uint32(sum[:])
}

// FormatWitness is the line that ParseWitness reads.
func FormatWitness(name string, key ed25519.PublicKey) string {
	return fmt.Sprintf("%s+%08x+%s", name, witnessHash(name, key), base64.StdEncoding.EncodeToString(append([]byte{keyOfWitness}, key...)))
}

// Name is what the witness calls itself.
func (w *Witness) Name() string { return w.name }

// KeyHash is the hash that its signatures carry.
func (w *Witness) KeyHash() uint32 { return w.hash }

// isLog reports whether w has the key of a log.
func (w *Witness) isLog(v *Verifier) bool {
	key, err := base64.StdEncoding.DecodeString(keyOf(v.text))
	return err == nil && len(key) > 0 && w.key.Equal(ed25519.PublicKey(key[1:]))
}

// cosignatureSize is that of a cosignature: its time and an Ed25519 signature.
const cosignatureSize = 8 + ed25519.SignatureSize

// Verify reports whether sig is a cosignature of w under the body of a checkpoint.
func (w *Witness) Verify(body, sig []byte) bool {
	if len(sig) != cosignatureSize {
		return false
	}
	at := binary.BigEndian.Uint64(sig)
	return at > 0 && at <= maxTime && ed25519.Verify(w.key, cosigned(at, body), sig[8:])
}

// maxTime is the last second that a year of four digits has: later ones could
// not be written.
const maxTime = 253402300799

// cosigned is what a witness signs at a time, in seconds since 1970.
func cosigned(at uint64, body []byte) []byte {
	return append([]byte("cosignature/v1\ntime "+strconv.FormatUint(at, 10)+"\n"), body...)
}

// Has reports whether a witness is among those who have cosigned, and the line
// that it signed with.
func (c *Checkpoint) Has(w *Witness) (line string, ok bool) {
	for _, x := range c.Cosigned {
		if x.Witness == w.name && x.hash == w.hash {
			return x.line, true
		}
	}
	return "", false
}

// Cosign makes the cosignature of a checkpoint's body: the line that a witness
// answers with. It is for whoever is a witness.
func Cosign(name string, key ed25519.PrivateKey, body string, at time.Time) string {
	seconds := uint64(at.Unix())
	hash := witnessHash(name, key.Public().(ed25519.PublicKey))
	sig := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, hash), seconds)
	sig = append(sig, ed25519.Sign(key, cosigned(seconds, []byte(body)))...)
	return "— " + name + " " + base64.StdEncoding.EncodeToString(sig) + "\n"
}

// Cosignature says that a witness has seen a checkpoint, and when. It is a
// statement that no other log of this name was shown to it by then.
type Cosignature struct {
	Witness string    `json:"witness"`
	Time    time.Time `json:"time"` // by the witness's clock, to the second

	hash uint32
	line string // as it stands under the checkpoint
}

// cosignatures are those of witnesses under a checkpoint that note.Open has
// checked, in the order of its lines.
func cosignatures(n *note.Note, witnesses []*Witness) ([]Cosignature, error) {
	var out []Cosignature
	for _, s := range n.Sigs {
		for _, w := range witnesses {
			if s.Name != w.name || s.Hash != w.hash {
				continue
			}
			sig, err := base64.StdEncoding.DecodeString(s.Base64)
			if err != nil || len(sig) != 4+cosignatureSize {
				return nil, fmt.Errorf("the cosignature of %q is malformed", w.name)
			}
			at := binary.BigEndian.Uint64(sig[4:])
			out = append(out, Cosignature{w.name, time.Unix(int64(at), 0).UTC(), w.hash, "— " + s.Name + " " + s.Base64 + "\n"})
		}
	}
	return out, nil
}
