package api

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/lab"
)

// events reads a stream's events without their "data: ".
func events(t *testing.T, body string) (all []string) {
	t.Helper()
	for event := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(event, "data: ")
		if !ok || strings.Contains(data, "\n") {
			t.Fatalf("event %q", event)
		}
		all = append(all, data)
	}
	return all
}

const streamed = `{"stream":true,"stream_options":{"include_usage":true},` + hello + `}`

func TestStreamIsThisAndNothingElse(t *testing.T) {
	b := newFake()
	b.answer = func(lab.Request) []lab.Event { return says("a\x01<", "length", 7) }
	url := serve(t, b, nil).URL
	_, body := post(t, url+"/v1/chat/completions", streamed)
	head := `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"lab","choices":[`
	want := []string{
		head + `{"index":0,"delta":{"role":"assistant","content":"a"},"logprobs":null,"finish_reason":null,"matched_stop":null}]}`,
		head + `{"index":0,"delta":{"content":"<|user|>"},"logprobs":null,"finish_reason":null,"matched_stop":null}]}`,
		head + `{"index":0,"delta":{"content":"<"},"logprobs":null,"finish_reason":null,"matched_stop":null}]}`,
		head + `{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":"length","matched_stop":null}]}`,
		head + `],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10,"prompt_tokens_details":null}}`,
		`[DONE]`,
	}
	if got := events(t, body); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	_, body = post(t, url+"/v1/completions", `{"stream":true,"prompt":"x"}`)
	got := events(t, body)
	const first = `{"id":"cmpl-2","object":"text_completion","created":1790000000,"model":"lab","choices":[{"index":0,"text":"a","logprobs":null,"finish_reason":null,"matched_stop":null}]}`
	if len(got) != 5 || got[0] != first {
		t.Errorf("got\n%s\nwant first\n%s", strings.Join(got, "\n"), first)
	}
}

// texts joins the pieces of a stream and returns how it finished.
func texts(t *testing.T, body string) (text, finish string) {
	t.Helper()
	for _, data := range events(t, body) {
		var chunk struct {
			Choices []struct {
				Delta  struct{ Content string }
				Finish string `json:"finish_reason"`
			}
		}
		if data == "[DONE]" {
			continue
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			t.Fatalf("%v in %q", err, data)
		}
		for _, c := range chunk.Choices {
			text += c.Delta.Content
			finish += c.Finish
		}
	}
	return text, finish
}

func TestTextIsTheSameStreamedOrNot(t *testing.T) {
	for _, c := range []struct {
		name, tokens, stop, want, finish string
	}{
		{"characters of several bytes", "grün 日本 😀", "", "grün 日本 😀", "length"},
		{"bytes that are no text", "a\xff\xe2\x82b\xe2", "", "a\uFFFD\uFFFD\uFFFDb\uFFFD", "length"},
		{"special tokens", "\x01Hi\x02there\x03", "", "<|user|>Hi<|assistant|>there", "length"},
		{"stop string", "one two three", `,"stop":["thr","two"]`, "one ", "stop"},
		{"almost a stop string", "one tw", `,"stop":"two"`, "one tw", "length"},
		{"nothing", "", "", "", "length"},
	} {
		for _, buffer := range []int{0, 64} {
			b := newFake()
			b.buffer = buffer
			b.answer = func(lab.Request) []lab.Event { return says(c.tokens, "length", 7) }
			url := serve(t, b, nil).URL + "/v1/chat/completions"
			_, body := post(t, url, `{"stream":true`+c.stop+`,`+hello+`}`)
			if text, finish := texts(t, body); text != c.want || finish != c.finish {
				t.Errorf("%s, streamed: %q %s, want %q %s", c.name, text, finish, c.want, c.finish)
			}
			_, body = post(t, url, `{"n":1`+c.stop+`,`+hello+`}`)
			var whole struct {
				Choices []struct {
					Message struct{ Content string }
					Finish  string `json:"finish_reason"`
				}
			}
			if err := json.Unmarshal([]byte(body), &whole); err != nil {
				t.Fatal(err)
			}
			if got := whole.Choices[0]; got.Message.Content != c.want || got.Finish != c.finish {
				t.Errorf("%s, whole: %+v, want %q %s", c.name, got, c.want, c.finish)
			}
		}
	}
}

func TestStopStringEndsTheRequestAndIsCounted(t *testing.T) {
	b := newFake()
	b.answer = func(lab.Request) []lab.Event { return says("ab END and much more", "length", 999) }
	_, body := post(t, serve(t, b, nil).URL+"/v1/chat/completions", `{"stop":"END",`+hello+`}`)
	for _, want := range []string{`"content":"ab "`, `"finish_reason":"stop","matched_stop":"END"`, `"prompt_tokens":7,"completion_tokens":6,`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s lacks %s", body, want)
		}
	}
	if held := b.held.Load(); held != 0 {
		t.Errorf("%d requests still hold something", held)
	}
}

func TestRefusalShapes(t *testing.T) {
	const flatBody = `{"object":"error","message":"too long","type":"BadRequestError","param":null,"code":400}`
	const event = "data: " + `{"error":{"object":"error","message":"too long","type":"BAD_REQUEST","param":null,"code":400}}` + "\n\ndata: [DONE]\n\n"
	const bareBody = `{"error":{"message":"too long"}}`
	for _, c := range []struct {
		shape         RefusalShape
		whole, stream string
		streamStatus  int
	}{
		{"", flatBody + "\n", event, 200},
		{RefuseInStream, flatBody + "\n", event, 200},
		{RefuseWithStatus, flatBody + "\n", flatBody + "\n", 400},
		{RefuseBare, bareBody + "\n", "data: " + bareBody + "\n\ndata: [DONE]\n\n", 200},
	} {
		b := newFake()
		b.answer = func(lab.Request) []lab.Event { return []lab.Event{fails(400, "too long")} }
		url := serve(t, b, func(o *Options) { o.RefusalShape = c.shape }).URL + "/v1/chat/completions"
		if status, body := post(t, url, `{`+hello+`}`); status != 400 || body != c.whole {
			t.Errorf("%q: %d %s, want 400 %s", c.shape, status, body, c.whole)
		}
		if status, body := post(t, url, streamed); status != c.streamStatus || body != c.stream {
			t.Errorf("%q streamed: %d %s, want %d %s", c.shape, status, body, c.streamStatus, c.stream)
		}
	}
}

// A failure after the first token can only be told within the stream, and
// does not take back what came before.
func TestFailureInTheMiddle(t *testing.T) {
	for _, shape := range []RefusalShape{RefuseInStream, RefuseWithStatus} {
		b := newFake()
		b.buffer = 8
		b.answer = func(lab.Request) []lab.Event {
			return []lab.Event{{Token: 'h'}, {Token: 'i'}, {Error: &lab.Error{Status: 500, Type: "InternalServerError", Message: "decode node is gone"}}}
		}
		url := serve(t, b, func(o *Options) { o.RefusalShape = shape }).URL + "/v1/chat/completions"
		status, body := post(t, url, streamed)
		got := events(t, body)
		const want = `{"error":{"object":"error","message":"decode node is gone","type":"InternalServerError","param":null,"code":500}}`
		if text, _ := texts(t, body); status != 200 || text != "hi" || got[len(got)-2] != want || got[len(got)-1] != "[DONE]" {
			t.Errorf("%s: %d\n%s", shape, status, body)
		}
		if status, body := post(t, url, `{`+hello+`}`); status != 500 || !strings.Contains(body, "decode node is gone") {
			t.Errorf("%s, whole: %d %s", shape, status, body)
		}
	}
}

// A backend that breaks its promise does not leave the client waiting.
func TestEngineThatEndsWithoutAWord(t *testing.T) {
	b := newFake()
	b.answer = func(lab.Request) []lab.Event { return []lab.Event{{Token: 'h'}} }
	if status, body := post(t, serve(t, b, nil).URL+"/v1/chat/completions", `{`+hello+`}`); status != 500 || !strings.Contains(body, "without saying how") {
		t.Errorf("%d %s", status, body)
	}
}

func TestDisconnectCancelsTheRequest(t *testing.T) {
	for _, body := range []string{streamed, `{` + hello + `}`} {
		b := newFake()
		b.slow = true
		b.gone = make(chan struct{})
		b.begun = make(chan struct{}, 1)
		server := serve(t, b, nil)
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, "POST", server.URL+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body == streamed {
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || !strings.Contains(line, `"content":"x"`) {
				t.Fatalf("%q %v", line, err)
			}
			cancel()
			res.Body.Close()
		} else {
			go func() {
				<-b.begun
				cancel()
			}()
			if _, err := http.DefaultClient.Do(r); err == nil {
				t.Fatal("an endless answer ended")
			}
		}
		<-b.gone // the test hangs if the request is never let go
	}
}
