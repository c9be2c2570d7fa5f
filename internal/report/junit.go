package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/kvcanary/kvcanary/internal/campaign"
	"github.com/kvcanary/kvcanary/internal/prose"
)

type junitSuite struct {
	XMLName   xml.Name    `xml:"testsuite"`
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Errors    int         `xml:"errors,attr"`
	Skipped   int         `xml:"skipped,attr"`
	Time      string      `xml:"time,attr"`
	Timestamp string      `xml:"timestamp,attr"`
	Cases     []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name      string      `xml:"name,attr"`
	Class     string      `xml:"classname,attr"`
	Time      string      `xml:"time,attr"`
	Failures  []junitText `xml:"failure,omitempty"`
	Error     *junitText  `xml:"error,omitempty"`
	Skipped   *junitText  `xml:"skipped,omitempty"`
	SystemOut string      `xml:"system-out,omitempty"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// JUnit writes a run as JUnit XML: a test case for each protocol, a failure
// for each finding. What was not reached is skipped; a run that came to
// nothing at all is an error.
func JUnit(w io.Writer, run *Run) error {
	r := run.Result
	s := junitSuite{Name: "kvcanary", Timestamp: r.Started.UTC().Format("2006-01-02T15:04:05"), Time: seconds(r.Ended.Sub(r.Started).Seconds())}
	class := "kvcanary." + strings.ReplaceAll(prose.Printable(r.Target.Model), ".", "_")
	for _, p := range r.Protocols {
		c := junitCase{Name: prose.Printable(p.Name), Class: class, Time: seconds(p.Seconds)}
		for _, f := range r.Findings {
			if f.Protocol == p.Name {
				c.Failures = append(c.Failures, junitText{prose.Printable(f.Explain), prose.Printable(string(f.Kind)), fmt.Sprintf("exchange %d, tenant %s\n%s", f.Exchange, prose.Printable(f.Tenant), quote(f.Evidence))})
			}
		}
		if p.Verdict == campaign.Inconclusive && len(c.Failures) == 0 {
			c.Skipped = &junitText{Message: prose.Printable(p.Reason)}
		}
		if p.Bound != nil {
			c.SystemOut = Bound(p.Bound)
		}
		s.add(c)
	}
	for _, x := range r.Choices {
		if !x.Runs {
			s.add(junitCase{Name: prose.Printable(x.Protocol), Class: class, Time: seconds(0), Skipped: &junitText{Message: prose.Printable(x.Reason)}})
		}
	}
	if r.Verdict == campaign.Inconclusive && (len(r.Protocols) == 0 || r.Controls.NeverSentHits > 0) {
		s.add(junitCase{Name: "run", Class: class, Time: seconds(0), Error: &junitText{Message: prose.Printable(r.Reason), Type: "inconclusive"}})
	}
	return s.write(w)
}

func (s *junitSuite) write(w io.Writer) error {
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(s); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *junitSuite) add(c junitCase) {
	s.Cases = append(s.Cases, c)
	s.Tests++
	switch {
	case len(c.Failures) > 0:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
}

func seconds(s float64) string { return fmt.Sprintf("%.3f", max(s, 0)) }
