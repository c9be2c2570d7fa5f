package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kvcanary/kvcanary/internal/prose"
)

// maxStrips is how many prompts the leak map shows.
const maxStrips = 20

// strip is one prompt of which words came out: its pages from first to last,
// and those that the words were planted in.
type strip struct {
	Name  string
	Pages int // of its prompt
	Marks []stripMark
	Words string // which pages, in words
}

type stripMark struct{ X, W float64 }

// leakMap draws, for each prompt of which words came out, where in it they had
// stood. It needs the engine's page size, and says nothing without.
func (p *page) leakMap() {
	size := p.Plan.Facts.PageSize
	if size < 1 {
		return
	}
	pages := map[int][]int{} // by exchange
	var order []int
	for _, f := range p.Result.Findings {
		if f.FromExchange == nil || f.Evidence.FromRun != nil {
			continue
		}
		hint, _, _ := strings.Cut(f.Evidence.PageHint, " ")
		n, err := strconv.Atoi(hint)
		if err != nil || n < 0 {
			continue
		}
		from := *f.FromExchange
		if pages[from] == nil {
			order = append(order, from)
		}
		if !slices.Contains(pages[from], n) {
			pages[from] = append(pages[from], n)
		}
	}
	slices.Sort(order)
	for _, from := range order[:min(len(order), maxStrips)] {
		for i := range p.Exchanges {
			e := &p.Exchanges[i]
			if e.Seq != from || e.SentTokens < 1 {
				continue
			}
			slices.Sort(pages[from])
			all := (e.SentTokens + size - 1) / size
			s := strip{Name: prose.Printable(fmt.Sprintf("exchange %d, tenant %s", from, e.Tenant)), Pages: all}
			var words []string
			for _, n := range pages[from] {
				width := float64(p.Width) / float64(max(all, 1))
				s.Marks = append(s.Marks, stripMark{min(float64(n)*width, float64(p.Width)-3), max(width, 3)})
				words = append(words, strconv.Itoa(n))
			}
			s.Words = strings.Join(words, ", ")
			p.Strips = append(p.Strips, s)
			break
		}
	}
}
