package matrix

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Document puts a table's parts into a document: each between the lines
// "<!-- matrix NAME -->" and "<!-- end -->", for the names power, best, short,
// clean and defences. Everything else stays.
func (t *Table) Document(doc []byte) ([]byte, error) {
	for _, part := range []struct {
		name  string
		write func() string
	}{
		{"power", t.powerGrid}, {"best", t.bestRows}, {"short", t.shortList}, {"clean", t.cleanRows}, {"defences", t.defenceGrid},
	} {
		begin, end := []byte("<!-- matrix "+part.name+" -->\n"), []byte("<!-- end -->")
		head, rest, ok := bytes.Cut(doc, begin)
		old, tail, closed := bytes.Cut(rest, end)
		if !ok || !closed || bytes.Contains(old, []byte("<!-- matrix")) {
			return nil, fmt.Errorf("the document has no %q with %q after it: put both where the table belongs", bytes.TrimSpace(begin), end)
		}
		doc = slices.Concat(head, begin, []byte(part.write()), end, tail)
	}
	return doc, nil
}

// markdown is a table of the given rows, the first of which names the columns.
func markdown(rows [][]string) string {
	var b bytes.Buffer
	if err := write(&b, rows, "| ", " | ", " |"); err != nil {
		panic("kvcanary: internal error: " + err.Error()) // a buffer takes everything
	}
	return b.String()
}

// powerGrid has a fault a line and a probe a column: percent found, and of how
// many trials.
func (t *Table) powerGrid() string {
	power := t.only(func(c *Cell) bool { return !isInnocent(c.Fault) && c.Defence == "" })
	rows := [][]string{{"fault"}}
	for _, p := range Probes() {
		if slices.ContainsFunc(power.Cells, func(c Cell) bool { return c.Probe == p.Name }) {
			rows[0] = append(rows[0], p.Name)
		}
	}
	for _, fault := range Faults() {
		row, any := make([]string, len(rows[0])), false
		row[0] = fault
		for _, c := range power.Cells {
			if i := slices.Index(rows[0], c.Probe); c.Fault == fault && i > 0 {
				row[i], any = c.share(), true
			}
		}
		if any {
			rows = append(rows, row)
		}
	}
	return markdown(rows)
}

// share is how often a fault was found, in few letters.
func (c *Cell) share() string {
	if c.Found.Count == 0 {
		return fmt.Sprintf("0/%d", c.Trials)
	}
	s := fmt.Sprintf("%.0f %%, %d/%d", 100*c.Found.Rate, c.Found.Count, c.Trials)
	if c.Found.Rate >= wanted {
		s = "**" + s + "**"
	}
	return s
}

// wanted is how often a fault has to be found by one protocol at least.
const wanted = 0.95

// bestRows has each fault under the probe that finds it most often.
func (t *Table) bestRows() string {
	out := t.only(func(c *Cell) bool { return !isInnocent(c.Fault) && t.best(c.Fault) == c })
	return markdown(out.rows())
}

// cleanRows has the endpoints on which every finding is a false alarm.
func (t *Table) cleanRows() string {
	rows := [][]string{{"endpoint", "campaigns", "leaks and misroutes", "other findings", "inconclusive"}}
	all := Cell{}
	for _, fault := range Faults() {
		sum := Cell{}
		for _, c := range t.Cells {
			if c.Fault == fault && isInnocent(fault) && c.Defence == "" {
				sum.add(&c)
			}
		}
		if sum.Trials > 0 {
			rows = append(rows, sum.cleanRow(fault))
			all.add(&sum)
		}
	}
	if all.Trials > 0 {
		rows = append(rows, all.cleanRow("**all**"))
	}
	return markdown(rows)
}

func (c *Cell) add(o *Cell) {
	c.Trials += o.Trials
	c.Found.Count += o.Found.Count
	c.Leak.Count += o.Leak.Count
	c.Unsure += o.Unsure
}

func (c *Cell) cleanRow(name string) []string {
	leaks, others := rate(c.Leak.Count, c.Trials), rate(c.Found.Count-c.Leak.Count, c.Trials)
	return []string{name, fmt.Sprint(c.Trials), counted(leaks), counted(others), fmt.Sprint(c.Unsure)}
}

// counted is a count with the upper end of what it may be in the long run.
func counted(r Rate) string { return fmt.Sprintf("%d (below %.1f %%)", r.Count, 100*r.Upper) }

// shortList says of every fault that no probe finds often enough by how much it
// falls short, and why.
func (t *Table) shortList() string {
	var b strings.Builder
	for _, fault := range Faults() {
		c := t.best(fault)
		if c == nil || isInnocent(fault) || c.Found.Rate >= wanted {
			continue
		}
		why := limitOf(fault)
		fmt.Fprintf(&b, "- **%s**: %s finds %s %% in one run of its default length. %s\n", fault, c.Probe, c.Found, why)
	}
	if b.Len() == 0 {
		return "Every fault is found by one protocol in at least 95 % of its trials.\n"
	}
	return b.String()
}

// defenceGrid has a defence a line and a fault a column, as the model's table does.
func (t *Table) defenceGrid() string {
	defended := t.only(func(c *Cell) bool { return c.Defence != "" })
	if len(defended.Cells) == 0 {
		return "Not measured.\n"
	}
	return markdown(defended.grid())
}
