package api

import (
	"unicode/utf8"

	"github.com/kvcanary/kvcanary/internal/lab/model"
)

// names are the special tokens as text: what a leaked transcript looks like.
// The token that ends a turn is no text.
var names = [...]string{
	model.DocStart:  "<|document|>",
	model.User:      "<|user|>",
	model.Assistant: "<|assistant|>",
	model.EndOfTurn: "",
}

// detokenizer turns tokens, which are bytes, into valid UTF-8. A character
// whose last byte has not come yet is held back; what can be no character
// becomes U+FFFD.
type detokenizer struct {
	part [utf8.UTFMax]byte
	n    int // bytes of part that wait for the rest of a character
}

// token appends the text that token t completes.
func (d *detokenizer) token(dst []byte, t byte) []byte {
	if int(t) < len(names) {
		return append(d.flush(dst), names[t]...)
	}
	d.part[d.n] = t
	d.n++
	for d.n > 0 && utf8.FullRune(d.part[:d.n]) {
		dst = d.shift(dst)
	}
	return dst
}

// flush appends what was held back: no more bytes will complete it.
func (d *detokenizer) flush(dst []byte) []byte {
	for d.n > 0 {
		dst = d.shift(dst)
	}
	return dst
}

// shift appends the first character of what is held back.
func (d *detokenizer) shift(dst []byte) []byte {
	r, size := utf8.DecodeRune(d.part[:d.n])
	d.n = copy(d.part[:], d.part[size:d.n])
	return utf8.AppendRune(dst, r)
}
