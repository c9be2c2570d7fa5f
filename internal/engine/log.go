package engine

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Bounds of a start-up log.
const (
	maxLogLine  = 64 << 10 // bytes; what is longer is skipped
	maxLogLines = 1 << 20
)

// ErrNoEngine means that nothing in a text is an engine's.
var ErrNoEngine = errors.New("no engine is recognised")

// ReadLog reads the log that an engine wrote when it started. An empty name
// finds out which engine it was: the one that most lines say something as.
func ReadLog(r io.Reader, name string) (Facts, error) {
	found := make([]Facts, len(All))
	for i, e := range All {
		found[i].Engine = e.Name
	}
	in := bufio.NewReaderSize(r, maxLogLine)
	for n := 0; n < maxLogLines; n++ {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			line, err = nil, skipLine(in) // and the buffer holds the line's end by then
		}
		for i, e := range All {
			if e.line != nil && (name == "" || name == e.Name) {
				e.line(&found[i], strings.TrimRight(string(line), "\r\n"))
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Facts{}, fmt.Errorf("start-up log: %w", err)
		}
	}
	best := &found[0]
	for i := range found {
		if found[i].known() > best.known() {
			best = &found[i]
		}
	}
	if best.known() == 0 {
		return Facts{}, fmt.Errorf("start-up log: %w: give the whole log from the start of the engine", ErrNoEngine)
	}
	best.infer()
	return *best, nil
}

func skipLine(in *bufio.Reader) error {
	for {
		_, err := in.ReadSlice('\n')
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// known counts what a log has said.
func (f *Facts) known() int {
	n := 0
	for _, number := range []Number{f.Context, f.Pool, f.MaxInput, f.PageSize, f.Reserve, f.Slots} {
		if number.Value > 0 {
			n++
		}
	}
	for _, text := range []Text{f.Version, f.Role, f.Transfer} {
		if text.Value != "" {
			n++
		}
	}
	for _, flag := range []Flag{f.Truncates, f.Checksum, f.Unified, f.PrefixCache} {
		if flag.Known {
			n++
		}
	}
	return n
}

// after is the count that follows a text within a line, 0 if there is none.
func after(line, before string) count {
	return parseCount(strings.TrimRight(numeral(tailOf(line, before)), ","))
}

// wordAfter is the word that follows a text within a line, without quotes.
func wordAfter(line, before string) string {
	rest := strings.TrimLeft(tailOf(line, before), `'"`)
	if i := strings.IndexAny(rest, "'\", )\t"); i >= 0 {
		rest = rest[:i]
	}
	if len(rest) > maxWord {
		return ""
	}
	return rest
}

// tailOf is what follows a text that begins a word within a line.
func tailOf(line, before string) string {
	for from := 0; ; {
		i := strings.Index(line[from:], before)
		if i < 0 {
			return ""
		}
		i += from
		if i == 0 || !letter(line[i-1]) || !letter(before[0]) {
			return line[i+len(before):]
		}
		from = i + 1
	}
}

func letter(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_'
}

func numeral(s string) string {
	for i := range len(s) {
		if (s[i] < '0' || s[i] > '9') && s[i] != ',' {
			return s[:i]
		}
	}
	return s
}
