package lab

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/lab/model"
)

// with starts an engine with a prefix cache, a fault and some defences.
func with(t *testing.T, fault string, defences ...string) *Engine {
	cfg := reusing()
	cfg.Faults, cfg.Defences = []string{fault}, defences
	return startPipe(t, cfg)
}

// B learns by the count, and by the time, that A has sent what B sends.
func TestSharedPrefix(t *testing.T) {
	type shares struct {
		fault    string
		defences []string
		evict    bool // A's prompt is in the second tier by then
		shared   bool
	}
	for _, c := range brief([]shares{
		{"shared_prefix", nil, false, true},
		{"shared_prefix", []string{"salt"}, false, false},
		{"shared_prefix:tier", nil, true, true},
		{"shared_prefix:tier", []string{"salt"}, true, false},
		{"shared_prefix:tier", nil, false, false},
		{"shared_prefix", []string{"block_tags"}, false, false},
		{"shared_prefix", []string{"full_compare", "publish_after_commit", "zero_on_alloc:all", "tier_generations"}, false, true},
		{"shared_prefix", []string{"salt:gpu_only"}, false, false},
		{"shared_prefix", []string{"salt:gpu_only"}, true, true},
		{"shared_prefix", []string{"salt:client"}, false, true}, // neither says any
	}, 4) {
		cfg := reusing()
		cfg.Faults, cfg.Defences, cfg.Tier = []string{c.fault}, c.defences, 8192
		e := startPipe(t, cfg)
		rng := rand.New(rand.NewPCG(1, 22))
		text := words(rng, 800) + " code one: sword fish\ncode one:"
		cached(t, e, as("a", text))
		if c.evict {
			for range 2 {
				cached(t, e, as("c", words(rng, 1500)))
			}
		}
		n, answer := cached(t, e, as("b", text))
		if (n > 700) != c.shared || strings.TrimSpace(answer) != "sword fish" {
			t.Errorf("%s %v, evicted %v: %d tokens are cached for b, who is told %q", c.fault, c.defences, c.evict, n, answer)
		}
	}
}

// A salt that clients choose keeps apart those who choose different ones. Whoever
// says what another says, in either tier, finds what that has sent.
func TestSaltThatClientsChoose(t *testing.T) {
	for _, c := range []struct {
		defence    string
		mine, hers string
		evict      bool
		shared     bool
	}{
		{"salt:client", "hers", "hers", false, true}, {"salt:client", "hers", "hers", true, true}, {"salt:client", "", "", false, true},
		{"salt:client", "mine", "hers", false, false}, {"salt:client", "", "hers", true, false},
		{"salt", "hers", "hers", false, false}, {"salt", "hers", "hers", true, false},
	} {
		cfg := reusing()
		cfg.Faults, cfg.Defences, cfg.Tier = []string{"shared_prefix"}, []string{c.defence}, 8192
		e := startPipe(t, cfg)
		rng := rand.New(rand.NewPCG(1, 27))
		text := words(rng, 800) + " code one: sword fish\ncode one:"
		hers := as("a", text)
		hers.Salt = c.hers
		cached(t, e, hers)
		if c.evict {
			for range 2 {
				cached(t, e, as("c", words(rng, 1500)))
			}
		}
		mine := as("b", text)
		mine.Salt = c.mine
		if n, answer := cached(t, e, mine); (n > 700) != c.shared || strings.TrimSpace(answer) != "sword fish" {
			t.Errorf("%s, %q and %q, evicted %v: %d tokens are cached for the second, who is told %q", c.defence, c.hers, c.mine, c.evict, n, answer)
		}
	}
}

// A session that has been pushed out to the second tier comes back as another.
func TestStaleSourceTier(t *testing.T) {
	type back struct {
		defence string
		leaks   bool
	}
	for _, c := range brief([]back{
		{"tier_checksum:hop", true}, {"tier_checksum", false}, {"tier_generations", false}, {"block_tags", false},
		{"quiesce", true}, {"salt", true}, {"full_compare", true}, {"publish_after_commit", true}, {"zero_on_alloc:all", true},
		{"checksum", true}, {"generations", true},
	}, 4) {
		cfg := reusing()
		cfg.Faults, cfg.Defences, cfg.Tier = []string{"stale_source:tier"}, []string{c.defence}, 2048
		e := startPipe(t, cfg)
		rng := rand.New(rand.NewPCG(1, 23))
		text := words(rng, 700) + " ref for this session:"
		_, cold := cached(t, e, as("b", text))
		others := churn(t, e, rng, 1)
		n, answer := cached(t, e, as("b", text))
		piece := longestPiece(answer, others)
		if (len(piece) > 12) != c.leaks || c.leaks && n == 0 || !c.leaks && answer != cold {
			t.Errorf("%s: %d cached, %q is somebody else's, answer %q, before %q", c.defence, n, piece, answer, cold)
		}
	}
}

// With few bits in the key some blocks of a prompt are another's.
func TestThinKeyWeakHash(t *testing.T) {
	for _, c := range []struct {
		defences []string
		mixed    bool
	}{
		{nil, true}, {[]string{"full_compare"}, false},
	} {
		e := with(t, "thin_key", c.defences...)
		rng := rand.New(rand.NewPCG(1, 24))
		churn(t, e, rng, 1)
		lost, found := 0, 0
		for range 40 {
			value := words(rng, 9)
			n, text := cached(t, e, as("b", "code one: "+value+"\n"+words(rng, 30)+" code one:"))
			if strings.TrimSpace(text) != strings.TrimSpace(value) {
				lost++
			}
			if n > 0 {
				found++
			}
		}
		if (lost > 0) != c.mixed || (found > 0) != c.mixed {
			t.Errorf("%v: of 40 prompts, all new, %d hit and %d lost their beginning", c.defences, found, lost)
		}
	}
}

// pixel is a picture of one shade.
func pixel(t *testing.T, shade uint8) model.Picture {
	t.Helper()
	m := image.NewGray(image.Rect(0, 0, 1, 1))
	m.SetGray(0, 0, color.Gray{Y: shade})
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	p, err := model.Look(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// shown is a chat with a picture in it, and what is right to say of it.
func shown(tenant, stem string, p model.Picture) (r Request, want string) {
	r = as(tenant, stem+strings.Repeat(string([]byte{model.Image}), model.ImageTokens)+" What is it? The picture shows:")
	r.Images = []Image{{At: bytes.IndexByte(r.Tokens, model.Image), Picture: p}}
	says, _, _ := strings.Cut(strings.TrimPrefix(string(p.Sees), "\nThe picture shows: "), "\n")
	return r, says
}

// mixes is whether two tenants get each other's pages where the key leaves
// something out, by the defences that are on.
var mixes = []struct {
	defences []string
	mixed    bool
}{
	{nil, true}, {[]string{"salt"}, false}, {[]string{"block_tags"}, false}, {[]string{"full_compare", "zero_on_alloc:all"}, true},
}

// Two tenants ask the same about two pictures.
func TestThinKeyOmitsPictures(t *testing.T) {
	for _, c := range brief(mixes, 2) {
		e := with(t, "thin_key:omit_media", c.defences...)
		rng := rand.New(rand.NewPCG(1, 25))
		for i := range uint8(3) {
			stem := words(rng, 300)
			a, says := shown("a", stem, pixel(t, 10+i))
			if _, text := cached(t, e, a); strings.TrimSpace(text) != says {
				t.Fatalf("a sees %q, not %q", text, says)
			}
			b, right := shown("b", stem, pixel(t, 100+i))
			n, text := cached(t, e, b)
			want := right
			if c.mixed {
				want = says
			}
			if strings.TrimSpace(text) != want || (n > 0) != c.mixed {
				t.Errorf("%v: b sees %q, want %q, with %d cached", c.defences, text, want, n)
			}
		}
	}
}

// Two tenants ask two adapters the same.
func TestThinKeyOmitsAdapters(t *testing.T) {
	for _, c := range brief(mixes, 2) {
		e := with(t, "thin_key:omit_adapter", c.defences...)
		rng := rand.New(rand.NewPCG(1, 26))
		for range 3 {
			text := words(rng, 300) + " code one: sword fish\n" + words(rng, 40) + " code one:"
			a, b := as("a", text), as("b", text)
			a.Adapter, b.Adapter = "ada", "ben"
			if _, got := cached(t, e, a); strings.TrimSpace(got) != "sword fish" {
				t.Fatalf("a is told %q", got)
			}
			n, got := cached(t, e, b)
			if (strings.TrimSpace(got) != "sword fish") != c.mixed || (n > 0) != c.mixed {
				t.Errorf("%v: b is told %q, with %d cached", c.defences, got, n)
			}
		}
	}
}

// A repeated prompt reads what was copied before it was computed.
func TestEarlyPublishCopyRace(t *testing.T) {
	for _, c := range []struct {
		defence string
		mixed   bool
	}{{"block_tags", true}, {"publish_after_commit", false}} {
		e := with(t, "early_publish:copy_race", c.defence)
		rng := rand.New(rand.NewPCG(1, 27))
		churn(t, e, rng, 1)
		wrong := 0
		for range 2 {
			own := as("b", words(rng, 900)+" code one: sword fish\n"+words(rng, 300)+" code one:")
			cached(t, e, own)
			if _, text := cached(t, e, own); strings.TrimSpace(text) != "sword fish" {
				wrong++
			}
		}
		if (wrong > 0) != c.mixed {
			t.Errorf("%s: %d of 2 answers differ the second time", c.defence, wrong)
		}
	}
}

// A session that goes on finds its own answer's first letter wrong, if the answer
// began at the end of a block.
func TestEarlyPublishLastSlot(t *testing.T) {
	for _, c := range []struct {
		defence string
		mixed   bool
	}{{"zero_on_alloc:all", true}, {"publish_after_commit", false}} {
		e := with(t, "early_publish:last_slot", c.defence)
		rng := rand.New(rand.NewPCG(1, 28))
		wrong := 0
		for i := range 16 {
			first := words(rng, 30+i) + " code one: sword fish\n" + words(rng, 10) + " code one:"
			_, answer := cached(t, e, as("b", first))
			next := model.Template(nil, []model.Message{
				{Role: model.RoleUser, Text: first}, {Role: model.RoleAssistant, Text: answer}, {Role: model.RoleUser, Text: "Reply with OK."},
			})
			r := as("b", "")
			r.Tokens = next
			n, _ := cached(t, e, r)
			if n > len(as("b", first).Tokens) {
				wrong++ // a block that ends with the answer's first token, of which prefill has computed nothing
			}
		}
		if (wrong > 0) != c.mixed {
			t.Errorf("%s: %d of 16 sessions go on over a block that was not computed", c.defence, wrong)
		}
	}
}
