package canary

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"go/build"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/coregx/ahocorasick"
)

const benchSize = 8 << 20 // bytes of each text, more than a core's cache

// texts are what scanners meet. Prose and code are the documentation and the
// sources of the Go installation at hand.
var texts = sync.OnceValue(func() map[string][]byte {
	t := map[string][]byte{}
	code, prose := goroot(benchSize)
	t["code"], t["prose"] = code, prose
	t["json"] = jsonOf(prose, benchSize)
	r := rand.New(rand.NewPCG(1, 2))
	t["listwords"] = randomListWords(r, benchSize)
	raw := make([]byte, benchSize/4*3)
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	t["base64"] = []byte(base64.StdEncoding.EncodeToString(raw))
	t["base64url"] = []byte(base64.URLEncoding.EncodeToString(raw))
	return t
})

// goroot reads size bytes of Go sources, and size bytes of the prose in their comments.
func goroot(size int) (code, prose []byte) {
	filepath.WalkDir(filepath.Join(build.Default.GOROOT, "src"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if len(code) < size {
			code = append(code, b...)
		}
		for line := range bytes.Lines(b) {
			if text, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("// ")); ok && bytes.IndexByte(text, ' ') > 0 {
				prose = append(append(prose, text...), '\n')
			}
		}
		if len(code) >= size && len(prose) >= size {
			return filepath.SkipAll
		}
		return nil
	})
	return code, prose[:min(len(prose), size)]
}

// jsonOf writes text as chat answers.
func jsonOf(text []byte, size int) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // as most servers write it
	for i := 0; b.Len() < size; i++ {
		at := i * 600 % (len(text) - 600)
		e.Encode(map[string]any{
			"id": fmt.Sprintf("chatcmpl-%08x", i*2654435761), "object": "chat.completion", "created": 1700000000 + i, "model": "some/model-70b",
			"choices": []any{map[string]any{"index": 0, "finish_reason": "stop",
				"message": map[string]any{"role": "assistant", "content": string(text[at : at+600])}}},
			"usage": map[string]int{"prompt_tokens": i, "completion_tokens": 150, "total_tokens": i + 150},
		})
	}
	return b.Bytes()
}

func randomListWords(r *rand.Rand, size int) []byte {
	words := strings.Fields(wordList)
	var b bytes.Buffer
	for b.Len() < size {
		b.WriteString(words[r.IntN(len(words))])
		b.WriteByte(' ')
	}
	return b.Bytes()
}

func BenchmarkMint(b *testing.B) {
	c := New(testKey(1))
	buf := make([]byte, 32<<10)
	const n = 1 << 17
	rate(b, int(c.WordsSize(MakeID(1, 2, 3), 0, n)), func() {
		for r, err := c.Words(MakeID(1, 2, 3), 0, n), error(nil); err == nil; {
			_, err = r.Read(buf)
		}
	})
}

func benchScan(b *testing.B, o ScanOptions, text []byte) {
	c := New(testKey(1))
	n := 0
	rate(b, len(text), func() {
		s := c.NewScanner(o, func(Hit) { n++ })
		s.Write(text)
		s.Close()
	})
	if n > 0 {
		b.Fatal("hits in text without canaries")
	}
}

func BenchmarkScanWords(b *testing.B) {
	for name, text := range texts() {
		b.Run(name, func(b *testing.B) { benchScan(b, ScanOptions{Forms: []Form{WordChain}}, text) })
	}
}

func BenchmarkScanToken(b *testing.B) {
	for name, text := range texts() {
		b.Run(name, func(b *testing.B) { benchScan(b, ScanOptions{Forms: []Form{ShortToken}}, text) })
	}
}

func BenchmarkScanBoth(b *testing.B) {
	for name, text := range texts() {
		b.Run(name, func(b *testing.B) { benchScan(b, ScanOptions{}, text) })
	}
}

func BenchmarkScanDecode(b *testing.B) {
	for name, text := range texts() {
		b.Run(name, func(b *testing.B) { benchScan(b, ScanOptions{Decode: true}, text) })
	}
}

// BenchmarkScanCanaries scans nothing but canary text, in long runs.
func BenchmarkScanCanaries(b *testing.B) {
	c := New(testKey(1))
	text := []byte(readAll(c.Words(MakeID(1, 2, 3), 0, 1<<16)))
	rate(b, len(text), func() {
		if len(c.Scan(text)) != 1 {
			b.Fatal("no hit")
		}
	})
}

// BenchmarkScanAmong scans prose with eight fragments in it, drawn from as many
// canaries as the name says, all of them minted before.
func BenchmarkScanAmong(b *testing.B) {
	for _, n := range []int{1, 1000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := New(testKey(1))
			buf := make([]byte, 256)
			for id := range ID(n) {
				c.Words(id, 0, 20).Read(buf)
			}
			text := bytes.Clone(texts()["prose"])
			for k := range 8 {
				copy(text[k*len(text)/8:], ". "+mint(c, ID(k*n/8), 50, 12)+". ")
			}
			rate(b, len(text), func() {
				if hits := c.Scan(text); len(hits) != 8 {
					b.Fatalf("%d hits, want 8", len(hits))
				}
			})
		})
	}
}

// BenchmarkBaseline is what one would use instead: an Aho-Corasick automaton
// with 10,000 tokens, and bytes.Index with one, on the same text.
func BenchmarkBaseline(b *testing.B) {
	c := New(testKey(1))
	for _, name := range []string{"prose", "json"} {
		text := texts()[name]
		b.Run("ahocorasick-10000/"+name, func(b *testing.B) {
			build := ahocorasick.NewBuilder()
			for seq := range 10000 {
				build.AddPattern([]byte(c.Token(MakeID(1, 0, seq))))
			}
			ac, err := build.Build()
			if err != nil {
				b.Fatal(err)
			}
			rate(b, len(text), func() {
				if ac.IsMatch(text) {
					b.Fatal("match")
				}
			})
		})
		b.Run("bytes.Index-1/"+name, func(b *testing.B) {
			one := []byte(c.Token(MakeID(1, 0, 0)))
			rate(b, len(text), func() {
				if bytes.Contains(text, one) {
					b.Fatal("match")
				}
			})
		})
	}
}

// rate runs f until the benchmark is content, and reports how many bytes it
// deals with in a second, and in a second of processor time.
func rate(b *testing.B, size int, f func()) {
	b.SetBytes(int64(size))
	n, start := 0, cpuTime()
	for b.Loop() {
		f()
		n++
	}
	b.ReportMetric(float64(n)*float64(size)/1e6/(cpuTime()-start).Seconds(), "MB/cpu-s")
}
