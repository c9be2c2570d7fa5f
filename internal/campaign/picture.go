package campaign

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
)

// brokenOff is how much of a picture's file is missing where it breaks off,
// bytes: its end, and some of what it shows.
const brokenOff = 64

// pictured is the nonce that a picture shows.
const pictured = 1

// Shape of every picture, pixels: a line of letters of five by seven dots, each
// dot three pixels wide, with room around it.
const (
	dot           = 3
	letterWidth   = 6 * dot
	pictureWidth  = 11*letterWidth + 4*dot
	pictureHeight = 7*dot + 4*dot
)

// picture is a small PNG that shows a word in black letters on a light ground
// whose grain the seed makes. The word stands in a text chunk as well, as
// programs that draw write it.
func picture(seed uint64, word string) []byte {
	rng := rand.New(rand.NewPCG(seed, 0x70696374757265))
	m := image.NewGray(image.Rect(0, 0, pictureWidth, pictureHeight))
	for i := range m.Pix {
		m.Pix[i] = uint8(208 + rng.IntN(48))
	}
	for i := range len(word) {
		drawLetter(m, 2*dot+i*letterWidth, 2*dot, glyphs[word[i]])
	}
	var b bytes.Buffer
	// A picture in memory has nowhere to fail.
	_ = png.Encode(&b, m)
	return comment(b.Bytes(), word)
}

func drawLetter(m *image.Gray, left, top int, columns [5]byte) {
	for x := range len(columns) * dot {
		for y := range 7 * dot {
			if columns[x/dot]>>(y/dot)&1 == 1 {
				m.SetGray(left+x, top+y, color.Gray{Y: 0})
			}
		}
	}
}

// headerSize is where the first chunk after the header of a PNG begins, bytes.
const headerSize = 8 + 25

// comment puts a tEXt chunk behind the header of a PNG (PNG 1.2, 4.2.3).
func comment(file []byte, words string) []byte {
	chunk := append([]byte("tEXtComment\x00"), words...)
	out := append([]byte(nil), file[:headerSize]...)
	out = binary.BigEndian.AppendUint32(out, uint32(len(chunk)-4))
	out = append(out, chunk...)
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(chunk))
	return append(out, file[headerSize:]...)
}

// glyphs are the characters of nonces, five columns each, the top dot in the
// lowest bit.
var glyphs = map[byte][5]byte{
	'-': {0x08, 0x08, 0x08, 0x08, 0x08},
	'2': {0x42, 0x61, 0x51, 0x49, 0x46},
	'3': {0x21, 0x41, 0x45, 0x4b, 0x31}, '4': {0x18, 0x14, 0x12, 0x7f, 0x10}, '5': {0x27, 0x45, 0x45, 0x45, 0x39},
	'6': {0x3c, 0x4a, 0x49, 0x49, 0x30}, '7': {0x01, 0x71, 0x09, 0x05, 0x03},
	'a': {0x20, 0x54, 0x54, 0x54, 0x78}, 'b': {0x7f, 0x48, 0x44, 0x44, 0x38},
	'c': {0x38, 0x44, 0x44, 0x44, 0x20}, 'd': {0x38, 0x44, 0x44, 0x48, 0x7f}, 'e': {0x38, 0x54, 0x54, 0x54, 0x18},
	'f': {0x08, 0x7e, 0x09, 0x01, 0x02}, 'g': {0x0c, 0x52, 0x52, 0x52, 0x3e}, 'h': {0x7f, 0x08, 0x04, 0x04, 0x78},
	'i': {0x00, 0x44, 0x7d, 0x40, 0x00}, 'j': {0x20, 0x40, 0x44, 0x3d, 0x00}, 'k': {0x7f, 0x10, 0x28, 0x44, 0x00},
	'l': {0x00, 0x41, 0x7f, 0x40, 0x00}, 'm': {0x7c, 0x04, 0x18, 0x04, 0x78}, 'n': {0x7c, 0x08, 0x04, 0x04, 0x78},
	'o': {0x38, 0x44, 0x44, 0x44, 0x38}, 'p': {0x7c, 0x14, 0x14, 0x14, 0x08}, 'q': {0x08, 0x14, 0x14, 0x18, 0x7c},
	'r': {0x7c, 0x08, 0x04, 0x04, 0x08}, 's': {0x48, 0x54, 0x54, 0x54, 0x20}, 't': {0x04, 0x3f, 0x44, 0x40, 0x20},
	'u': {0x3c, 0x40, 0x40, 0x20, 0x7c}, 'v': {0x1c, 0x20, 0x40, 0x20, 0x1c}, 'w': {0x3c, 0x40, 0x30, 0x40, 0x3c},
	'x': {0x44, 0x28, 0x10, 0x28, 0x44}, 'y': {0x0c, 0x50, 0x50, 0x50, 0x3c}, 'z': {0x44, 0x64, 0x54, 0x4c, 0x44},
}
