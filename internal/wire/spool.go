package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"os"
)

// spool keeps the raw bytes of one answer: in memory while they are few, then
// in a file of dir that only the owner can read.
type spool struct {
	dir      string // where to spill; empty keeps only the first keep bytes
	keep     int64  // bytes held in memory at most
	mem      bytes.Buffer
	file     *os.File
	path     string
	sum      hash.Hash
	size     int64 // bytes seen
	kept     int64 // bytes held, in memory or in the file
	overflow bool  // bytes were dropped
}

func newSpool(dir string, keep int64) *spool {
	return &spool{dir: dir, keep: keep, sum: sha256.New()}
}

// Write never fails: bytes that cannot be kept are counted and dropped, which
// the blob says, because an answer is judged also when the disk is full.
func (s *spool) Write(p []byte) (int, error) {
	n := len(p)
	s.size += int64(n)
	if s.overflow {
		return n, nil
	}
	if s.file == nil && s.kept+int64(n) > s.keep {
		if !s.spill() {
			p = p[:max(0, s.keep-s.kept)]
			s.overflow = true
		}
	}
	s.put(p)
	return n, nil
}

// spill moves what is in memory to a new file.
func (s *spool) spill() bool {
	if s.dir == "" {
		return false
	}
	f, err := os.CreateTemp(s.dir, "answer-*.raw") // mode 0600
	if err != nil {
		return false
	}
	if _, err := f.Write(s.mem.Bytes()); err != nil {
		f.Close()
		os.Remove(f.Name())
		return false
	}
	s.file, s.path = f, f.Name()
	s.mem = bytes.Buffer{}
	return true
}

// put keeps p and takes it into the digest.
func (s *spool) put(p []byte) {
	if s.file == nil {
		s.mem.Write(p)
	} else if n, err := s.file.Write(p); err != nil {
		p, s.overflow = p[:n], true
	}
	s.kept += int64(len(p))
	s.sum.Write(p)
}

// close ends the spool and says where the bytes are.
func (s *spool) close() Blob {
	b := Blob{Size: s.size, Truncated: s.overflow, SHA256: hex.EncodeToString(s.sum.Sum(nil))}
	if s.file == nil {
		b.Bytes = s.mem.Bytes()
		return b
	}
	b.Path = s.path
	if err := s.file.Close(); err != nil {
		b.Truncated = true
	}
	return b
}
