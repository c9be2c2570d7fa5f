package engine

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what is read from recorded answers, logs and commands into their files")

// recorded runs a check on every file of a folder under testdata, and compares
// what it makes of it with the file's last section.
func recorded(t *testing.T, folder string, least int, read func(*testing.T, *txtar.Archive) Facts) {
	paths, err := filepath.Glob(filepath.Join("testdata", folder, "*.txtar"))
	if err != nil || len(paths) < least {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			last := len(a.Files) - 1
			var want []byte
			if a.Files[last].Name == "facts" {
				want = a.Files[last].Data
				a.Files = a.Files[:last]
			}
			got := short(t, read(t, a))
			if strings.Contains(string(got), "marked-secret") {
				t.Errorf("facts hold a secret: %s", got)
			}
			if *update {
				a.Files = append(a.Files, txtar.File{Name: "facts", Data: got})
				if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// short is one line a fact.
func short(t *testing.T, f Facts) []byte {
	p, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	d := json.NewDecoder(bytes.NewReader(p))
	d.Token() // the opening brace
	for d.More() {
		name, _ := d.Token()
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
		if s := string(value); s != `{"value":0}` && s != `{"value":""}` {
			out.WriteString(name.(string) + " " + s + "\n")
		}
	}
	return out.Bytes()
}

// What engines of several releases answer is understood, odd answers too.
func TestRecordedAnswers(t *testing.T) {
	recorded(t, "answers", 17, func(t *testing.T, a *txtar.Archive) Facts {
		url := start(t, func(w http.ResponseWriter, r *http.Request) {
			for _, f := range a.Files {
				if f.Name == r.URL.Path {
					w.Write(f.Data)
					return
				}
			}
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"detail":"Not Found"}`)
		})
		return ask(t, url)
	})
}

func TestRecordedLogs(t *testing.T) {
	recorded(t, "logs", 7, func(t *testing.T, a *txtar.Archive) Facts {
		f, err := ReadLog(bytes.NewReader(a.Files[0].Data), "")
		if err != nil {
			t.Fatal(err)
		}
		return f
	})
}
