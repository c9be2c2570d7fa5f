package wire

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/canary"
)

// canaryText is filler as a campaign sends it: made while it is read.
type canaryText struct {
	place canary.Place
	words int
	size  int64
}

func (c canaryText) Open() io.Reader { return c.place.Words(c.words) }
func (c canaryText) Size() int64     { return c.size }
func (c canaryText) JSONSize() int64 { return c.size }

// BenchmarkBesideCurl sends a prompt of a million tokens to a server on
// loopback, and lets curl send the same bytes from a file, in turns. x-curl is
// the ratio of the fastest of each, which other work disturbs least; of curl's
// time only what it spends on the transfer counts, by its own account, not its
// start. One server throws the prompt away, one takes it as fast as a network of
// a gigabit brings it, and one decodes it, as a server that answers it must.
func BenchmarkBesideCurl(b *testing.B) {
	b.Run("discarding", func(b *testing.B) {
		besideCurl(b, func(r io.Reader) { io.Copy(io.Discard, r) })
	})
	b.Run("gigabit", func(b *testing.B) {
		besideCurl(b, func(r io.Reader) {
			start, got := time.Now(), int64(0)
			for {
				n, err := io.CopyN(io.Discard, r, 64<<10)
				if got += n; err != nil {
					return
				}
				time.Sleep(time.Until(start.Add(time.Duration(got * 8)))) // a nanosecond a bit
			}
		})
	})
	b.Run("decoding", func(b *testing.B) {
		besideCurl(b, func(r io.Reader) {
			var doc map[string]any
			if err := json.NewDecoder(r).Decode(&doc); err != nil {
				b.Error(err)
			}
		})
	})
}

func besideCurl(b *testing.B, take func(io.Reader)) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		b.Fatal("curl is needed to compare with: ", err)
	}
	c := serve(b, func(w http.ResponseWriter, r *http.Request) {
		take(r.Body)
		io.WriteString(w, goodStream)
	}, Options{})
	const words = 700_000 // 4.8 MB: a learned vocabulary has about 4.8 bytes a token
	place := canary.New(canary.Key{1}).Place(canary.MakeID(1, 0, 1), 0)
	_, size := place.Skip(words)
	r := prompt("")
	r.Messages[0].Text = canaryText{place, words, size}
	file := filepath.Join(b.TempDir(), "body")
	body, err := io.ReadAll(&bodyReader{segs: c.dialect.body(r, quirks{}), moved: func() {}})
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(file, body, 0o600); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	var ours, theirs []time.Duration
	for b.Loop() {
		start := time.Now()
		if a := c.Do(context.Background(), r); !a.Served() {
			b.Fatalf("%+v %+v", a.Refusal, a.Failure)
		}
		ours = append(ours, time.Since(start))
		out, err := exec.Command(curl, "-s", "-o", os.DevNull, "-w", "%{time_total}", "-H", "Content-Type: application/json", "-H", "Expect:", "--data-binary", "@"+file, c.prompts).Output()
		if err != nil {
			b.Fatal(err)
		}
		s, err := strconv.ParseFloat(string(out), 64)
		if err != nil {
			b.Fatal(err)
		}
		theirs = append(theirs, time.Duration(s*float64(time.Second)))
	}
	mine, curls := slices.Min(ours), slices.Min(theirs)
	b.ReportMetric(float64(mine.Microseconds())/1000, "ours-ms")
	b.ReportMetric(float64(curls.Microseconds())/1000, "curl-ms")
	b.ReportMetric(float64(mine)/float64(curls), "x-curl")
}
