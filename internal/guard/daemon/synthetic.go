package daemon

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/config"
	"github.com/kvcanary/kvcanary/internal/guard"
	"github.com/kvcanary/kvcanary/internal/guard/synthetic"
)

// syntheticName is the tenant that plants.
const syntheticName = "kvcanary-synthetic"

// planter plants canaries as a tenant of the guard's own.
type planter struct {
	plan   synthetic.Plan
	key    string // that it shows to the guard: nobody else has it
	header string // or the header that says whose a request is
}

// newPlanter makes the planter of a setup, nil where it asks for none.
func newPlanter(s *Setup, random io.Reader) (*planter, error) {
	c := s.Config.Synthetic
	if c.KeyFile == "" {
		return nil, nil
	}
	key, err := canary.LoadKey(c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("synthetic: %w", err)
	}
	var b [36]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return nil, fmt.Errorf("synthetic: %w", err)
	}
	return &planter{
		plan: synthetic.Plan{
			Coder: canary.New(key), Run: int(binary.BigEndian.Uint32(b[:4])) & canary.MaxRun, Model: c.Model, Words: c.Words, Every: c.Every, TokensPerDay: c.TokensPerDay,
		},
		key: hex.EncodeToString(b[4:]), header: s.Options.Tenants.Header,
	}, nil
}

// admit has a guard know the tenant and look for its canaries.
func (p *planter) admit(o *guard.Options) {
	if p == nil {
		return
	}
	o.Watch.Coders = append(o.Watch.Coders[:len(o.Watch.Coders):len(o.Watch.Coders)], p.plan.Coder)
	if o.Tenants.Keys != nil {
		keys := map[[sha256.Size]byte]guard.Tenant{sha256.Sum256([]byte(p.key)): {Name: syntheticName}}
		for sum, t := range o.Tenants.Keys {
			keys[sum] = t
		}
		o.Tenants.Keys = keys
	}
}

// keep plants until ctx ends.
func (p *planter) keep(ctx context.Context, d *Daemon) {
	p.plan.Keep(ctx, synthetic.Edges{
		Now: d.o.Now, Log: d.log,
		Send: func(ctx context.Context, plant synthetic.Plant) (int, error) { return p.send(ctx, d.guard, plant.Body) },
		Random: func() float64 {
			var b [8]byte
			if _, err := io.ReadFull(d.o.Random, b[:]); err != nil {
				return 0.5
			}
			return float64(binary.BigEndian.Uint64(b[:])>>11) / (1 << 53)
		},
	})
}

// send has a guard serve one request, with no connection between, and returns
// how many tokens it cost.
func (p *planter) send(ctx context.Context, h http.Handler, body []byte) (tokens int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://guard/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		panic("kvcanary: internal error: " + err.Error())
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+p.key)
	if p.header != "" {
		r.Header.Set(p.header, syntheticName)
	}
	w := &kept{header: http.Header{}}
	defer func() {
		if recover() != nil { // http.ErrAbortHandler: the answer broke off
			err = errors.New("the answer broke off")
		}
	}()
	h.ServeHTTP(w, r)
	if w.status != http.StatusOK {
		return 0, fmt.Errorf("it was answered with status %d", w.status)
	}
	var answer struct {
		Usage struct {
			Total int `json:"total_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(w.body, &answer); err != nil {
		return 0, errors.New("its answer is no JSON")
	}
	return answer.Usage.Total, nil
}

// kept is an answer that stays here.
type kept struct {
	header http.Header
	status int
	body   []byte
}

// maxKept bounds the answer to a small prompt, bytes.
const maxKept = 1 << 20

func (k *kept) Header() http.Header { return k.header }

func (k *kept) WriteHeader(status int) {
	if k.status == 0 {
		k.status = status
	}
}

func (k *kept) Write(p []byte) (int, error) {
	k.WriteHeader(http.StatusOK)
	if len(k.body)+len(p) > maxKept {
		return 0, errors.New("the answer is too long")
	}
	k.body = append(k.body, p...)
	return len(p), nil
}

// Flush is of http.Flusher.
func (k *kept) Flush() {}

// forwards says which upstream is shown the keys of clients, "" for none: the
// synthetic tenant has none that an engine knows.
func forwards(c *config.Guard) string {
	for _, u := range c.Upstreams {
		if u.ForwardKey {
			return u.Name
		}
	}
	return ""
}
