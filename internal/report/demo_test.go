package report

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/prose"
)

// smallDemo is a demo page's content of the small scale's size.
func smallDemo() Demo {
	m := &PageMap{Request: "chatcmpl-1", Sent: 10700, Reported: 1, PageSize: 16}
	for i := range 669 {
		p := MapPage{Index: i, Page: i}
		switch {
		case i == 0:
			p.Own = true
		case i < 400:
			p.Owner, p.Origin = "exchange 12, tenant alpha", i
			p.Leaked = i == 17 || i == 18
		case i < 600:
			p.Owner = fmt.Sprintf("exchange %d, tenant beta", i/25)
		}
		m.Pages = append(m.Pages, p)
	}
	m.Leaks = []MapLeak{{Owner: "exchange 12, tenant alpha", Word: 41, Words: 12, Text: "harbour lemon <b>quiet</b> window", Pages: []int{17, 18}}}
	return Demo{
		Version: "devel", Command: "kvcanary demo --seed 1", Context: 16384, Pool: 10640, Decode: 20480, PageSize: 16, Seconds: 12, AsTold: true,
		Acts: []DemoAct{
			{Name: "classic_smoke", Title: "The published script", Verdict: "clean", Expected: "clean", Lines: []string{"It plants one secret and asks for five haikus."}},
			{Name: "straddle", Title: "kvcanary", Verdict: "leak", Expected: "leak", Findings: 3, Lines: []string{"It asks just under and just over the pool."}},
		},
		Map: m, Answer: "Ref: harbour lemon <script>alert(1)</script>", OwnPrompt: "code alpha: k7f3q-2mp4x ...",
	}
}

func TestDemoPageIsSelfContainedAndEscaped(t *testing.T) {
	var b bytes.Buffer
	if err := WriteDemo(&b, smallDemo()); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{
		"harbour lemon &lt;b&gt;quiet", "&lt;script&gt;alert", "P17 to P18", "1 written for the request, 599 stale from 9 other requests, 69 never written",
		"<td>41 to 52</td>", "10,700 tokens",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, banned := range []string{"http://", "https://", "<script", "src=", "@import", "url(h", "url(\""} {
		if strings.Contains(page, banned) {
			t.Errorf("the page has %q: it must fetch and run nothing", banned)
		}
	}
	if out := os.Getenv("KVCANARY_DEMO_PAGE"); out != "" {
		if err := os.WriteFile(out, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDemoPageSaysWhenTheStoryFailed(t *testing.T) {
	d := smallDemo()
	d.AsTold, d.Map = false, nil
	d.Acts[1].Verdict = "clean"
	var b bytes.Buffer
	if err := WriteDemo(&b, d); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"did not end as told", "expected leak"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestFullScaleMapStaysSmall(t *testing.T) {
	d := smallDemo()
	d.Map.Pages = nil
	for i := range 10700 {
		d.Map.Pages = append(d.Map.Pages, MapPage{Index: i, Page: i, Own: i == 0, Owner: fmt.Sprintf("exchange %d", i/90)})
	}
	var b bytes.Buffer
	if err := WriteDemo(&b, d); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 200_000 {
		t.Errorf("the page of 10,700 pages has %d bytes, want at most 200,000", b.Len())
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 681280: "681,280", 1048576: "1,048,576"} {
		if got := prose.Thousands(n); got != want {
			t.Errorf("thousands(%d) = %q, want %q", n, got, want)
		}
	}
}
