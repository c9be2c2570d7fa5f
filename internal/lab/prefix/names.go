package prefix

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// Prompt is what KV is computed from.
type Prompt struct {
	Tokens  []byte
	Tenant  string // as the server knows it, never as a client says
	Salt    string // what its client says to keep it apart by, empty if nothing
	Adapter string // empty for the bare model
	Media   []Media
}

// Media is a picture behind a run of placeholder tokens, which are the same for
// all pictures. They are in the order of At and do not overlap.
type Media struct {
	At, Tokens int
	Digest     [16]byte // of the picture's bytes
}

// key is a link of a hash chain.
type key [16]byte

// tag says for whom a block was computed, and from what beside its tokens.
type tag struct {
	tenant, adapter string
	media           key // chain of all pictures up to the block's end
}

// name is all that tells one block from another.
type name struct {
	key    key // in the first tier
	blob   key // in the second
	tokens string
	text   key // chain of all tokens up to the block's end
	tag    tag
}

// domains keep a tenant, an adapter, a picture and a salt of the same bytes apart.
const (
	ofTenant = iota + 1
	ofAdapter
	ofTokens
	ofMedia
	ofSalt
)

// part is a piece of what a key is made of.
type part struct {
	domain byte
	bytes  []byte
}

// link is the next key of a chain: a hash of the one before and of parts, each
// with its domain and length.
func link(before key, parts ...part) (k key) {
	b := append(make([]byte, 0, 256), before[:]...)
	for _, p := range parts {
		b = binary.LittleEndian.AppendUint64(append(b, p.domain), uint64(len(p.bytes)))
		b = append(b, p.bytes...)
	}
	sum := sha256.Sum256(b)
	copy(k[:], sum[:])
	return k
}

// names are the names of the whole blocks of a prompt, at most n of them.
func (c *Cache) names(p *Prompt, n int) []name {
	size := c.cfg.PageSize
	n = min(n, len(p.Tokens)/size)
	out := make([]name, n)
	at := name{tag: tag{tenant: p.Tenant, adapter: p.Adapter}}
	adapter := part{ofAdapter, []byte(p.Adapter)}
	if c.cfg.Switches.Has(OmitAdapter) {
		adapter.bytes = nil
	}
	at.key, at.blob = link(key{}, adapter), link(key{}, adapter)
	tenant := part{ofTenant, []byte(p.Tenant)}
	if c.on.Any(salts &^ SaltByClient) {
		at.key = link(at.key, tenant)
	}
	if c.on.Any(Salt) {
		at.blob = link(at.blob, tenant)
	}
	if c.on.Any(SaltByClient) {
		at.key = link(at.key, part{ofSalt, []byte(p.Salt)})
		at.blob = at.key
	}
	for i := range out {
		from := i * size
		tokens := part{ofTokens, p.Tokens[from : from+size]}
		parts := []part{tokens}
		for _, m := range p.overlapping(from, from+size) {
			at.tag.media = link(at.tag.media, m)
			if !c.cfg.Switches.Has(OmitMedia) {
				parts = append(parts, m)
			}
		}
		at.tokens, at.text = string(tokens.bytes), link(at.text, tokens)
		same := at.key == at.blob
		if at.key = c.thin(link(at.key, parts...)); same {
			at.blob = at.key
		} else {
			at.blob = c.thin(link(at.blob, parts...))
		}
		out[i] = at
	}
	return out
}

// overlapping are the pictures of which a block has some, with where they lie in it.
func (p *Prompt) overlapping(from, to int) (parts []part) {
	for _, m := range p.Media {
		if m.At < to && m.At+m.Tokens > from {
			b := binary.LittleEndian.AppendUint64(m.Digest[:], uint64(int64(m.At-from)))
			parts = append(parts, part{ofMedia, b})
		}
	}
	return parts
}

// thin drops bits of a key with fault WeakHash: a block that nobody has sent is
// found in a full cache one time in four to eight then.
func (c *Cache) thin(k key) key {
	if !c.cfg.Switches.Has(WeakHash) {
		return k
	}
	few := uint64(1)<<(bits.Len(uint(c.cfg.Pages))+2) - 1
	var weak key
	binary.LittleEndian.PutUint64(weak[:], binary.LittleEndian.Uint64(k[:])&few)
	return weak
}
