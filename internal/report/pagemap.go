package report

import (
	"fmt"
	"html/template"
	"strings"
)

// The chart is a grid of pages in the order of the reader's page table, left
// to right and top to bottom. Neighbours with the same owner are drawn as one
// rectangle, so ten thousand pages stay a small file.
const (
	chartColumns = 64
	wideColumns  = 160 // from chartWide pages on
	chartWide    = 2000
	chartWidth   = 960.0
	namedOwners  = 6 // owners with a colour and letter of their own
)

type legendRow struct {
	Class string // style class of its pages
	Mark  string // letter on its pages
	Name  string
	Pages int
}

// legend says what the classes of the chart mean. Colour never stands alone:
// each class has a letter too.
func (m *PageMap) legend() []legendRow {
	rows := []legendRow{{Class: "own", Mark: "own", Name: "written for this request", Pages: m.Written()}}
	others := 0
	for i, name := range m.owners() {
		n := m.count(func(p MapPage) bool { return !p.Own && p.Owner == name })
		if i < namedOwners {
			rows = append(rows, legendRow{fmt.Sprintf("o%d", i), string(rune('A' + i)), "stale: " + name, n})
			continue
		}
		others += n
	}
	if others > 0 {
		rows = append(rows, legendRow{"other", "+", fmt.Sprintf("stale: %d other requests", m.Owners()-namedOwners), others})
	}
	if n := m.Blank(); n > 0 {
		rows = append(rows, legendRow{"blank", "", "never written by anybody", n})
	}
	return rows
}

// chart draws the map as SVG.
func (m *PageMap) chart() template.HTML {
	columns := chartColumns
	if len(m.Pages) >= chartWide {
		columns = wideColumns
	}
	rank := map[string]int{}
	for i, name := range m.owners() {
		rank[name] = i
	}
	cell := chartWidth / float64(columns)
	rows := (len(m.Pages) + columns - 1) / columns
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="map" role="img" aria-labelledby="map-title map-desc" viewBox="0 0 %.0f %.1f">`, chartWidth, cell*float64(rows))
	fmt.Fprintf(&b, `<title id="map-title">Page table of the request that leaked</title>`)
	fmt.Fprintf(&b, `<desc id="map-desc">%d pages: %d written for the request, %d stale from %d other requests, %d never written.</desc>`,
		len(m.Pages), m.Written(), m.Stale(), m.Owners(), m.Blank())
	for start := 0; start < len(m.Pages); {
		end := start + 1
		for end < len(m.Pages) && end%columns != 0 && alike(m.Pages[start], m.Pages[end]) {
			end++
		}
		m.block(&b, start, end, columns, cell, rank)
		start = end
	}
	// One thin line between pages, so that neighbours of one owner can still be counted.
	fmt.Fprintf(&b, `<defs><pattern id="page-grid" width="%.2f" height="%.2f" patternUnits="userSpaceOnUse"><path d="M%.2f 0V%.2f"/></pattern></defs>`, cell, cell, cell, cell)
	fmt.Fprintf(&b, `<rect class="grid" fill="url(#page-grid)" width="%.0f" height="%.1f"/></svg>`, chartWidth, cell*float64(rows))
	return template.HTML(b.String())
}

func alike(a, b MapPage) bool { return a.Own == b.Own && a.Owner == b.Owner && a.Leaked == b.Leaked }

// block draws the pages start..end-1, which are alike and in one row.
func (m *PageMap) block(b *strings.Builder, start, end, columns int, cell float64, rank map[string]int) {
	p := m.Pages[start]
	class, mark := "blank", ""
	switch r, known := rank[p.Owner]; {
	case p.Own:
		class = "own"
	case known && r < namedOwners:
		class, mark = fmt.Sprintf("o%d", r), string(rune('A'+r))
	case known:
		class, mark = "other", "+"
	}
	if p.Leaked {
		class += " leaked"
	}
	x, y := float64(start%columns)*cell, float64(start/columns)*cell
	width := float64(end-start) * cell
	fmt.Fprintf(b, `<g><title>%s</title><rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`,
		template.HTMLEscapeString(m.caption(start, end)), class, x+0.4, y+0.4, width-0.8, cell-0.8)
	if mark != "" && width >= cell && cell >= 9 {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f">%s</text>`, x+width/2, y+cell*0.72, mark)
	}
	b.WriteString(`</g>`)
}

func (m *PageMap) caption(start, end int) string {
	p := m.Pages[start]
	where := fmt.Sprintf("P%d", start)
	if end-start > 1 {
		where = fmt.Sprintf("P%d to P%d", start, end-1)
	}
	switch {
	case p.Own:
		return where + ": written for this request"
	case p.Owner == "":
		return where + ": never written"
	case p.Leaked:
		return fmt.Sprintf("%s: stale, written by %s; its words stand in the answer", where, p.Owner)
	}
	return fmt.Sprintf("%s: stale, written by %s", where, p.Owner)
}
