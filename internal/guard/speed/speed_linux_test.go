package speed

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	speed  = flag.Duration("speed", 20*time.Millisecond, "time for each measurement of TestSpeed")
	rounds = flag.Int("rounds", 2, "rounds of TestSpeed")
	awake  = flag.Bool("awake", false, "keep the cores from sleeping during TestSpeed")
)

// ways are all ways to an engine that are compared. The engine's own costs are
// those of this process, with the clients in it.
func ways(t testing.TB, engine string) []*process {
	t.Helper()
	out := []*process{
		{name: "direct", addr: strings.TrimPrefix(engine, "http://"), pids: []int{os.Getpid()}},
		startGuard(t, "guard", engine),
		startGuard(t, "guard of 1", engine, "GOMAXPROCS=1"),
		startReverseProxy(t, engine),
	}
	if *nginxPath != "" {
		out = append(out, startNginx(t, engine))
	}
	return out
}

// The ways take turns, and each round begins with another one, so that whatever
// else the machine does falls on all of them alike. Figures are medians over the
// rounds.
func TestSpeed(t *testing.T) {
	if *awake {
		keepAwake(t)
	}
	paths := ways(t, serve(t, answering))
	for _, c := range []struct {
		name, body string
		clients    int
		times      float64 // of requests, to the unit of the figure
		unit       string
	}{
		{"one client", "{" + said, 1, 1, "requests"},
		{"32 clients", "{" + said, 32, 1, "requests"},
		{"8 streams", `{"stream":true,` + said, 8, speedEvents, "events"},
	} {
		got := map[string][]figures{}
		guards, shares := paths[1:3], map[string]histogram{}
		for _, g := range guards {
			shares[g.name] = buckets(g.scrape(t))
		}
		for round := range *rounds {
			for i := range paths {
				p := paths[(round+i)%len(paths)]
				got[p.name] = append(got[p.name], p.run(t, whole(c.body), c.clients, *speed))
			}
		}
		for _, p := range paths {
			f := got[p.name]
			if f[0].size != got["direct"][0].size {
				t.Errorf("%s, %s: answers of %d bytes, direct %d", c.name, p.name, f[0].size, got["direct"][0].size)
			}
			added := make([]time.Duration, len(f))
			share := make([]float64, len(f))
			for i := range f { // of one round, taken side by side
				added[i] = f[i].each - got["direct"][i].each
				share[i] = f[i].second / got["ReverseProxy"][i].second
			}
			slices.Sort(added)
			slices.Sort(share)
			t.Logf("%-10s %-12s p50 %8v (+%v)  %9.0f %s/s (%.2f of ReverseProxy)  own processor time %.1f µs a request, %.2f µs of %s",
				c.name, p.name, median(f, func(f figures) time.Duration { return f.each }).Round(time.Microsecond), added[len(added)/2].Round(time.Microsecond),
				median(f, func(f figures) float64 { return f.second })*c.times, c.unit, share[len(share)/2],
				float64(median(f, func(f figures) time.Duration { return f.own }))/1e3,
				float64(median(f, func(f figures) time.Duration { return f.own }))/1e3/c.times, strings.TrimSuffix(c.unit, "s"))
		}
		for _, g := range guards {
			share := shares[g.name].since(buckets(g.scrape(t)))
			t.Logf("%-10s %-12s own share of a request, by its metric: p50 %.1f µs, p90 %.1f µs", c.name, g.name, share.quantile(0.5)*1e6, share.quantile(0.9)*1e6)
		}
	}
}
