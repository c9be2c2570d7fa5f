package pagetag

import (
	"fmt"
	"hash/adler32"
	"hash/crc32"
	"slices"
	"testing"
	"time"

	"github.com/zeebo/xxh3"
)

// A context of 65,536 tokens on pages of 64: what one request of one step costs.
func BenchmarkOwnership(b *testing.B) {
	e := Expected{Owner: vectorOwner, Tokens: 65536, PageTokens: 64}
	n, _ := e.Pages()
	var tags []Tag
	for i := range n {
		tags = append(tags, Claim(e.Owner, e.Place(i)))
	}
	marks := marksOf(tags)
	perPage := func(b *testing.B, check func() error) {
		for b.Loop() {
			if err := check(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/page")
	}
	b.Run("marks", func(b *testing.B) { perPage(b, func() error { return CheckMarks(marks, e) }) })
	b.Run("tags", func(b *testing.B) { perPage(b, func() error { return CheckTable(tags, e) }) })
}

// BenchmarkDigest runs all digests and a copy of the same page in turn, many
// short rounds, and reports the median speed of each and the median of its
// rounds over the copies beside them: what else the machine does weighs on all.
func BenchmarkDigest(b *testing.B) {
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	accident, adversary := AgainstAccidents(), AgainstAdversaries(testKey)
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		page, to := pageVector{Bytes: size}.bytes(), make([]byte, size)
		tag := accident.Stamp(vectorOwner, Place{}, page)
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			sideBySide(b, size, []contender{
				{"copy", func() { copy(to, page) }},
				{"xxh3", func() { xxh3.Hash128(page) }},
				{"accident", func() { accident.Stamp(vectorOwner, Place{}, page) }},
				{"verify", func() { accident.Verify(&tag, vectorOwner, Place{}, page) }},
				{"adversary", func() { adversary.Stamp(vectorOwner, Place{}, page) }},
				{"crc32c", func() { crc32.Checksum(page, castagnoli) }},
				{"adler32", func() { adler32.Checksum(page) }},
			})
		})
	}
}

type contender struct {
	name string
	run  func()
}

// sideBySide makes b.N rounds; in each, all contenders have a turn of 1 MB.
// The first is what the others are compared with.
func sideBySide(b *testing.B, size int, all []contender) {
	turns := max(1, 1<<20/size)
	times := make([][]float64, len(all))
	for b.Loop() {
		for i, c := range all {
			c.run() // the page comes from cache for everybody
			start := time.Now()
			for range turns {
				c.run()
			}
			times[i] = append(times[i], float64(time.Since(start).Nanoseconds()))
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, c := range all {
		var shares []float64
		for round, t := range times[i] {
			shares = append(shares, 100*times[0][round]/t)
		}
		b.ReportMetric(float64(turns*size)/median(times[i]), c.name+"-GB/s")
		if i > 0 {
			b.ReportMetric(median(shares), c.name+"-%copy")
		}
	}
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}
