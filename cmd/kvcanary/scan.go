package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/prose"
	"github.com/kvcanary/kvcanary/internal/wire"
)

type scanCmd struct {
	KeyFile string   `name:"key-file" placeholder:"FILE" help:"Key that the canaries were made with. Default: kvcanary/key in the user's configuration directory."`
	Decode  bool     `default:"true" negatable:"" help:"Look into base64, hex and percent-encoded runs, UTF-16, and between tags and terminal colours as well."`
	Format  string   `enum:"text,json" default:"text" help:"text or json."`
	Files   []string `arg:"" optional:"" name:"file" help:"Files and folders to look through; standard input if none is named."`
}

// sighting is one line of the scan's output. JSON names are a contract.
type sighting struct {
	File     string `json:"file"`
	Start    int64  `json:"start"` // byte range in the file; of a text that was joined from pieces, all of it
	End      int64  `json:"end"`
	Form     string `json:"form"`
	View     string `json:"view,omitempty"`
	Run      int    `json:"run"`
	Tenant   int    `json:"tenant"`
	Exchange int    `json:"exchange"`
	Word     int    `json:"word"`
	Words    int    `json:"words"`
}

// Help says what a line means, which is no verdict, and what the exit codes do.
func (scanCmd) Help() string {
	return `Lists each place where a canary of this key stands: file, bytes, and the run, exchange, tenant and words that were planted. An answer that quotes its own prompt is listed too: it is a leak where text of one exchange stands in what belongs to another, or in what nobody of the run should have been sent.

Exit codes: 0 no canary, 1 canaries found, 2 wrong flags, 4 the key or a file cannot be read (and no canary was found in the others).`
}

func (c scanCmd) Run(s *session) error {
	path, err := keyPath(c.KeyFile)
	if err != nil {
		return err
	}
	// A key made on the spot would find nothing and call that clean.
	key, err := canary.LoadKey(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return unreachable(err)
	case err != nil:
		return exitError{exitUsage, err}
	}
	coder := canary.New(key)
	names, failed := c.names()
	found := 0
	show := printer(s.stdout, c.Format)
	for _, name := range names {
		n, err := c.scanFile(s, coder, name, show)
		found += n
		if err != nil {
			failed = append(failed, fmt.Errorf("scan %s: %w", name, err))
		}
	}
	fmt.Fprintf(s.stderr, "kvcanary: %s in %s\n", count(found, "canary", "canaries"), count(len(names), "file", "files"))
	for _, err := range failed {
		fmt.Fprintf(s.stderr, "kvcanary: %v\n", err)
	}
	switch {
	case found > 0:
		return exitError{code: exitFound}
	case len(failed) > 0:
		return exitError{code: exitUnreachable}
	}
	return nil
}

// names are the files to look through, folders with all that is below them.
func (c scanCmd) names() (names []string, failed []error) {
	if len(c.Files) == 0 {
		return []string{"-"}, nil
	}
	for _, root := range c.Files {
		if root == "-" {
			names = append(names, root)
			continue
		}
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				failed = append(failed, fmt.Errorf("scan: %w", err))
			case !d.IsDir():
				names = append(names, path)
			}
			return nil
		})
		if err != nil {
			failed = append(failed, fmt.Errorf("scan: %w", err))
		}
	}
	return names, failed
}

func (c scanCmd) scanFile(s *session, coder *canary.Coder, name string, show func(sighting)) (int, error) {
	in := s.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		in = f
	}
	f := fileScan{coder: coder, name: name, show: show, seen: map[canary.ID]bool{}}
	err := f.scan(in, c.Decode)
	return f.found, err
}

// joinMost is how much of a file is looked through for a recorded answer, whose
// text is put together again from the events that it came in, bytes.
const joinMost = 64 << 20

// fileScan looks through one file.
type fileScan struct {
	coder *canary.Coder
	name  string
	show  func(sighting)
	found int
	seen  map[canary.ID]bool
}

func (f *fileScan) scan(in io.Reader, decode bool) error {
	scanner := f.coder.NewScanner(canary.ScanOptions{Decode: decode}, f.tell)
	record := &firstBytes{most: joinMost}
	if _, err := io.Copy(io.MultiWriter(scanner, record), in); err != nil {
		return err
	}
	if err := scanner.Close(); err != nil {
		return err
	}
	strands, _ := wire.Join(record.kept)
	var best []canary.Hit // the longest of each canary that the file does not show as it is
	for _, s := range strands {
		for _, text := range []string{s.Text, s.Spaced()} {
			for _, h := range f.coder.Scan([]byte(text)) {
				switch i := slices.IndexFunc(best, func(b canary.Hit) bool { return b.ID == h.ID }); {
				case f.seen[h.ID]:
				case i < 0:
					best = append(best, h)
				case h.Words > best[i].Words:
					best[i] = h
				}
			}
		}
	}
	for _, h := range best {
		h.View, h.Start, h.End = "joined", 0, record.size
		f.tell(h)
	}
	return nil
}

func (f *fileScan) tell(h canary.Hit) {
	f.found++
	f.seen[h.ID] = true
	f.show(sighting{
		File: f.name, Start: h.Start, End: h.End, Form: string(h.Form), View: h.View,
		Run: h.ID.Run(), Tenant: h.ID.Tenant(), Exchange: h.ID.Seq(), Word: h.Word, Words: h.Words,
	})
}

// firstBytes keeps the first bytes that are written to it.
type firstBytes struct {
	kept []byte
	most int
	size int64
}

func (b *firstBytes) Write(p []byte) (int, error) {
	b.size += int64(len(p))
	b.kept = append(b.kept, p[:min(len(p), b.most-len(b.kept))]...)
	return len(p), nil
}

// printer returns what writes one sighting: a line of text, or a line of JSON.
func printer(w io.Writer, format string) func(sighting) {
	if format == "json" {
		return func(x sighting) {
			p, err := json.Marshal(x)
			if err != nil {
				panic("kvcanary: internal error: " + err.Error())
			}
			w.Write(append(prose.EscapeJSON(p), '\n'))
		}
	}
	return func(x sighting) {
		what := fmt.Sprintf("words %d to %d", x.Word, x.Word+x.Words-1)
		if x.Form == string(canary.ShortToken) {
			what = "its token"
		}
		if x.View != "" {
			what += " (" + x.View + ")"
		}
		fmt.Fprintf(w, "%s:%d-%d: canary of run %d, exchange %d, tenant %d: %s\n", prose.Printable(x.File), x.Start, x.End, x.Run, x.Exchange, x.Tenant, what)
	}
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
