package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

func TestSpoolKeepsWhatItSays(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		where := rapid.SampledFrom([]string{"", dir, filepath.Join(dir, "missing")}).Draw(t, "dir")
		keep := rapid.Int64Range(0, 64).Draw(t, "keep")
		s := newSpool(where, keep)
		var all []byte
		for _, p := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 40)).Draw(t, "writes") {
			if n, err := s.Write(p); n != len(p) || err != nil {
				t.Fatalf("write: %d, %v", n, err)
			}
			all = append(all, p...)
		}
		b := s.close()
		got := b.Bytes
		if b.Path != "" {
			defer os.Remove(b.Path)
			var err error
			if got, err = os.ReadFile(b.Path); err != nil {
				t.Fatal(err)
			}
			if st, _ := os.Stat(b.Path); st.Mode().Perm() != 0o600 {
				t.Fatalf("mode %v", st.Mode())
			}
		}
		want := all
		if where != dir {
			want = all[:min(int64(len(all)), keep)]
		}
		sum := sha256.Sum256(want)
		if !bytes.Equal(got, want) || b.Size != int64(len(all)) || b.SHA256 != hex.EncodeToString(sum[:]) {
			t.Fatalf("kept %d bytes of %d, want %d: %+v", len(got), len(all), len(want), b)
		}
		if b.Truncated != (len(want) < len(all)) || (b.Path != "") != (where == dir && int64(len(all)) > keep) {
			t.Fatalf("blob %+v for %d bytes, keep %d", b, len(all), keep)
		}
	})
}
