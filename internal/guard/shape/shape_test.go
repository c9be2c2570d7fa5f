package shape

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/kvcanary/kvcanary/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var dialects = []string{"openai", "completions", "responses", "anthropic", "ollama"}

func TestEveryDialectHasItsOwnForm(t *testing.T) {
	refused := Error{Status: 400, Code: "field_refused", Message: "a client may not set it", Param: "truncation", RequestID: "r-1"}
	stopped := Error{Status: 502, Code: "leak_stopped", Message: "the answer was stopped"}
	for _, c := range []struct{ dialect, body, event string }{
		{"openai", `{"error":{"message":"a client may not set it","type":"invalid_request_error","param":"truncation","code":"field_refused"}}`,
			`data: {"error":{"message":"the answer was stopped","type":"server_error","param":null,"code":"leak_stopped"}}` + "\n\n"},
		{"completions", `{"error":{"message":"a client may not set it","type":"invalid_request_error","param":"truncation","code":"field_refused"}}`,
			`data: {"error":{"message":"the answer was stopped","type":"server_error","param":null,"code":"leak_stopped"}}` + "\n\n"},
		{"responses", `{"error":{"message":"a client may not set it","type":"invalid_request_error","param":"truncation","code":"field_refused"}}`,
			"event: error\n" + `data: {"type":"error","code":"leak_stopped","message":"the answer was stopped","param":null,"sequence_number":0,` +
				`"error":{"message":"the answer was stopped","type":"server_error","param":null,"code":"leak_stopped"}}` + "\n\n"},
		{"anthropic", `{"type":"error","error":{"type":"invalid_request_error","message":"truncation: a client may not set it"},"request_id":"r-1"}`,
			"event: error\n" + `data: {"type":"error","error":{"type":"api_error","message":"the answer was stopped"}}` + "\n\n"},
		{"ollama", `{"error":"truncation: a client may not set it"}`, `{"error":"the answer was stopped"}` + "\n"},
		{"unheard of", `{"error":{"message":"a client may not set it","type":"invalid_request_error","param":"truncation","code":"field_refused"}}`,
			`data: {"error":{"message":"the answer was stopped","type":"server_error","param":null,"code":"leak_stopped"}}` + "\n\n"},
	} {
		kind, body := Body(c.dialect, refused)
		if kind != "application/json" || string(body) != c.body {
			t.Errorf("%s: %s\n got %s\nwant %s", c.dialect, kind, body, c.body)
		}
		if event := Event(c.dialect, stopped); string(event) != c.event {
			t.Errorf("%s:\n got %s\nwant %s", c.dialect, event, c.event)
		}
	}
}

func TestTypesFollowTheStatus(t *testing.T) {
	for _, c := range []struct {
		status            int
		openai, anthropic string
	}{
		{0, "server_error", "api_error"},
		{400, "invalid_request_error", "invalid_request_error"},
		{401, "authentication_error", "authentication_error"},
		{403, "permission_error", "permission_error"},
		{404, "invalid_request_error", "not_found_error"},
		{405, "invalid_request_error", "invalid_request_error"},
		{413, "invalid_request_error", "request_too_large"},
		{429, "rate_limit_error", "rate_limit_error"},
		{500, "server_error", "api_error"},
		{503, "server_error", "overloaded_error"},
		{504, "server_error", "timeout_error"},
		{529, "server_error", "overloaded_error"},
	} {
		_, o := Body("openai", Error{Status: c.status})
		_, a := Body("anthropic", Error{Status: c.status})
		if !bytes.Contains(o, []byte(`"type":"`+c.openai+`"`)) || !bytes.Contains(a, []byte(`{"type":"`+c.anthropic+`"`)) {
			t.Errorf("%d: %s, %s", c.status, o, a)
		}
	}
}

// Whatever a message holds, it is one JSON document in one event of one line.
func TestNoMessageBreaksOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\n\ndata: [DONE]\n\n", "\x1b[2J", "\xff\xfe", "\u2028", "\"}", "\x00", strings.Repeat("é", 700)}))
		e := Error{Status: rapid.IntRange(0, 599).Draw(t, "status"), Message: strings.Join(rapid.SliceOfN(piece, 0, 4).Draw(t, "message"), ""),
			Param: piece.Draw(t, "param"), Code: rapid.StringMatching(`[a-z_]{0,12}`).Draw(t, "code")}
		for _, d := range dialects {
			_, body := Body(d, e)
			if !json.Valid(body) || !utf8.Valid(body) || len(body) > 4<<10 {
				t.Fatalf("%s: body %q", d, body)
			}
			data := Event(d, e)
			if d != "ollama" {
				data = data[bytes.Index(data, []byte("data: "))+6:]
				if !bytes.HasSuffix(data, []byte("\n\n")) {
					t.Fatalf("%s: the event %q does not end", d, data)
				}
				data = data[:len(data)-1]
			}
			if i := bytes.IndexAny(data, "\r\n"); i != len(data)-1 || !json.Valid(data) || bytes.ContainsAny(data, "\x1b\x00") {
				t.Fatalf("%s: event %q", d, data)
			}
		}
	})
}

// text is a prompt.
type text string

func (s text) Open() io.Reader { return strings.NewReader(string(s)) }
func (s text) Size() int64     { return int64(len(s)) }

// ask sends a request to a server that gives one answer whatever it is asked.
func ask(t *testing.T, dialect string, status int, contentType string, body []byte) *wire.Answer {
	t.Helper()
	c, err := wire.NewClient(wire.Options{Dialect: dialect, BaseURL: serve(t, status, contentType, body)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.Do(context.Background(), wire.Request{Model: "m", Messages: []wire.Message{{Role: "user", Text: text("hi")}}, MaxTokens: 8, Stream: true})
}

func serve(t *testing.T, status int, contentType string, body []byte) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		w.Write(body)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// The project's own prober reads a refusal with its numbers, and a stopped
// stream as one that was not served.
func TestProberReadsThem(t *testing.T) {
	for _, d := range []string{"openai", "responses", "anthropic", "ollama"} {
		contentType, body := Body(d, TooLong(12345, 10240))
		a := ask(t, d, 400, contentType, body)
		if r := a.Refusal; r == nil || r.Limit != 10240 || r.Sent != 12345 {
			t.Errorf("%s: %s is read as %+v, %+v", d, body, a.Refusal, a.Failure)
		}
		contentType = "text/event-stream"
		if d == "ollama" {
			contentType = "application/x-ndjson"
		}
		a = ask(t, d, 200, contentType, Event(d, Error{Status: 502, Code: "leak_stopped", Message: "the answer was stopped"}))
		if a.Served() || a.Refusal == nil && a.Failure == nil {
			t.Errorf("%s: the end of a stream is read as served: %+v", d, a)
		}
	}
}

// The official client sees the code that it knows, and an error at the end of
// a stopped stream.
func TestOfficialClientReadsThem(t *testing.T) {
	ctx := context.Background()
	client := func(status int, contentType string, body []byte) openai.Client {
		return openai.NewClient(option.WithBaseURL(serve(t, status, contentType, body)), option.WithAPIKey("none"), option.WithMaxRetries(0),
			option.WithHTTPClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}))
	}
	for _, d := range []string{"openai", "completions", "responses"} {
		_, body := Body(d, TooLong(12345, 10240))
		_, err := ping(ctx, client(400, "application/json", body), d)
		var api *openai.Error
		if !errors.As(err, &api) || api.Code != "context_length_exceeded" || !strings.Contains(api.Message, "12,345") {
			t.Errorf("%s: %v", d, err)
		}
		err = drain(ctx, client(200, "text/event-stream", Event(d, Error{Code: "leak_stopped", Message: "the answer was stopped"})), d)
		if err == nil || !strings.Contains(err.Error(), "leak_stopped") {
			t.Errorf("%s: a stopped stream ends with %v", d, err)
		}
	}
}

func ping(ctx context.Context, c openai.Client, dialect string) (any, error) {
	switch dialect {
	case "completions":
		return c.Completions.New(ctx, openai.CompletionNewParams{Model: "m"})
	case "responses":
		return c.Responses.New(ctx, responses.ResponseNewParams{Model: "m"})
	}
	return c.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{Model: "m"})
}

// stream is what the three kinds of stream of the client have in common.
type stream interface {
	Next() bool
	Err() error
}

func drain(ctx context.Context, c openai.Client, dialect string) error {
	var s stream
	switch dialect {
	case "completions":
		s = c.Completions.NewStreaming(ctx, openai.CompletionNewParams{Model: "m"})
	case "responses":
		s = c.Responses.NewStreaming(ctx, responses.ResponseNewParams{Model: "m"})
	default:
		s = c.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{Model: "m"})
	}
	for s.Next() {
	}
	return s.Err()
}
