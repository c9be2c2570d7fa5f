package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"image/png"
)

// Image is the token that stands for a part of a picture, the same for all. It is
// in no valid UTF-8 text.
const Image = 0xff

// ImageTokens is how many tokens a picture takes.
const ImageTokens = 256

// Bounds on a picture.
const (
	maxPNG  = 4 << 20 // bytes
	maxSide = 2048    // pixels
)

// Picture is what the model gets to see of one.
type Picture struct {
	Digest [16]byte // of the file's bytes
	// Sees has ImageTokens tokens: what the model reads in the picture, in place of
	// the placeholders.
	Sees []byte
	// Broken says that the file begins as a PNG file and cannot be read to its end:
	// whoever computes the prompt has to refuse it. It takes as many tokens as any.
	Broken bool
}

// captions are what a model that describes pictures says of what it reads in
// one, each on a line of its own. A question that ends like one of them is
// answered with it.
var captions = []string{"\nThe picture shows: ", "\nThe word in the picture: ", "\nThe picture says: "}

// Look is the vision encoder: it reads the text that a PNG file carries in its
// first tEXt chunk, as a larger model reads what is drawn, or else names what it
// sees by words that depend on every pixel. The error says what is wrong with the
// file, for its sender, as far as its head shows: one that breaks off behind it is
// Broken.
func Look(file []byte) (Picture, error) {
	if len(file) > maxPNG {
		return Picture{}, fmt.Errorf("the picture has more than %d bytes", maxPNG)
	}
	head, err := png.DecodeConfig(bytes.NewReader(file))
	if err != nil {
		return Picture{}, errors.New("the picture is not a PNG file")
	}
	if head.Width > maxSide || head.Height > maxSide {
		return Picture{}, fmt.Errorf("the picture has %d by %d pixels; the most is %d by %d", head.Width, head.Height, maxSide, maxSide)
	}
	p := Picture{Sees: bytes.Repeat([]byte{Image}, ImageTokens)}
	sum := sha256.Sum256(file)
	copy(p.Digest[:], sum[:])
	img, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		p.Broken = true
		return p, nil
	}
	says := textChunk(file)
	if says == nil {
		h := sha256.New()
		b := img.Bounds()
		for y := b.Min.Y; y < b.Max.Y; y++ {
			for x := b.Min.X; x < b.Max.X; x++ {
				r, g, bl, a := img.At(x, y).RGBA()
				h.Write([]byte{byte(r >> 8), byte(g >> 8), byte(bl >> 8), byte(a >> 8)})
			}
		}
		says = describe(h.Sum(nil))
	}
	copy(p.Sees, caption(says))
	return p, nil
}

// caption is what the model reads where a picture says something: as many
// captions as there is room for, the first cut if it has none.
func caption(says []byte) []byte {
	seen := append(AppendText([]byte(captions[0]), says), '\n')
	if len(seen) > ImageTokens {
		return append(seen[:ImageTokens-1], '\n')
	}
	for _, c := range captions[1:] {
		more := append(AppendText([]byte(c), says), '\n')
		if len(seen)+len(more) <= ImageTokens {
			seen = append(seen, more...)
		}
	}
	return seen
}

// textChunk is the text of a PNG's first tEXt chunk, nil if it has none. The file
// is known to be sound.
func textChunk(file []byte) []byte {
	for rest := file[8:]; len(rest) >= 12; {
		n := int(binary.BigEndian.Uint32(rest))
		if n > len(rest)-12 {
			return nil
		}
		if string(rest[4:8]) == "tEXt" {
			if _, text, ok := bytes.Cut(rest[8:8+n], []byte{0}); ok {
				return bytes.ReplaceAll(text, []byte("\n"), []byte(" "))
			}
		}
		rest = rest[12+n:]
	}
	return nil
}

// describe makes four words of eight letters of a digest.
func describe(digest []byte) (words []byte) {
	const consonants, vowels = "bdfgklmnprstvwyz", "aeio"
	for i, b := range digest[:16] {
		if i > 0 && i%4 == 0 {
			words = append(words, ' ')
		}
		words = append(words, consonants[b&15], vowels[b>>4&3])
	}
	return words
}
