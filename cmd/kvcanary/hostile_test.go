package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// replies answers a chat with a body as it is.
func replies(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if chat(w, r) {
			w.Header().Set("Content-Type", contentType)
			io.WriteString(w, body)
		}
	}
}

// counted is an answer that says of its tokens what usage says.
func counted(usage string) http.HandlerFunc {
	return replies("application/json", strings.Replace(noUsage, `"finish_reason":"stop"}]}`, `"finish_reason":"stop"}],`+usage+`}`, 1))
}

// forever writes a piece again and again until the client has had enough.
func forever(contentType, first, piece string, pause time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !chat(w, r) {
			return
		}
		w.Header().Set("Content-Type", contentType)
		io.WriteString(w, first)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, piece); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			time.Sleep(pause)
		}
	}
}

// raw answers a chat with bytes of its own, below HTTP, until the client has
// had enough.
func raw(first, piece string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !chat(w, r) {
			return
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		send(conn, first, piece)
	}
}

func send(conn net.Conn, first, piece string) {
	_, err := io.WriteString(conn, first)
	for sent := 0; err == nil && piece != "" && sent < 1<<30; sent += len(piece) {
		_, err = io.WriteString(conn, piece)
	}
}

func bomb(w http.ResponseWriter, r *http.Request) {
	if !chat(w, r) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
	io.WriteString(z, noUsage[:90])
	block := make([]byte, 1<<20)
	for range 10 << 10 {
		if _, err := z.Write(block); err != nil {
			return
		}
	}
}

// hostile are servers that mean harm, or are broken as if they did.
var hostile = map[string]http.HandlerFunc{
	"deep": replies("application/json", strings.Repeat(`{"choices":[`, 1<<20)),
	"deeperror": func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(400)
		io.WriteString(w, strings.Repeat(`{"error":`, 1<<20))
	},
	"gigaheader":    raw("HTTP/1.1 200 OK\r\nX-Long: ", strings.Repeat("long ", 20_000)),
	"manyheaders":   raw("HTTP/1.1 200 OK\r\n", strings.Repeat("X-Many: more\r\n", 5_000)),
	"informational": raw("", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 1000)),
	"nohttp":        raw("SSH-2.0-OpenSSH_9.6\r\n", ""),
	"bomb":          bomb,
	"comments":      forever("text/event-stream", "", ": still here\n\n", time.Millisecond),
	"endless":       forever("text/event-stream", "", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"on and \"}}]}\n\n", time.Millisecond),
	"endlessline":   forever("text/event-stream", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"", "on and ", time.Millisecond),
	"drip":          forever("application/json", noUsage[:90], "x", 200*time.Millisecond),
	"silent": func(w http.ResponseWriter, r *http.Request) {
		if chat(w, r) {
			<-r.Context().Done()
		}
	},
	"image":         replies("image/png", "\x89PNG\r\n\x1a\n"+strings.Repeat("\x00\xff", 500)),
	"nothing":       replies("application/json", ""),
	"null":          replies("application/json", "null"),
	"choicesobject": replies("application/json", `{"choices":{"message":{"content":"noted"}}}`),
	"plaintype":     replies("text/plain", noUsage),
	"twousages":     counted(`"usage":{"prompt_tokens":50,"completion_tokens":1},"usage":{"prompt_tokens":-7,"completion_tokens":1e30}`),
	"negative":      counted(`"usage":{"prompt_tokens":-50,"completion_tokens":-1,"prompt_tokens_details":{"cached_tokens":-3}}`),
	"nan":           counted(`"usage":{"prompt_tokens":NaN,"completion_tokens":1}`),
	"enormous":      counted(fmt.Sprintf(`"usage":{"prompt_tokens":%d,"completion_tokens":%d}`, uint64(1<<63-1), uint64(1<<63-1))),
	"usageinwords":  counted(`"usage":{"prompt_tokens":"fifty","completion_tokens":null}`),
}
