package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

const (
	answered = `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"noted"},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":1,"total_tokens":%d}}`
	noUsage  = `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"noted"},"finish_reason":"stop"}]}`
)

var value = regexp.MustCompile(`\b[a-z0-9]{5}-[a-z0-9]{5}\b`)

// fakes are the ways in which a target can be of no use.
var fakes = map[string]http.HandlerFunc{
	"html": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<!doctype html><html><body>It works!</body></html>")
	},
	"unauthorized": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(401)
		io.WriteString(w, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}`)
	},
	"nomodel": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(404)
		io.WriteString(w, `{"error":{"message":"The model 'x' does not exist","type":"invalid_request_error","code":"model_not_found"}}`)
	},
	"ratelimit": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(429)
		io.WriteString(w, `{"error":{"message":"Rate limit reached","type":"requests"}}`)
	},
	"retryafter": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(429)
		io.WriteString(w, `{"error":{"message":"Rate limit reached","type":"requests"}}`)
	},
	"jsonerror": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"error":"Unexpected endpoint or method. (POST /v1/chat/completions)"}`)
	},
	"redirect": func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/elsewhere", http.StatusFound)
	},
	"nousage": func(w http.ResponseWriter, r *http.Request) {
		if chat(w, r) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, noUsage)
		}
	},
	"noted": func(w http.ResponseWriter, r *http.Request) {
		if chat(w, r) {
			w.Header().Set("Content-Type", "application/json")
			n := max(1, int(r.ContentLength)/4)
			fmt.Fprintf(w, answered, n, n+1)
		}
	},
	// echoes answers with whatever looks like a value in the prompt.
	"echoes": func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !chat(w, r) {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		values := value.FindAllString(string(body), -1)
		n := max(1, len(body)/4)
		fmt.Fprintf(w, strings.Replace(answered, "noted", strings.Join(values, " "), 1), n, n+1)
	},
	// busy asks for patience once, by the clock, and then serves.
	"busy": func() http.HandlerFunc {
		var calls atomic.Int32
		return func(w http.ResponseWriter, r *http.Request) {
			if chat(w, r) {
				w.Header().Set("Content-Type", "application/json")
				if calls.Add(1) == 2 {
					w.Header().Set("Retry-After", time.Now().UTC().Add(2*time.Second).Format(http.TimeFormat))
					w.WriteHeader(503)
				}
				fmt.Fprintf(w, answered, 50, 51)
			}
		}
	}(),
	"slow": func(w http.ResponseWriter, r *http.Request) {
		if chat(w, r) {
			time.Sleep(300 * time.Millisecond)
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, answered, 50, 51)
		}
	},
	"proxy": func(w http.ResponseWriter, r *http.Request) { // knows engine.test alone
		if r.URL.Host != "engine.test" || !chat(w, r) {
			w.WriteHeader(502)
			return
		}
		n := max(1, int(r.ContentLength)/4)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, answered, n, n+1)
	},
	"broken": func(w http.ResponseWriter, r *http.Request) {
		if chat(w, r) {
			w.WriteHeader(500)
			io.WriteString(w, `{"error":{"message":"the scheduler has gone away","type":"server_error"}}`)
		}
	},
	"cut": func(w http.ResponseWriter, r *http.Request) {
		if chat(w, r) {
			w.Header().Set("Content-Length", "1000")
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, noUsage[:60])
		}
	},
	"azure": func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Api-Key")
		switch {
		case r.URL.Path != "/openai/deployments/gpt/chat/completions" || r.URL.Query().Get("api-version") == "":
			http.NotFound(w, r)
		case key == "":
			w.WriteHeader(401)
			io.WriteString(w, `{"error":{"message":"no key","code":"401"}}`)
		default: // and shows the key to whoever reads along
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("X-Debug", base64.StdEncoding.EncodeToString([]byte("key:"+key)))
			fmt.Fprintf(w, strings.Replace(answered, "noted", key+" "+strings.ReplaceAll(key, "/", `\\u002f`), 1), len(body)/4, 1)
		}
	},
	"thinks": func(w http.ResponseWriter, r *http.Request) { // for 2,000 tokens before it says a word
		body, _ := io.ReadAll(r.Body)
		var q struct {
			Most int `json:"max_completion_tokens"`
			Old  int `json:"max_tokens"`
		}
		json.Unmarshal(body, &q)
		text, tokens, _ := promptOf(body)
		switch {
		case !strings.HasSuffix(r.URL.Path, "/chat/completions"):
			http.NotFound(w, r)
		case q.Old > 0:
			w.WriteHeader(400)
			io.WriteString(w, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error"}}`)
		case q.Most <= 2000:
			fmt.Fprintf(w, `{"choices":[{"index":0,"message":{"content":"","reasoning_content":"hm"},"finish_reason":"length"}],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, tokens, q.Most)
		default:
			fmt.Fprintf(w, `{"choices":[{"index":0,"message":{"content":%q,"reasoning_content":"hm"},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":2003}}`, text, tokens)
		}
	},
	"badutf8": func(w http.ResponseWriter, r *http.Request) {
		if chat(w, r) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, strings.Replace(answered, "noted", "no\xff\xfeted", 1), 50, 51)
		}
	},
	"huge": func(w http.ResponseWriter, r *http.Request) {
		if !chat(w, r) {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, noUsage[:90])
		block := []byte(strings.Repeat("all work and no play ", 50_000))
		for sent := 0; sent < 10<<30; sent += len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	},
}

// chat reports whether r is a chat; anything else gets 404, as from a server
// that has nothing else. It reads the body, so that the answer is not lost.
func chat(w http.ResponseWriter, r *http.Request) bool {
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.NotFound(w, r)
		return false
	}
	io.Copy(io.Discard, r.Body)
	return true
}

func fake(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: fake KIND")
	}
	kind, tls := strings.CutPrefix(args[0], "tls-")
	kind, socket := strings.CutPrefix(kind, "unix-")
	h, ok := fakes[kind]
	if !ok {
		h, ok = hostile[kind]
	}
	if dialect, speaks := strings.CutPrefix(kind, "speaks-"); speaks {
		var s speaker
		s, ok = speakers[dialect]
		h = s.serve
	}
	if !ok {
		ts.Fatalf("no fake %q", kind)
	}
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	switch {
	case tls:
		s.StartTLS()
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
		ts.Check(os.WriteFile(ts.MkAbs("ca.pem"), ca, 0o600))
	case socket:
		l, err := net.Listen("unix", ts.MkAbs("engine.sock"))
		ts.Check(err)
		s.Listener.Close()
		s.Listener = l
		s.Start()
	default:
		s.Start()
	}
	ts.Defer(func() {
		s.CloseClientConnections()
		s.Close()
	})
	ts.Setenv("URL", s.URL)
}

// startLab starts a lab on a free port and waits until it listens.
func startLab(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: lab ARG...")
	}
	exe := filepath.Join(binDir(ts), "kvcanary")
	cmd := exec.Command(exe, append([]string{"lab", "--stop-on-eof", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Dir = ts.Getenv("WORK")
	cmd.Env = append(os.Environ(), "KEY_A="+ts.Getenv("KEY_A"), "KEY_B="+ts.Getenv("KEY_B"))
	stdin, err := cmd.StdinPipe()
	ts.Check(err)
	stdout, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	stop := sync.OnceFunc(func() {
		stdin.Close()
		late := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
		cmd.Wait()
		late.Stop()
	})
	ts.Defer(stop)
	*ts.Value(labKey{}).(*func()) = stop
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "kvcanary lab: listening on ")
	if !ok {
		ts.Fatalf("the lab said %q", line)
	}
	ts.Setenv("URL", url)
	ts.Setenv("LABPID", fmt.Sprint(cmd.Process.Pid))
}

// labKey is under what a script keeps how to stop its lab.
type labKey struct{}

// stopLab ends the lab that was started last and waits until it is gone.
func stopLab(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: stoplab")
	}
	(*ts.Value(labKey{}).(*func()))()
}

// binDir is where the programs of the scripts are.
func binDir(ts *testscript.TestScript) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if entries, err := os.ReadDir(dir); err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == "kvcanary" }) {
			return dir
		}
	}
	ts.Fatalf("kvcanary is not in PATH")
	return ""
}
