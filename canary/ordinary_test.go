package canary

import (
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"net/url"
	"testing"
)

// TestOrdinaryText (C2): text without canaries has no hits: code, prose, JSON,
// base64, hexadecimal, percent-encoding, and list words in random order, which
// come as near to canary text as text without the key can. With
// KVCANARY_LONG=1 it is a gigabyte and more.
func TestOrdinaryText(t *testing.T) {
	size := 256 << 10
	if long {
		size = 128 << 20
	}
	c := New(testKey(11))
	total := int64(0)
	scan := func(name string, text []byte) {
		t.Helper()
		total += int64(len(text))
		s := c.NewScanner(ScanOptions{Decode: true}, func(h Hit) { t.Errorf("%s: %+v: %.300q", name, h, text[h.Start:h.End]) })
		s.Write(text)
		s.Close()
	}
	code, prose := goroot(size)
	if len(prose) < size/16 {
		t.Fatalf("only %d bytes of prose in the Go installation", len(prose))
	}
	scan("code", code)
	scan("prose", prose)
	scan("json", jsonOf(prose, size))
	scan("percent", []byte(url.QueryEscape(string(prose[:len(prose)/4]))))
	r := rand.New(rand.NewPCG(7, 7))
	scan("list words", randomListWords(r, 2*size))
	raw := make([]byte, size)
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	scan("random bytes", raw)
	scan("base64", []byte(base64.StdEncoding.EncodeToString(raw)))
	scan("hex", []byte(hex.EncodeToString(raw)))
	t.Logf("%d MB without a hit", total>>20)
}
