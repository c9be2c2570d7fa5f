package report

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/campaign"
	"github.com/kvcanary/kvcanary/internal/diagnose"
)

// browser is a headless Chromium that is spoken to over two pipes in the
// DevTools protocol.
type browser struct {
	t       *testing.T
	to      *os.File
	from    *bufio.Reader
	session string
	last    int
	events  []devtools // since the last navigation
}

// devtools is a message of the DevTools protocol.
type devtools struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// startBrowser starts Chromium, which the tests need: apt-get install chromium.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	exe, err := exec.LookPath("chromium")
	for _, other := range []string{"chromium-browser", "google-chrome"} {
		if err != nil {
			exe, err = exec.LookPath(other)
		}
	}
	if err != nil {
		t.Fatal("the pages are looked at in Chromium, which is not here: apt-get install chromium")
	}
	in, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Minute) // a browser that hangs is a failure, and no reason to wait
	t.Cleanup(stop)
	cmd := exec.CommandContext(ctx, exe, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir())
	cmd.ExtraFiles = []*os.File{in, out} // descriptors 3 and 4, as Chromium wants them
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	out.Close()
	b := &browser{t: t, to: to, from: bufio.NewReaderSize(from, 1<<20)}
	t.Cleanup(func() {
		b.session = ""
		b.call("Browser.close", nil, nil)
		cmd.Wait()
		to.Close()
		from.Close()
	})
	var target struct {
		TargetID  string `json:"targetId"`
		SessionID string `json:"sessionId"`
	}
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	b.session = target.SessionID
	b.call("Page.enable", nil, nil)
	b.call("Network.enable", nil, nil)
	b.call("Runtime.enable", nil, nil)
	return b
}

// read is the next message.
func (b *browser) read() devtools {
	b.t.Helper()
	p, err := b.from.ReadBytes(0)
	if err != nil {
		b.t.Fatalf("chromium has ended: %v", err)
	}
	var m devtools
	if err := json.Unmarshal(p[:len(p)-1], &m); err != nil {
		b.t.Fatal(err)
	}
	if m.Method != "" {
		b.events = append(b.events, m)
	}
	return m
}

func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	p, err := json.Marshal(params)
	if err != nil {
		b.t.Fatal(err)
	}
	b.last++
	m, err := json.Marshal(devtools{ID: b.last, Session: b.session, Method: method, Params: p})
	if params == nil {
		m, err = json.Marshal(devtools{ID: b.last, Session: b.session, Method: method})
	}
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.to.Write(append(m, 0)); err != nil {
		b.t.Fatal(err)
	}
	for {
		switch m := b.read(); {
		case m.ID != b.last:
		case m.Error != nil:
			b.t.Fatalf("%s: %s", method, m.Error.Message)
		case result == nil:
			return
		default:
			if err := json.Unmarshal(m.Result, result); err != nil {
				b.t.Fatal(err)
			}
			return
		}
	}
}

// open shows a page at a width, in one of the colour schemes, and returns all
// addresses that were asked for meanwhile.
func (b *browser) open(url string, width int, scheme string) (asked []string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	b.events = nil
	b.call("Page.navigate", map[string]any{"url": url}, nil)
	loaded := func(m devtools) bool { return m.Method == "Page.loadEventFired" }
	for !slices.ContainsFunc(b.events, loaded) {
		b.read()
	}
	b.measure("1") // what the page has begun is told before this is answered
	for _, m := range b.events {
		var sent struct {
			Request struct {
				URL string `json:"url"`
			} `json:"request"`
		}
		if m.Method != "Network.requestWillBeSent" {
			continue
		}
		if err := json.Unmarshal(m.Params, &sent); err != nil {
			b.t.Fatal(err)
		}
		asked = append(asked, sent.Request.URL)
	}
	return asked
}

// measure is what an expression comes to in the page.
func (b *browser) measure(expression string) json.RawMessage {
	b.t.Helper()
	var got struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception json.RawMessage `json:"exceptionDetails"`
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &got)
	if got.Exception != nil {
		b.t.Fatalf("%s", got.Exception)
	}
	return got.Result.Value
}

// picture is the whole page as a PNG.
func (b *browser) picture() []byte {
	b.t.Helper()
	var got struct {
		Data []byte `json:"data"`
	}
	b.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &got)
	return got.Data
}

// look measures what people would see: how wide the page is, what stands out
// of it, what cannot be read for its colours, what a keyboard cannot reach.
const look = `(() => {
  const rgb = s => { const m = s.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m };
  const light = c => c.slice(0, 3).map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4 })
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] > 0) return c } return [255, 255, 255, 1] };
  const out = { inner: innerWidth, scroll: document.documentElement.scrollWidth, text: document.body.innerText, wide: [], faint: [], mute: [] };
  for (const e of document.body.querySelectorAll('*')) {
    const r = e.getBoundingClientRect(), css = getComputedStyle(e), name = e.tagName.toLowerCase() + '.' + (e.getAttribute('class') || '');
    if (r.width === 0) continue;
    if (r.right > innerWidth + 0.5 && !e.closest('.scroll') && !e.closest('svg')) out.wide.push(name);
    if (e.scrollWidth > e.clientWidth + 1 && css.overflowX !== 'visible' && e.tabIndex < 0) out.mute.push(name);
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (!own || e.closest('svg')) continue;
    const size = parseFloat(css.fontSize), big = size >= 24 || size >= 18.66 && css.fontWeight >= 700;
    const [a, b] = [light(rgb(css.color)), light(behind(e))], ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < (big ? 3 : 4.5)) out.faint.push(name + ' ' + ratio.toFixed(2));
  }
  return out;
})()`

type looked struct {
	Inner, Scroll     int
	Text              string
	Wide, Faint, Mute []string
}

// fullPage has all that a page can have: evidence of every length, a map of
// pages, a diagnosis, a timeline with overlaps, words without a space in them.
func fullPage(t *testing.T) []byte {
	t.Helper()
	run, err := Open(hostileRun(t, 60))
	if err != nil {
		t.Fatal(err)
	}
	run.Plan.Facts.PageSize = 16
	long := strings.Repeat("unbreakable", 30)
	run.Result.Target.Model = long
	run.Result.Reason = "leaked " + long
	run.Result.Diagnosis = []diagnose.Diagnosis{{Fault: "stale_reserve", Probability: 0.93, Means: "pages are read that nobody wrote " + long, Check: []string{"Compare the smallest pool with the context.", long}}}
	run.Result.Choices = []campaign.Choice{{Protocol: "roundtrip", Reason: "no budget " + long}}
	for i := range run.Result.Findings {
		f := &run.Result.Findings[i]
		f.Evidence.PageHint = fmt.Sprint(i * 40)
		f.Tenant = long
		if i == 2 {
			f.Evidence.Text = long
		}
	}
	var b bytes.Buffer
	if err := HTML(&b, run); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// cleanPage is that of a run without findings.
func cleanPage(t *testing.T) []byte {
	t.Helper()
	run, err := Open(hostileRun(t, 12))
	if err != nil {
		t.Fatal(err)
	}
	run.Result.Verdict, run.Result.Findings = campaign.Clean, nil
	var b bytes.Buffer
	if err := HTML(&b, run); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func demoPageBytes(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteDemo(&b, smallDemo()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The pages are whole and readable on a desk and on a phone, in light and dark,
// and ask nobody for anything. KVCANARY_PICTURES=DIR keeps the pictures.
func TestPagesInABrowser(t *testing.T) {
	b := startBrowser(t)
	for _, page := range []struct {
		name string
		data []byte
		want []string
	}{
		{"leak", fullPage(t), []string{"Text planted in one exchange came out in another", "abandon ability able", "Which pages of whose prompt came out", "When each exchange was under way", "Prompts of which less was counted than was sent", "What it looks like", "kvcanary run", "</script><b>x</b>"}},
		{"clean", cleanPage(t), []string{"Nothing was found in this sample", "with 95 % confidence fewer than", "Again"}},
		{"demo", demoPageBytes(t), []string{"The page map", "Whose words", "harbour lemon <b>quiet</b> window"}},
	} {
		file := filepath.Join(t.TempDir(), page.name+".html")
		if err := os.WriteFile(file, page.data, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, width := range []int{1200, 390} {
			for _, scheme := range []string{"light", "dark"} {
				name := fmt.Sprintf("%s-%d-%s", page.name, width, scheme)
				asked := b.open("file://"+file, width, scheme)
				if len(asked) != 1 || asked[0] != "file://"+file {
					t.Errorf("%s asks for %q", name, asked)
				}
				var got looked
				if err := json.Unmarshal(b.measure(look), &got); err != nil {
					t.Fatal(err)
				}
				if got.Inner != width || got.Scroll > got.Inner || len(got.Wide) > 0 {
					t.Errorf("%s is %d wide in a window of %d; out of it stand %q", name, got.Scroll, got.Inner, got.Wide)
				}
				if len(got.Faint) > 0 || len(got.Mute) > 0 {
					t.Errorf("%s: too faint are %q, no keyboard reaches %q", name, got.Faint, got.Mute)
				}
				for _, want := range page.want {
					if !strings.Contains(got.Text, want) {
						t.Errorf("%s lacks %q", name, want)
					}
				}
				if err := keepPicture(name, b.picture(), width); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}

// keepPicture looks whether anything is on a picture, and keeps it where asked to.
func keepPicture(name string, p []byte, width int) error {
	picture, _, err := image.Decode(bytes.NewReader(p))
	if err != nil {
		return err
	}
	colours := map[[3]uint32]bool{}
	size := picture.Bounds().Size()
	for y := 0; y < size.Y; y += 13 {
		for x := 0; x < size.X; x += 13 {
			r, g, b, _ := picture.At(x, y).RGBA()
			colours[[3]uint32{r, g, b}] = true
		}
	}
	if size.X != width || size.Y < 900 || len(colours) < 8 {
		return fmt.Errorf("the picture is %v with %d colours", size, len(colours))
	}
	if dir := os.Getenv("KVCANARY_PICTURES"); dir != "" {
		return errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name+".png"), p, 0o644))
	}
	return nil
}
