package report

import (
	"archive/zip"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/kvcanary/kvcanary/canary"
	"github.com/kvcanary/kvcanary/internal/oracle"
	"github.com/kvcanary/kvcanary/internal/prose"
)

// Disclosed is one finding as a vendor needs it to find the request again.
type Disclosed struct {
	oracle.Finding
	RequestID string    `json:"request_id,omitempty"` // as the target named it
	Start     time.Time `json:"start"`
	End       time.Time `json:"end"`
	Status    int       `json:"status"`
	// From is when the exchange was under way whose words came out.
	FromRequestID string     `json:"from_request_id,omitempty"`
	FromStart     *time.Time `json:"from_start,omitempty"`
}

// Disclosure writes one archive for a vendor's security team: what was found
// with exact times and request ids, the receipts with their proofs, and what
// makes it happen again. The key that canaries were made with is not in it:
// the reproduction has a key of its own. No answer is in it but for words that
// kvcanary planted.
func Disclosure(w io.Writer, run *Run) error {
	if len(run.Result.Findings) == 0 {
		return errors.New("nothing was found that could be disclosed")
	}
	own := *run
	own.ShowForeign = false // the archive is for others
	run = &own
	var summary bytes.Buffer
	if err := Markdown(&summary, run); err != nil {
		return err
	}
	var findings bytes.Buffer
	if err := prose.JSON(&findings, disclosed(run)); err != nil {
		return err
	}
	var key canary.Key
	rand.Read(key[:]) // never fails
	files := []struct {
		name string
		mode fs.FileMode
		data []byte
	}{
		{"README.md", 0o644, fmt.Appendf(nil, "%s\n%s", summary.String(), disclosureGuide)},
		{"findings.json", 0o644, findings.Bytes()},
		{"reproduce/run.sh", 0o755, []byte(reproduction(run))},
		{"reproduce/key", 0o600, key[:]},
	}
	z := zip.NewWriter(w)
	for _, f := range files {
		if err := addFile(z, run, f.name, f.mode, f.data); err != nil {
			return err
		}
	}
	if err := addReceipts(z, run); err != nil {
		return err
	}
	return z.Close()
}

const disclosureGuide = `
## What is in this archive

- findings.json: every finding, with the times and request ids of the answer and of the exchange whose words came out.
- receipt/: the sealed plan and result with their proofs, if the run was sealed; ` + "`kvcanary receipt verify`" + ` of the run directory checks them, the proofs alone can be checked with key.pub.
- reproduce/: run.sh makes a run of the same plan with a key made for this archive. Put your own address and credentials in.

No credentials, no key of the reporter and no text of answers but words that kvcanary itself had planted are in it.
`

func disclosed(run *Run) []Disclosed {
	at := map[int]int{}
	for i := range run.Exchanges {
		at[run.Exchanges[i].Seq] = i
	}
	out := []Disclosed{}
	for _, f := range run.Result.Findings {
		d := Disclosed{Finding: f, RequestID: requestID(run, f.Exchange)}
		if i, ok := at[f.Exchange]; ok && run.Exchanges[i].Answer != nil {
			a := run.Exchanges[i].Answer
			d.Start, d.End, d.Status = a.Start, a.End, a.Status
		}
		if f.FromExchange != nil {
			d.FromRequestID = requestID(run, *f.FromExchange)
			if i, ok := at[*f.FromExchange]; ok && run.Exchanges[i].Answer != nil {
				d.FromStart = &run.Exchanges[i].Answer.Start
			}
		}
		out = append(out, d)
	}
	return out
}

// reproduction is a script that makes the run again, for whoever has a target.
func reproduction(run *Run) string {
	command := strings.Replace(repeat(run.Result), "--base-url "+shellWord(run.Result.Target.BaseURL), `--base-url "${BASE_URL:?}"`, 1)
	if f := run.Plan.Facts; f.Context > 0 {
		command += fmt.Sprintf(" --context %d", f.Context)
	}
	if f := run.Plan.Facts; f.Pool > 0 {
		command += fmt.Sprintf(" --pool %d", f.Pool)
	}
	if n := len(run.Plan.Tenants); n > 1 {
		for i := range n {
			command += fmt.Sprintf(" --tenant t%d=KEY_%d", i+1, i+1)
		}
	}
	return "#!/bin/sh\n# Set BASE_URL; for several tenants KEY_1, KEY_2 and so on to their keys.\nset -eu\ncd \"$(dirname \"$0\")\"\nchmod 600 key\nexec " +
		command + " --key-file key --no-receipt \"$@\"\n"
}

func addFile(z *zip.Writer, run *Run, name string, mode fs.FileMode, data []byte) error {
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: run.Result.Started}
	h.SetMode(mode)
	f, err := z.CreateHeader(h)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return err
}

// maxReceipt bounds a file of a receipt, bytes: a list of all files of a run of
// a million exchanges is below.
const maxReceipt = 256 << 20

// readPlain reads a plain file, and nothing that could keep who reads it waiting.
func readPlain(in fs.FS, name string) ([]byte, error) {
	st, err := fs.Stat(in, name)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > maxReceipt {
		return nil, fmt.Errorf("%s is no plain file of a receipt", name)
	}
	return fs.ReadFile(in, name)
}

// addReceipts copies the receipts of a run, as far as it has any.
func addReceipts(z *zip.Writer, run *Run) error {
	root, err := os.OpenRoot(run.Path)
	if err != nil {
		return err
	}
	defer root.Close()
	names, err := fs.Glob(root.FS(), "receipt/*")
	if err != nil {
		return err
	}
	for _, name := range names {
		p, err := readPlain(root.FS(), name)
		if err != nil {
			return fmt.Errorf("add the receipt: %w", err)
		}
		if err := addFile(z, run, path.Clean(name), 0o644, p); err != nil {
			return err
		}
	}
	return nil
}
