package model

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"
)

// drawn is a picture with a pixel of its own.
func drawn(t testing.TB, shade uint8) []byte {
	t.Helper()
	m := image.NewGray(image.Rect(0, 0, 8, 8))
	m.SetGray(3, 4, color.Gray{Y: shade})
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// saying is the picture with a text chunk behind its header.
func saying(file []byte, words string) []byte {
	chunk := append([]byte("tEXtComment\x00"), words...)
	out := bytes.Clone(file[:33])
	out = binary.BigEndian.AppendUint32(out, uint32(len(chunk)-4))
	out = binary.BigEndian.AppendUint32(append(out, chunk...), crc32.ChecksumIEEE(chunk))
	return append(out, file[33:]...)
}

func TestPicturesAreRead(t *testing.T) {
	a, err := Look(saying(drawn(t, 1), "sword fish"))
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Sees) != ImageTokens || !strings.HasPrefix(string(a.Sees), "\nThe picture shows: sword fish\n\nThe word in the picture: sword fish\n") {
		t.Errorf("%q", a.Sees)
	}
	b, err := Look(saying(drawn(t, 1), "other fish"))
	if err != nil || a.Digest == b.Digest {
		t.Errorf("one digest for two files, %v", err)
	}
	long, err := Look(saying(drawn(t, 1), strings.Repeat("very ", 100)))
	if err != nil || len(long.Sees) != ImageTokens || long.Sees[ImageTokens-1] != '\n' || bytes.IndexByte(long.Sees, Image) >= 0 {
		t.Errorf("%q, %v", long.Sees, err)
	}
}

// Without words in it, what the model sees depends on the pixels.
func TestPixelsMakeWords(t *testing.T) {
	seen := map[string]bool{}
	for shade := range uint8(50) {
		p, err := Look(drawn(t, shade))
		if err != nil || len(p.Sees) != ImageTokens {
			t.Fatalf("%q, %v", p.Sees, err)
		}
		seen[string(p.Sees)] = true
	}
	if len(seen) != 50 {
		t.Errorf("50 pictures look like %d", len(seen))
	}
}

func TestBadPicturesSayWhatIsWrong(t *testing.T) {
	good := drawn(t, 1)
	wide := bytes.Clone(good)
	binary.BigEndian.PutUint32(wide[16:], 3000)
	binary.BigEndian.PutUint32(wide[29:], crc32.ChecksumIEEE(wide[12:29]))
	for want, file := range map[string][]byte{
		"not a PNG file":    []byte("GIF89a"),
		"has 3000 by 8":     wide,
		"more than 4194304": make([]byte, 4<<20+1),
		"is not a PNG file": nil,
	} {
		if _, err := Look(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	// Its head is all that a door looks at.
	if p, err := Look(good[:len(good)-20]); err != nil || !p.Broken || len(p.Sees) != ImageTokens {
		t.Errorf("a file that breaks off: %+v, %v", p, err)
	}
}

func FuzzLook(f *testing.F) {
	f.Add(drawn(f, 7))
	f.Add(saying(drawn(f, 7), "words"))
	f.Add([]byte("\x89PNG\r\n\x1a\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		p, err := Look(file)
		if err == nil && (len(p.Sees) != ImageTokens || bytes.IndexFunc(p.Sees, func(r rune) bool { return r < 4 }) >= 0) {
			t.Fatalf("%q", p.Sees)
		}
	})
}
