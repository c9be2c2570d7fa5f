package guard

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
)

// head is the beginning of an upstream's answer.
type head struct {
	status int
	minor  int // of HTTP/1
	header http.Header
}

// errHead is a head that is read in different ways by different readers, or in
// none. All of them are refused: what one answer's end is, is the next one's
// beginning.
var errHead = errors.New("the upstream's answer is not valid HTTP/1.1")

func badHead(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errHead}, args...)...)
}

// readHead reads a status line and the headers behind it, budget bytes at most.
// Unlike net/http it takes no bare line feeds, no folded lines and no space
// before a colon, which RFC 9112 has readers refuse or repair as they like.
func readHead(br *bufio.Reader, budget *int) (head, error) {
	line, err := readLine(br, budget)
	if err != nil {
		return head{}, err
	}
	// "HTTP/1.1 200 OK", the reason of any length.
	h := head{}
	switch {
	case bytes.HasPrefix(line, []byte("HTTP/1.1 ")):
		h.minor = 1
	case !bytes.HasPrefix(line, []byte("HTTP/1.0 ")):
		return head{}, badHead("it does not begin with HTTP/1.1")
	}
	code := line[len("HTTP/1.1 "):]
	if len(code) < 3 || len(code) > 3 && code[3] != ' ' {
		return head{}, badHead("its status line has no status")
	}
	for _, c := range code[:3] {
		if c < '0' || c > '9' {
			return head{}, badHead("its status line has no status")
		}
		h.status = h.status*10 + int(c-'0')
	}
	if h.status < 100 || h.status > 599 {
		return head{}, badHead("status %d does not exist", h.status)
	}
	h.header, err = readHeaders(br, budget)
	return h, err
}

// readHeaders reads header lines up to the empty one; they are the same before
// a body and, as trailers, behind it.
func readHeaders(br *bufio.Reader, budget *int) (http.Header, error) {
	header := make(http.Header, 8)
	for n := 0; ; n++ {
		line, err := readLine(br, budget)
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			return header, nil
		}
		if n == 200 {
			return nil, badHead("more than 200 header lines")
		}
		name, value, ok := strings.Cut(string(line), ":")
		if !ok || !isToken(name) {
			return nil, badHead("a header line has no name")
		}
		value = strings.Trim(value, " \t")
		for _, c := range []byte(value) {
			if c < ' ' && c != '\t' || c == 0x7f {
				return nil, badHead("a header has control characters")
			}
		}
		key := textproto.CanonicalMIMEHeaderKey(name)
		header[key] = append(header[key], value)
	}
}

// readLine reads a line without its end. It is valid until the next read.
func readLine(br *bufio.Reader, budget *int) ([]byte, error) {
	line, err := br.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := bytes.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) && len(long) <= *budget {
			line, err = br.ReadSlice('\n')
			long = append(long, line...)
		}
		line = long
	}
	if *budget -= len(line); *budget < 0 {
		return nil, badHead("its head is too large")
	}
	if err != nil {
		if err == io.EOF && len(line) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	line, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok || bytes.IndexByte(line, '\r') >= 0 {
		return nil, badHead("a line ends in something else than CR LF")
	}
	return line, nil
}

func isToken(name string) bool {
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return len(name) > 0
}

// framing says where the body of an answer ends.
type framing struct {
	length  int64 // bytes; -1: not stated
	chunked bool
	keep    bool // the upstream would take another request behind it
}

// frame reads it off the head. An answer that states its length in two ways is
// refused: RFC 9112, 6.1 and 6.3, calls it an attempt at smuggling.
func (h *head) frame() (framing, error) {
	f := framing{length: -1, keep: h.minor == 1 && !listed(h.header["Connection"], "close")}
	lengths, codings := h.header["Content-Length"], h.header["Transfer-Encoding"]
	switch {
	case len(codings) > 0 && len(lengths) > 0:
		return f, badHead("it has both Transfer-Encoding and Content-Length")
	case len(lengths) > 1:
		return f, badHead("it has more than one Content-Length")
	case len(codings) > 0:
		if len(codings) > 1 || !strings.EqualFold(codings[0], "chunked") || h.minor == 0 {
			return f, badHead("its Transfer-Encoding is not chunked")
		}
		f.chunked = true
	case len(lengths) == 1:
		n, err := strconv.ParseUint(lengths[0], 10, 62)
		if err != nil {
			return f, badHead("its Content-Length is no number")
		}
		f.length = int64(n)
	}
	if h.status == http.StatusNoContent || h.status == http.StatusNotModified {
		if f.chunked || f.length > 0 {
			// Nobody agrees on whether one comes.
			return f, badHead("status %d with a body", h.status)
		}
		f.length = 0
	}
	if !f.chunked && f.length < 0 {
		f.keep = false // it ends with the connection
	}
	return f, nil
}

// listed says that a comma-separated header names a word.
func listed(values []string, word string) bool {
	for _, v := range values {
		for item := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(item), word) {
				return true
			}
		}
	}
	return false
}
