package gateway

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kvcanary/kvcanary/internal/lab"
	"github.com/kvcanary/kvcanary/internal/lab/api"
)

// overHTTP serves the API over a gateway to tenants a and b, whose keys are
// their names.
func overHTTP(t *testing.T, g *Gateway) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var ids atomic.Int64
	server := api.Serve(l, api.NewHandler(api.Options{
		Backend: g, Model: lab.ModelName, Keys: map[string]string{"a": "a", "b": "b"}, Now: time.Now,
		NewID: func() string { return fmt.Sprint(ids.Add(1)) }, NewSeed: func() uint64 { return uint64(ids.Add(1)) },
	}), log.New(io.Discard, "", 0))
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := server.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return server.URL + "/v1/chat/completions"
}

// post asks as a tenant; until is how many bytes of the answer are read before
// hanging up, 0 for all.
func post(t *testing.T, url, tenant, prompt, more string, until int) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	body := fmt.Sprintf(`{"messages":[{"role":"user","content":%q}],"max_tokens":%d%s}`, prompt, 90+5*until, more)
	r, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+tenant)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if until > 0 {
		some := make([]byte, until)
		if _, err := io.ReadFull(res.Body, some); err != nil {
			t.Fatal(err)
		}
		return string(some)
	}
	all, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// A client that hangs up in the middle of its stream leaves the rest of its
// answer to the next one, of whichever tenant. Decode takes its time, so that the
// hang-up is noticed before the answer has ended, however busy the machine is.
func TestOffByOneOverHTTP(t *testing.T) {
	for defence, leaks := range map[string]bool{"": true, "poison_conns": false} {
		url := overHTTP(t, start(t, func(c *lab.Config) {
			with("stream_desync:off_by_one", defence)(c)
			c.DecodeRate = 4000
		}))
		rng := rand.New(rand.NewPCG(1, 11))
		leaked := false
		// Whether it is noticed before the next request comes is the scheduler's to
		// say: this goes on until a leak that has to come has come.
		for i := 0; i < 8 || leaks && !leaked && i < 80; i++ {
			a, b := phrase(rng, 19)+" ", phrase(rng, 19)+" "
			post(t, url, "a", strings.Repeat(a, 10), `,"temperature":0,"stream":true`, 200)
			got := post(t, url, "b", strings.Repeat(b, 10), `,"temperature":0`, 0)
			leaked = leaked || strings.Contains(got, a[2:16])
		}
		if leaked != leaks {
			t.Errorf("with %q: leaked %v", defence, leaked)
		}
	}
}

// Two tenants who ask for something random get the same only from a cache that
// does not know them.
func TestAnswerCacheOverHTTP(t *testing.T) {
	for fault, shared := range map[string]bool{"answer_cache:exact": true, "answer_cache:semantic": true, "answer_cache:soft": true, "": false} {
		url := overHTTP(t, start(t, func(c *lab.Config) {
			c.Faults, c.AnswerCache = strings.Fields(fault), "exact"
		}))
		q := question(rand.New(rand.NewPCG(1, 12)), 80)
		words := func(tenant string) string {
			_, text, _ := strings.Cut(post(t, url, tenant, q, `,"temperature":2`, 0), `"content"`)
			text, _, _ = strings.Cut(text, "}")
			return text
		}
		if a, b := words("a"), words("b"); a == "" || (a == b) != shared {
			t.Errorf("%q: a gets %s, b gets %s", fault, a, b)
		}
	}
}
