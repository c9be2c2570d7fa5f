package request

import (
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestHeadersThatGoOn(t *testing.T) {
	in := http.Header{
		"Accept": {"text/event-stream"}, "User-Agent": {"OpenAI/Go 3"}, "Anthropic-Version": {"2023-06-01"}, "Authorization": {"Bearer k"}, "X-Api-Key": {"k"},
		"X-Stainless-Retry-Count": {"0"}, "X-Request-Id": {"mine"}, "X-Prefiller-Host-Port": {"10.0.0.1:8000"}, "X-Data-Parallel-Rank": {"3"}, "X_forwarded_for": {"x"},
		"X-Trace": {"t"}, "Connection": {"X-Trace"}, "Transfer-Encoding": {"chunked"}, "Content-Type": {"application/json; charset=UTF-8"}, "Cookie": {"a=b"}, "Accept-Encoding": {"gzip"},
		"Content-Length": {"5"},
	}
	for _, c := range []struct {
		p    HeaderPolicy
		want http.Header
	}{
		{HeaderPolicy{RequestID: "g-1"}, http.Header{"X-Request-Id": {"g-1"}}},
		{HeaderPolicy{Credentials: true}, http.Header{"Authorization": {"Bearer k"}, "X-Api-Key": {"k"}}},
		{HeaderPolicy{Pass: []string{"x-trace", "X-PREFILLER-HOST-PORT", "Transfer-Encoding", "Cookie", "Authorization"}}, http.Header{"X-Trace": {"t"}}},
	} {
		for name, v := range map[string]string{"Accept": "text/event-stream", "User-Agent": "OpenAI/Go 3", "Anthropic-Version": "2023-06-01", "Content-Type": "application/json", "Accept-Encoding": "identity"} {
			c.want[name] = []string{v}
		}
		out, changed, err := c.p.Forward(in)
		if err != nil || !reflect.DeepEqual(out, c.want) {
			t.Errorf("%+v: %v, %v", c.p, out, err)
		}
		if want := []string{"Cookie", "X-Data-Parallel-Rank", "X-Prefiller-Host-Port", "X-Request-Id", "X_forwarded_for"}; !slices.Equal(changed, want) {
			t.Errorf("%+v: changed %v", c.p, changed)
		}
	}
}

func TestHeadersThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		in     http.Header
		status int // 0 for none
		param  string
	}{
		{http.Header{}, 0, ""},
		{http.Header{"Content-Type": {"application/json"}}, 0, ""},
		{http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, 0, ""},
		{http.Header{"Content-Type": {"application/vnd.api+json"}}, 0, ""},
		{http.Header{"Content-Encoding": {"identity"}}, 0, ""},
		{http.Header{"Content-Encoding": {"gzip"}}, 415, "Content-Encoding"},
		{http.Header{"Content-Encoding": {"identity", "br"}}, 415, "Content-Encoding"},
		{http.Header{"Content-Encoding": {"identity, gzip"}}, 415, "Content-Encoding"},
		{http.Header{"Content-Type": {"application/json; charset=utf-16"}}, 415, "Content-Type"},
		{http.Header{"Content-Type": {"application/json; charset=utf-7"}}, 415, "Content-Type"},
		{http.Header{"Content-Type": {"multipart/form-data; boundary=x"}}, 415, "Content-Type"},
		{http.Header{"Content-Type": {"application/json; charset="}}, 400, "Content-Type"},
		{http.Header{"Content-Type": {"application/json", "text/plain"}}, 400, "Content-Type"},
		{http.Header{"Authorization": {"Bearer a", "Bearer b"}}, 400, "Authorization"},
		{http.Header{"X-Api-Key": {"a", "b"}}, 400, "X-Api-Key"},
	} {
		_, _, err := HeaderPolicy{}.Forward(c.in)
		var refused *Refused
		if c.status == 0 != (err == nil) || err != nil && (!errors.As(err, &refused) || refused.Reason.Status != c.status || refused.Reason.Param != c.param) {
			t.Errorf("%v: %v", c.in, err)
		}
	}
}

// Nothing of the table goes on, however it is written and whatever the
// operator lets pass; the keys only where they may.
func TestNoBarredHeaderGoesOn(t *testing.T) {
	var names []string
	for _, r := range Headers {
		if strings.HasSuffix(r.Name, "-") {
			r.Name += "x"
		}
		names = append(names, r.Name)
	}
	names = append(names, hops...)
	rapid.Check(t, func(t *rapid.T) {
		in := http.Header{"Authorization": {"secret"}}
		for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 1, 6).Draw(t, "names") {
			if name == "Content-Encoding" { // refused, not taken out
				continue
			}
			name = rapid.SampledFrom([]string{name, strings.ToLower(name), strings.ToUpper(name), strings.ReplaceAll(name, "-", "_")}).Draw(t, "letters")
			in[name] = []string{"secret"}
		}
		out, _, err := HeaderPolicy{RequestID: "g", Pass: names}.Forward(in)
		if err != nil {
			t.Fatal(err)
		}
		for name, values := range out {
			if slices.Contains(values, "secret") {
				t.Fatalf("%s of %v goes on", name, in)
			}
		}
	})
}
