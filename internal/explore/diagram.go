package explore

import (
	"encoding/xml"
	"fmt"
	"strings"
)

var parties = []party{client_, router_, prefill_, decode_, pages_}

func place(name string) int {
	for i, c := range parties {
		if string(c) == name {
			return i
		}
	}
	return 0
}

// columnWidth is how many characters apart the lines of a text diagram are.
const columnWidth = 12

// Diagram draws a counterexample as a sequence diagram in text. An arrow is
// drawn when its message arrives.
func (c Counterexample) Diagram() string {
	var b strings.Builder
	b.WriteString("     ")
	for _, name := range parties {
		fmt.Fprintf(&b, "%-*s", columnWidth, name)
	}
	b.WriteString("\n")
	for i, s := range c.Steps {
		fmt.Fprintf(&b, "%3d  %s  %s\n", i+1, s.Arrow.line(), s.Arrow.Label)
	}
	for _, v := range c.Broken {
		fmt.Fprintf(&b, "     %v: %s\n", v.Invariant, v.Text)
	}
	return b.String()
}

func (a Arrow) line() string {
	row := []byte(strings.Repeat("|"+strings.Repeat(" ", columnWidth-1), len(parties)-1) + "|")
	from, to := place(a.From)*columnWidth, place(a.To)*columnWidth
	switch {
	case from == to:
		row[from] = '*'
	case from < to:
		for i := from + 1; i < to; i++ {
			row[i] = '-'
		}
		row[to-1] = '>'
	default:
		for i := to + 1; i < from; i++ {
			row[i] = '-'
		}
		row[to+1] = '<'
	}
	if a.Lost {
		row[(from+to)/2] = 'x'
	}
	return string(row)
}

// Sizes of the drawing, in pixels.
const (
	svgColumn = 130
	svgRow    = 26
	svgLeft   = 60
	svgTop    = 50
	svgText   = svgLeft + 4*svgColumn + 40 // where labels begin
	svgWidth  = svgText + 420
)

// SVG draws a counterexample as a sequence diagram.
func (c Counterexample) SVG() string {
	var b strings.Builder
	height := svgTop + svgRow*(len(c.Steps)+len(c.Broken)+1)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n",
		svgWidth, height, svgWidth, height)
	b.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	bottom := svgTop + svgRow*len(c.Steps)
	for i, name := range parties {
		x := svgLeft + i*svgColumn
		fmt.Fprintf(&b, `<text x="%d" y="24" text-anchor="middle" font-weight="bold">%s</text>`+"\n", x, name)
		fmt.Fprintf(&b, `<line x1="%d" y1="34" x2="%d" y2="%d" stroke="#bbb"/>`+"\n", x, x, bottom)
	}
	for i, s := range c.Steps {
		s.Arrow.draw(&b, i+1, svgTop+svgRow*i+svgRow/2)
	}
	for i, v := range c.Broken {
		text(&b, svgLeft, bottom+svgRow*(i+1), "#b00020", fmt.Sprintf("%v: %s", v.Invariant, v.Text))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (a Arrow) draw(b *strings.Builder, n, y int) {
	from, to := svgLeft+place(a.From)*svgColumn, svgLeft+place(a.To)*svgColumn
	text(b, 8, y+4, "#777", fmt.Sprint(n))
	text(b, svgText, y+4, "#222", a.Label)
	if from == to {
		fmt.Fprintf(b, `<circle cx="%d" cy="%d" r="5" fill="#1f4e9c"/>`+"\n", from, y)
		return
	}
	head, dash, back := 8, "", -1
	if from > to {
		back = 1
	}
	if a.Lost {
		dash, to = ` stroke-dasharray="4 4"`, (from+to)/2
		text(b, to-4, y+5, "#b00020", "x")
	}
	fmt.Fprintf(b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#1f4e9c" stroke-width="1.5"%s/>`+"\n", from, y, to, y, dash)
	fmt.Fprintf(b, `<path d="M%d %d l%d -4 v8 z" fill="#1f4e9c"/>`+"\n", to, y, back*head)
}

func text(b *strings.Builder, x, y int, colour, s string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" fill="%s">`, x, y, colour)
	xml.EscapeText(b, []byte(s)) // strings.Builder has no errors
	b.WriteString("</text>\n")
}
