package wire

import (
	"bytes"
	"io"
	"strings"
)

// minSecret is the length from which a key is taken for a secret, bytes. The
// placeholders that local servers are given ("none", "EMPTY") are shorter, and
// stand in ordinary answers.
const minSecret = 8

// redact blots a key out of a text, byte for byte.
func redact(s, key string) string {
	if len(key) < minSecret {
		return s
	}
	return strings.ReplaceAll(s, key, strings.Repeat("*", len(key)))
}

// redactReader blots a key out of a stream, so that a server that echoes the
// key puts it into no file. The length of the stream stays as it was.
type redactReader struct {
	src  io.Reader
	key  []byte
	buf  []byte
	have []byte // read and not yet given out
	safe int    // how much of have may be given out
	err  error
}

// newRedactReader returns src itself if key is no secret.
func newRedactReader(src io.Reader, key string) io.Reader {
	if len(key) < minSecret {
		return src
	}
	return &redactReader{src: src, key: []byte(key), buf: make([]byte, 16<<10+len(key))}
}

func (r *redactReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for r.safe == 0 {
		if r.err != nil {
			return 0, r.err
		}
		kept := copy(r.buf, r.have)
		n, err := r.src.Read(r.buf[kept:])
		r.have, r.err = r.buf[:kept+n], err
		r.blot()
	}
	n := copy(p, r.have[:r.safe])
	r.have, r.safe = r.have[n:], r.safe-n
	return n, nil
}

// blot overwrites the key and finds how much can be given out: all but a tail
// that may be the beginning of the key.
func (r *redactReader) blot() {
	for from := 0; ; {
		i := bytes.Index(r.have[from:], r.key)
		if i < 0 {
			break
		}
		from += i
		for j := range r.key {
			r.have[from+j] = '*'
		}
		from += len(r.key)
	}
	r.safe = len(r.have)
	if r.err != nil {
		return
	}
	for n := min(len(r.key)-1, len(r.have)); n > 0; n-- {
		if bytes.HasPrefix(r.key, r.have[len(r.have)-n:]) {
			r.safe -= n
			return
		}
	}
}
