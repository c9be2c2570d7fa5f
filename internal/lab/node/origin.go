package node

import (
	"encoding/binary"

	"github.com/kvcanary/kvcanary/internal/lab/model"
	"github.com/kvcanary/kvcanary/internal/lab/prefix"
)

// Origin is what a prompt has beside its tokens: from whom it is, and what else
// its KV depends on. Decode is told the adapter only.
type Origin struct {
	Tenant  string // as the API knows it
	Adapter string // empty for the bare model
	Images  []Image
	Salt    string // as its client says
}

// Image is a picture behind a run of placeholder tokens.
type Image struct {
	At     int      // the first of them
	Digest [16]byte // of the picture's bytes
	Sees   []byte   // what the model sees there: a token in place of each placeholder
}

// Bounds on what a frame carries of an origin.
const (
	MaxName   = 255 // bytes of a tenant, an adapter or a salt
	MaxImages = 16
	originMax = 3*(MaxName+2) + 2 + MaxImages*(2*binary.MaxVarintLen32+16+model.ImageTokens)
)

// prompt is what the prefix cache has to know of a prompt.
func (o Origin) prompt(tokens []byte) prefix.Prompt {
	p := prefix.Prompt{Tokens: tokens, Tenant: o.Tenant, Salt: o.Salt, Adapter: o.Adapter}
	for _, m := range o.Images {
		p.Media = append(p.Media, prefix.Media{At: m.At, Tokens: len(m.Sees), Digest: m.Digest})
	}
	return p
}

// embed puts what pictures show in place of their placeholders. Without pictures
// it returns tokens as they are.
func (o Origin) embed(tokens []byte) []byte {
	if len(o.Images) == 0 {
		return tokens
	}
	seen := append([]byte(nil), tokens...)
	for _, m := range o.Images {
		if m.At < len(seen) {
			copy(seen[m.At:], m.Sees)
		}
	}
	return seen
}

func (o Origin) append(b []byte) []byte {
	b = append(append(b, byte(len(o.Tenant))), o.Tenant...)
	b = append(append(b, byte(len(o.Adapter))), o.Adapter...)
	b = append(append(b, byte(len(o.Salt))), o.Salt...)
	b = append(b, byte(len(o.Images)))
	for _, m := range o.Images {
		b = binary.AppendUvarint(b, uint64(m.At))
		b = append(b, m.Digest[:]...)
		b = append(binary.AppendUvarint(b, uint64(len(m.Sees))), m.Sees...)
	}
	return b
}

func (r *reader) origin() (o Origin) {
	o.Tenant = string(r.take(int(r.byte())))
	o.Adapter = string(r.take(int(r.byte())))
	o.Salt = string(r.take(int(r.byte())))
	n := int(r.byte())
	if n > MaxImages {
		r.fail("%d pictures where there are at most %d", n, MaxImages)
	}
	for range n {
		if r.err != nil {
			return Origin{}
		}
		m := Image{At: r.int()}
		copy(m.Digest[:], r.take(len(m.Digest)))
		m.Sees = append([]byte{}, r.take(int(r.uvarint(model.ImageTokens)))...)
		o.Images = append(o.Images, m)
	}
	return o
}
