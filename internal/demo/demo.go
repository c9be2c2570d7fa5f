// Package demo plays the incident on one machine: an engine that leaks, the
// published script that misses it, the proof, the fix.
//
// Every act starts a fresh engine as processes of its own and probes it from
// outside, over its API, as anybody would. What an act tells is read from what
// came back.
package demo

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/campaign"
	"github.com/kvcanary/kvcanary/internal/engine"
	"github.com/kvcanary/kvcanary/internal/lab"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/probe"
	"github.com/kvcanary/kvcanary/internal/wire"
)

// Schema names the JSON of a Result.
const Schema = "kvcanary.demo/v1"

// Options say how the demo is played.
type Options struct {
	Exe     string // kvcanary itself; it is started again as the engine
	Full    bool   // the incident's own numbers instead of small ones with its proportions
	Seed    uint64
	Version string
	// Act is called when an act ends; nil tells nobody.
	Act func(Act)
	// Progress is told about every exchange; nil tells nobody.
	Progress func(campaign.Progress)
}

// Result is what the demo came to. JSON names are a contract.
type Result struct {
	Schema  string  `json:"schema"`
	Scale   string  `json:"scale"` // "small" or "full"
	Seed    uint64  `json:"seed"`
	Seconds float64 `json:"seconds"`
	AsTold  bool    `json:"as_told"` // every act ended with the verdict that the story expects
	Acts    []Act   `json:"acts"`

	// Leak is what the page of the demo draws; nil if nothing leaked.
	Leak *Leak `json:"-"`
}

// Act is one act as it was played.
type Act struct {
	Name     string           `json:"name"`
	Title    string           `json:"title"`
	Verdict  campaign.Verdict `json:"verdict"`
	Expected campaign.Verdict `json:"expected"`
	Findings []oracle.Finding `json:"findings"`
	Told     []string         `json:"told"` // what happened, in plain words
	Engine   Engine           `json:"engine"`
	Spent    campaign.Spent   `json:"spent"`
	Bound    *campaign.Bound  `json:"bound,omitempty"`
}

// Engine is what an act was played against. Sizes are in tokens.
type Engine struct {
	Context     int      `json:"context"`
	PrefillPool int      `json:"prefill_pool"`
	DecodePool  int      `json:"decode_pool"`
	PageSize    int      `json:"page_size"`
	Faults      []string `json:"faults"`
	Defences    []string `json:"defences"`
}

// AsTold reports whether the act ended as the story says.
func (a Act) AsTold() bool { return a.Verdict == a.Expected }

// Scale is the engine of the first act.
func Scale(full bool) lab.Config {
	if full {
		return lab.Full()
	}
	return lab.Small()
}

// TempPrefix is how the name of a demo's temporary directory begins.
const TempPrefix = "kvcanary-demo-"

// Play plays all acts. An error means that the demo could not be played, not
// that it ended otherwise than told.
func Play(ctx context.Context, o Options) (*Result, error) {
	dir, err := os.MkdirTemp("", TempPrefix)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	began := time.Now()
	r := &Result{Schema: Schema, Scale: "small", Seed: o.Seed, AsTold: true}
	if o.Full {
		r.Scale = "full"
	}
	for i, s := range script(Scale(o.Full)) {
		st := &stage{options: o, scene: s, dir: filepath.Join(dir, fmt.Sprint(i+1)), key: key(o.Seed)}
		act, err := st.play(ctx)
		if err != nil {
			return nil, fmt.Errorf("act %d, %s: %w", i+1, s.name, err)
		}
		if st.leak != nil && r.Leak == nil {
			r.Leak = st.leak
		}
		r.Acts = append(r.Acts, *act)
		r.AsTold = r.AsTold && act.AsTold()
		if o.Act != nil {
			o.Act(*act)
		}
	}
	r.Seconds = time.Since(began).Seconds()
	return r, nil
}

// key is the demo's own: the same seed plays the same prompts. It protects
// nothing, everything that it marks stays on this machine.
func key(seed uint64) canary.Key {
	return sha256.Sum256(binary.BigEndian.AppendUint64([]byte("kvcanary demo key "), seed))
}

// stage is one act under way.
type stage struct {
	options Options
	scene   scene
	dir     string
	key     canary.Key
	seen    []seen
	leak    *Leak
}

// seen is one exchange with the prompt that was sent.
type seen struct {
	wire.Exchange
	messages []wire.Message
}

func (st *stage) play(ctx context.Context) (*Act, error) {
	if err := os.Mkdir(st.dir, 0o700); err != nil {
		return nil, err
	}
	trace := filepath.Join(st.dir, "trace")
	p, err := startLab(ctx, st.options.Exe, st.scene.lab, filepath.Dir(st.dir), trace)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	result, err := st.campaign(ctx, p.url)
	if err != nil {
		return nil, err
	}
	if err := p.stop(); err != nil {
		return nil, err
	}
	if st.scene.draw {
		if st.leak, err = st.drawLeak(result, trace); err != nil {
			return nil, err
		}
	}
	c := st.scene.lab
	act := &Act{
		Name: st.scene.name, Title: st.scene.title, Verdict: result.Verdict, Expected: st.scene.expected,
		Findings: result.Findings, Spent: result.Spent, Bound: result.Protocols[0].Bound,
		Engine: Engine{c.Context, c.PrefillPool, c.DecodePool, c.PageSize, orEmpty(c.Faults), orEmpty(c.Defences)},
	}
	act.Told = st.scene.tell(st, result)
	return act, nil
}

// campaign probes the engine as kvcanary run does. One exchange at a time: the
// same seed tells the same story.
func (st *stage) campaign(ctx context.Context, url string) (*campaign.Result, error) {
	out := filepath.Join(st.dir, "run")
	spill, err := campaign.MakeDir(out)
	if err != nil {
		return nil, err
	}
	client, err := wire.NewClient(wire.Options{BaseURL: url, SpillDir: spill})
	if err != nil {
		return nil, err
	}
	facts := st.scene.facts
	facts.PageSize = engine.Ask(ctx, http.DefaultClient, url, "").PageSize.Value
	return campaign.Run(ctx, campaign.Config{
		Target:      campaign.Target{BaseURL: url, Model: lab.ModelName, Dialect: "openai"},
		Tenants:     []campaign.Tenant{{Name: "alpha"}, {Name: "beta"}},
		Protocols:   []probe.Protocol{st.scene.protocol},
		Oracles:     oracle.All(),
		Facts:       facts,
		Concurrency: 1,
		Seed:        st.options.Seed,
		Key:         st.key,
		OutDir:      out,
		Version:     st.options.Version,
		Client:      client,
		Progress:    st.options.Progress,
		Observe: func(e wire.Exchange, messages []wire.Message) {
			st.seen = append(st.seen, seen{e, messages})
		},
	})
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
