package engine

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// admin are paths that show prompts, settings or the cache, by engine. Only
// such stand here as a GET of them changes nothing.
var admin = map[string][]string{
	"sglang":   {"/server_info", "/get_server_info", "/metrics"},
	"vllm":     {"/metrics", "/server_info?config_format=json"},
	"dynamo":   {"/metrics"},
	"trtllm":   {"/metrics"},
	"triton":   {"/metrics"},
	"tgi":      {"/metrics"},
	"lmdeploy": {"/distserve/engine_info", "/metrics"},
	"llamacpp": {"/props", "/slots", "/metrics"},
	"ollama":   {"/api/ps", "/api/tags"},
}

// Examine is Ask of an engine whose name may be known; an empty one finds out.
// It takes the time that ctx leaves, looks at which admin paths are open to
// everybody, and says for people why an endpoint could not be asked. An empty
// trouble means that it answered like something.
func Examine(ctx context.Context, client *http.Client, baseURL, key, name string) (f Facts, trouble string) {
	a := newAsker(client, baseURL, key)
	if trouble := a.trouble(ctx); trouble != "" {
		return Facts{}, trouble
	}
	f = a.facts(ctx, name)
	if ctx.Err() != nil {
		return f, "it does not answer in time"
	}
	f.OpenChecked = f.Engine != "" && f.Engine != generic.Name
	for _, path := range admin[f.Engine] {
		if a.open(ctx, path) {
			f.Open = append(f.Open, path)
			if strings.HasPrefix(path, "/server_info?") {
				f.DevMode.set(true, "GET /server_info")
			}
		}
	}
	if f.Engine == "vllm" && !slices.ContainsFunc(f.Open, func(p string) bool { return strings.HasPrefix(p, "/server_info") }) && ctx.Err() == nil {
		f.DevMode.set(false, "GET /server_info is not there")
	}
	return f, ""
}

// trouble says what keeps an endpoint from being asked at all.
func (a *asker) trouble(ctx context.Context) string {
	res, err := a.send(ctx, "/v1/models", a.key)
	var timeout net.Error
	var op *net.OpError
	switch {
	case err == nil:
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return "it does not answer in time"
	case errors.As(err, &op):
		return "cannot be reached: " + op.Err.Error() + ": is it running, and the address right?"
	default:
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return "cannot be reached: " + err.Error()
	}
	res.Body.Close()
	switch code := res.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return "HTTP " + strconv.Itoa(code) + ": it lets nobody in without another key: give --api-key-env"
	case code >= 300 && code < 400:
		return "HTTP " + strconv.Itoa(code) + ": it sends elsewhere, where a key must not go: give the address itself"
	case code >= 500:
		return "HTTP " + strconv.Itoa(code) + ": it is in trouble itself"
	}
	return ""
}

// facts asks for an engine by name, or for whichever it is.
func (a *asker) facts(ctx context.Context, name string) Facts {
	for _, e := range All {
		if name != "" && e.Name != name || e.ask == nil {
			continue
		}
		f := Facts{Engine: e.Name}
		if e.ask(ctx, a, &f) {
			f.infer()
			return f
		}
	}
	return Facts{}
}
