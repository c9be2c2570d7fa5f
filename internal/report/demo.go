package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"sort"

	"github.com/kvcanary/kvcanary/internal/prose"
)

// Demo is what the page of `kvcanary demo` shows. Everything in it was
// measured during the demo; nothing is drawn from what should have happened.
type Demo struct {
	Version   string
	Seed      uint64
	Command   string // repeats the demo
	Context   int    // tokens
	Pool      int    // prefill pool, tokens
	Decode    int    // decode pool, tokens
	PageSize  int    // tokens
	Seconds   float64
	AsTold    bool // every act ended as the story says
	Acts      []DemoAct
	Map       *PageMap // of the answer that leaked; nil if none did
	Answer    string   // what the leaking request was answered with
	OwnPrompt string   // how the leaking request began
}

// DemoAct is one act as it was played.
type DemoAct struct {
	Name     string
	Title    string
	Verdict  string
	Expected string
	Findings int
	Lines    []string // told in plain words
}

// AsTold reports whether the act ended with the verdict that the story expects.
func (a DemoAct) AsTold() bool { return a.Verdict == a.Expected }

// PageMap is the page table of one request on the decode node, in the order of
// its prompt, and whose bytes each page held when attention read it.
type PageMap struct {
	Request  string // request id of the answer
	Sent     int    // length of its prompt, tokens
	Reported int    // prompt tokens that the answer reported
	PageSize int    // tokens
	Pages    []MapPage
	Leaks    []MapLeak
}

// MapPage is one entry of the page table.
type MapPage struct {
	Index  int    // place in the request's page table
	Page   int    // page number in the pool
	Own    bool   // written for this request
	Owner  string // who wrote it last: "exchange 2, tenant alpha"; "" if nobody did
	Origin int    // place in its owner's page table
	Leaked bool   // words of it stand in the answer
}

// MapLeak is one run of leaked words, or a short canary, and where it was planted.
type MapLeak struct {
	Owner string
	Word  int // offset of the first word in the canary
	Words int // 0 for a short canary
	Text  string
	Pages []int // places in the reader's page table that hold it, ascending
}

// Where says which pages of the reader's table hold the words.
func (l MapLeak) Where() string {
	n := len(l.Pages)
	switch {
	case n == 0:
		return "not in the table"
	case n == 1:
		return fmt.Sprintf("P%d", l.Pages[0])
	case l.Pages[n-1]-l.Pages[0] == n-1:
		return fmt.Sprintf("P%d to P%d", l.Pages[0], l.Pages[n-1])
	}
	return fmt.Sprintf("%s pages from P%d to P%d", prose.Thousands(n), l.Pages[0], l.Pages[n-1])
}

// Which says which part of the canary it is.
func (l MapLeak) Which() string {
	if l.Words == 0 {
		return "its short form"
	}
	return fmt.Sprintf("%s to %s", prose.Thousands(l.Word), prose.Thousands(l.Word+l.Words-1))
}

//go:embed demo.html
var demoPage string

// style is what all pages look alike by.
//
//go:embed style.html
var style string

// WriteDemo writes one self-contained page: no script, no font, no picture is
// fetched from anywhere.
func WriteDemo(w io.Writer, d Demo) error {
	t, err := template.New("demo").Funcs(template.FuncMap{
		"thousands": prose.Thousands,
		"chart":     func(m *PageMap) template.HTML { return m.chart() },
		"legend":    func(m *PageMap) []legendRow { return m.legend() },
		"inc":       func(i int) int { return i + 1 },
	}).Parse(style + demoPage)
	if err != nil {
		return fmt.Errorf("demo page: %w", err)
	}
	return t.Execute(w, d)
}

// Written is how many pages were written for the request itself.
func (m *PageMap) Written() int { return m.count(func(p MapPage) bool { return p.Own }) }

// Stale is how many pages held what another request had left there.
func (m *PageMap) Stale() int {
	return m.count(func(p MapPage) bool { return !p.Own && p.Owner != "" })
}

// Blank is how many pages nobody had ever written.
func (m *PageMap) Blank() int {
	return m.count(func(p MapPage) bool { return !p.Own && p.Owner == "" })
}

func (m *PageMap) count(is func(MapPage) bool) int {
	n := 0
	for _, p := range m.Pages {
		if is(p) {
			n++
		}
	}
	return n
}

// owners lists who wrote stale pages, most pages first.
func (m *PageMap) owners() []string {
	pages := map[string]int{}
	for _, p := range m.Pages {
		if !p.Own && p.Owner != "" {
			pages[p.Owner]++
		}
	}
	names := make([]string, 0, len(pages))
	for name := range pages {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool {
		if pages[names[i]] != pages[names[j]] {
			return pages[names[i]] > pages[names[j]]
		}
		return names[i] < names[j]
	})
	return names
}

// Owners is how many other requests' pages were read.
func (m *PageMap) Owners() int { return len(m.owners()) }
