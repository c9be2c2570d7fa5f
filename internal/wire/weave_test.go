package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var tenWords = strings.Fields("amber bridge candle desert engine forest garden harbor island jungle")

var notLetters = regexp.MustCompile(`[^a-z]+`)

// carries reports whether a text has the words in a row, with anything but
// letters between them.
func carries(text string, words []string) bool {
	plain := notLetters.ReplaceAllString(strings.ToLower(text), " ")
	return strings.Contains(" "+plain+" ", " "+strings.Join(words, " ")+" ")
}

// inARow reports in which channel of an answer words stand in a row.
func inARow(a *Answer, words []string) Channel {
	for _, p := range a.Pieces {
		if carries(p.Text, words) {
			return p.Channel
		}
	}
	found := Channel("")
	for _, s := range a.Joined {
		if (found == "" || found == Raw) && (carries(s.Text, words) || carries(s.Spaced(), words)) {
			found = s.Channel
		}
	}
	return found
}

// each makes one event of each word.
func each(format string) string {
	var b strings.Builder
	for i, w := range tenWords {
		fmt.Fprintf(&b, strings.ReplaceAll(format, "#", strconv.Itoa(i))+"\n\n", w)
	}
	return b.String()
}

func list(format string) string {
	var all []string
	for i, w := range tenWords {
		all = append(all, fmt.Sprintf(strings.ReplaceAll(format, "#", strconv.Itoa(i)), w))
	}
	return strings.Join(all, ",")
}

// Whatever part of an answer words come in, one at a time, they stand in a row
// in what is scanned.
func TestEverythingIsJoined(t *testing.T) {
	chunk := func(delta string) string {
		return `data: {"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","model":"m","choices":[{"index":0,` + delta + `,"finish_reason":null}]}`
	}
	end := events(chunkStop, "[DONE]")
	document := func(message string) string {
		return `{"id":"c","choices":[{"index":0,"finish_reason":"stop",` + message + `}],"usage":{"prompt_tokens":7}}`
	}
	var bytesOf []string
	for _, w := range tenWords {
		octets := strings.ReplaceAll(strings.Trim(fmt.Sprint([]byte(" "+w)), "[]"), " ", ",")
		bytesOf = append(bytesOf, `{"bytes":[`+octets+`],"logprob":-1}`)
	}
	for name, c := range map[string]struct {
		body    string
		channel Channel
	}{
		"after the end":              {goodStream + each(chunk(`"delta":{"content":" %s"}`)), Content},
		"an unknown field":           {each(chunk(`"delta":{"musings":"%s"}`)) + end, Content},
		"an unknown field, indexed":  {each(`data: {"choices":[{"index":#,"delta":{"musings":"%s"}}]}`) + end, Content},
		"choices without index":      {each(`data: {"choices":[{"delta":{"content":"%s "}}]}`) + end, Content},
		"parts of another shape":     {each(chunk(`"delta":{"content":[{"type":"output","value":{"text":"%s"}}]}`)) + end, Content},
		"reasoning details, content": {each(chunk(`"delta":{"reasoning_details":[{"content":" %s"}]}`)) + end, Reasoning},
		"thinking blocks":            {each(chunk(`"delta":{"thinking_blocks":[{"type":"thinking","thinking":" %s"}]}`)) + end, Reasoning},
		"a custom tool":              {each(chunk(`"delta":{"tool_calls":[{"index":0,"custom":{"input":" %s"}}]}`)) + end, ToolCalls},
		"arguments as an object":     {document(`"message":{"tool_calls":[{"function":{"name":"f","arguments":{"list":[` + list(`"%s"`) + `]}}}]}`), ToolCalls},
		"audio":                      {each(chunk(`"delta":{"audio":{"id":"a","transcript":" %s"}}`)) + end, Content},
		"logprobs, bytes":            {document(`"message":{"content":"hi"},"logprobs":{"content":[` + strings.Join(bytesOf, ",") + `]}`), Logprobs},
		"logprobs, tokens":           {document(`"message":{"content":"hi"},"logprobs":{"content":[` + list(`{"token":" %s","logprob":-1}`) + `]}`), Logprobs},
		"logprobs, a lower rank":     {document(`"message":{"content":"hi"},"logprobs":{"content":[` + list(`{"token":"no","top_logprobs":[{"token":"no"},{"token":" %s"}]}`) + `]}`), Logprobs},
		"logprobs, maps":             {document(`"message":{"content":"hi"},"logprobs":{"tokens":["no"],"top_logprobs":[` + list(`{" no":-1," %s":-2}`) + `]}`), Logprobs},
		"logprobs of the prompt":     {document(`"message":{"content":"hi"},"prompt_logprobs":[` + list(`{"77#":{"logprob":-1,"decoded_token":" %s"}}`) + `]`), Logprobs},
		"choices as an object":       {each(`data: {"choices":{"0":{"delta":{"content":" %s"}}}}`) + end, Content},
		"a member twice":             {document(`"message":{"content":"hi"},"message":{` + list(`"content":" %s"`) + `}`), Content},
		"names of members":           {document(`"message":{"content":"hi"},"top_logprobs":{` + list(`"%s":-1`) + `}`), Logprobs},
		"comments":                   {each(": %s") + goodStream, Raw},
		"ids":                        {each("id: %s") + goodStream, Raw},
		"names of events":            {each("event: %s\ndata: {\"choices\":[]}") + goodStream, Raw},
		"unknown fields":             {each("%s: 1") + goodStream, Raw},
		"events that are no JSON":    {each("data: %s") + goodStream, ErrorBody},
		"lists":                      {each(`data: ["%s"]`) + goodStream, ErrorBody},
		"by turns in two fields":     {each(`data: {"choices":[{"index":0,"delta":{"f#":"%s"}}]}`) + end, Raw},
		"a document that breaks off": {document(`"message":{"parts":[` + list(`"%s"`) + `]}`)[:190], ErrorBody},
		"after a document":           {document(`"message":{"content":"hi"}`) + "\n" + strings.ReplaceAll(each(chunk(`"delta":{"content":" %s"}`)), "data: ", ""), Content},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			a := serve(t, answer(200, "text/event-stream", c.body), Options{}).Do(context.Background(), prompt("hi"))
			got := inARow(a, tenWords)
			if name == "a document that breaks off" {
				got = inARow(a, tenWords[:5])
			}
			if got != c.channel || a.Overran {
				t.Fatalf("the words stand in a row in %q, want %q: %+v", got, c.channel, a.Joined)
			}
		})
	}
}

func TestChannelsOfWhatIsJoined(t *testing.T) {
	for doc, want := range map[string]Channel{
		`{"choices":[{"delta":{"reasoning_details":[{"content":"%s"}]}}]}`: Reasoning,
		`{"choices":[{"finish_reason":"stop","note":"%s"}]}`:               Raw,
		`{"choices":[{"delta":{"musings":"%s"}}]}`:                         Content,
		`{"choices":[{"message":{"tool_calls":[{"x":{"y":"%s"}}]}}]}`:      ToolCalls,
		`{"error":{"hint":"%s"}}`:                                          ErrorBody,
		`{"choices":[{"logprobs":{"content":[{"token":"%s"}]}}]}`:          Logprobs,
	} {
		w := newWeave()
		for _, word := range tenWords {
			w.document(Raw, fmt.Appendf(nil, doc, word))
		}
		if got := inARow(&Answer{Joined: w.strands()}, tenWords); got != want {
			t.Errorf("%s: %q, want %q", doc, got, want)
		}
	}
}

func TestHeadersAndTrailersAreJoined(t *testing.T) {
	for name, h := range map[string]func(w http.ResponseWriter){
		"a header a word": func(w http.ResponseWriter) {
			for i, word := range tenWords {
				w.Header().Set(fmt.Sprintf("X-Part-%d", i+1), word)
			}
		},
		"one header often": func(w http.ResponseWriter) {
			for _, word := range tenWords {
				w.Header().Add("X-Part", word)
			}
		},
		"trailers": func(w http.ResponseWriter) {
			for i, word := range tenWords {
				w.Header().Set(fmt.Sprintf("%sX-Part-%d", http.TrailerPrefix, i+1), word)
			}
		},
	} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			h(w)
			fmt.Fprint(w, goodStream)
		}, Options{})
		if got := inARow(c.Do(context.Background(), prompt("hi")), tenWords); got != Header {
			t.Errorf("%s: found in %q", name, got)
		}
	}
	refuses := serve(t, answer(400, "application/json", `{"detail":[`+list(`{"loc":["body",#],"input":"%s"}`)+`]}`), Options{})
	if got := inARow(refuses.Do(context.Background(), prompt("hi")), tenWords); got != ErrorBody {
		t.Errorf("error: found in %q", got)
	}
}

// A text cut anywhere into events, at any place of their JSON, among other
// fields and with other choices between, is whole again.
func TestAnyCutAtAnyPlaceIsJoined(t *testing.T) {
	text := strings.Join(tenWords, " ")
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,6}|id|index|role|type|\[[0-3]\]|#`), 0, 6).Draw(t, "place")
		w := newWeave()
		noise := rapid.Bool().Draw(t, "noise")
		for i := 0; i < len(text); {
			n := rapid.IntRange(1, 9).Draw(t, "bytes")
			piece := text[i:min(len(text), i+n)]
			i += n
			if noise {
				w.document(Raw, place(at, "xx", 1))
			}
			w.document(Raw, place(at, piece, 0))
		}
		if a := (&Answer{Joined: w.strands()}); inARow(a, tenWords) == "" && !(noise && !strings.Contains(strings.Join(at, ""), "#")) {
			t.Fatalf("place %q: %+v", at, a.Joined)
		}
	})
}

// place builds a document that has a text at a place: members, positions in
// lists, and objects with an index.
func place(at []string, text string, index int) []byte {
	var v any = text
	for i := len(at) - 1; i >= 0; i-- {
		switch s := at[i]; {
		case s == "#":
			v = map[string]any{"index": index, "v": v, "role": "assistant"}
		case s[0] == '[':
			l := make([]any, s[1]-'0'+1)
			for j := range l {
				l[j] = 0.5
			}
			l[len(l)-1] = v
			v = l
		default:
			m := map[string]any{"id": "chatcmpl-0123456789"}
			m[s] = v // which may be the id
			v = m
		}
	}
	b, err := json.Marshal(map[string]any{"object": "chat.completion.chunk", "x": v})
	if err != nil {
		panic(err)
	}
	return b
}

// What a hostile answer can make of it is bounded, and said to be.
func TestJoiningIsBounded(t *testing.T) {
	deep := bytes.Repeat([]byte(`{"a":[`), maxFrames/2+10)
	wide := []byte("[")
	for i := range maxThreads + 10 {
		wide = fmt.Appendf(wide, `{"k%d":"v%d"},`, i, i)
	}
	long := fmt.Appendf(nil, `{"a":%q}`, strings.Repeat("xy", maxWoven/2))
	for name, doc := range map[string][]byte{"deep": deep, "wide": wide, "long": long} {
		w := newWeave()
		w.document(Raw, doc)
		if !w.over || len(w.order) > maxThreads || w.size > maxWoven {
			t.Errorf("%s: over %v, %d strands, %d bytes", name, w.over, len(w.order), w.size)
		}
	}
}

func FuzzWeave(f *testing.F) {
	f.Add([]byte(`{"a":[1,2,{"b":"c"}],"d":{"index":3,"e":"\u0041\ud83d"}}`))
	f.Add([]byte(`]}"{"[":1e9,"`))
	f.Add([]byte(`{"top_logprobs":[{"a":-1},{"b":[0,255,256,-1]}]}`))
	f.Add([]byte("plain"))
	f.Add([]byte(": a\nevent: b\ndata: {\"c\":\"d\"}\n\ndata: [1]\n\nid: 7\n"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		w := newWeave()
		w.document(Raw, doc)
		w.document(Content, doc)
		recorded, _ := Join(doc)
		for _, s := range append(w.strands(), recorded...) {
			if from := 0; len(s.Cuts) > 0 {
				for _, c := range s.Cuts {
					if c < from || c > len(s.Text) {
						t.Fatalf("cuts %v of %d bytes", s.Cuts, len(s.Text))
					}
					from = c
				}
			}
			if len(s.Spaced()) != len(s.Text)+len(s.Cuts) {
				t.Fatal("spaces are lost")
			}
		}
	})
}
