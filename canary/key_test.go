package canary

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestKeyFileIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "canary.key")
	if _, err := LoadKey(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("LoadKey of no file: %v", err)
	}
	k, created, err := LoadOrCreateKey(path, rand.Reader)
	if err != nil || !created || k == (Key{}) {
		t.Fatalf("made %v, created %v: %v", k, created, err)
	}
	again, created, err := LoadOrCreateKey(path, strings.NewReader(""))
	if err != nil || created || again != k {
		t.Fatalf("read %v, created %v: %v", again, created, err)
	}
	for name, mode := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if st, err := os.Stat(name); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: mode %v, want %v: %v", name, st.Mode(), mode, err)
		}
	}
	if b, _ := os.ReadFile(path); !bytes.Equal(b, k[:]) {
		t.Error("the file does not hold the key")
	}
	if names, _ := os.ReadDir(filepath.Dir(path)); len(names) != 1 {
		t.Errorf("files left over: %v", names)
	}
}

func TestKeyFileRefused(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, size int, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, make([]byte, size), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := filepath.Join(dir, "dangling")
	if err := os.Symlink(filepath.Join(dir, "nowhere"), link); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path string
		want error
		says string
	}{
		{file("group", KeySize, 0o640), ErrKeyReadable, "chmod 600 "},
		{file("others", KeySize, 0o604), ErrKeyReadable, "chmod 600 "},
		{file("short", KeySize-1, 0o600), ErrKeySize, "has 31"},
		{file("hex", 2*KeySize, 0o600), ErrKeySize, "has 64"},
		{file("empty", 0, 0o600), ErrKeySize, "has 0"},
		{dir, ErrKeyNotFile, "is a directory"},
		{os.DevNull, ErrKeyNotFile, "give the path of a file"},
		{filepath.Join(file("plain", 1, 0o600), "under"), nil, "not a directory"},
		{link, nil, "symbolic link to nothing"},
	} {
		_, created, err := LoadOrCreateKey(tt.path, rand.Reader)
		if err == nil || created || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: created %v, error %v, want %v saying %q", tt.path, created, err, tt.want, tt.says)
		}
	}
}

func TestKeyFileFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	k, _, err := LoadOrCreateKey(filepath.Join(dir, "real"), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if got, err := LoadKey(filepath.Join(dir, "link")); err != nil || got != k {
		t.Fatalf("through a link: %v: %v", got, err)
	}
}

func TestKeyFileNeedsRandomness(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if _, _, err := LoadOrCreateKey(path, strings.NewReader("short")); err == nil {
		t.Fatal("a key was made from five bytes")
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was left behind: %v", err)
	}
}

// TestKeyFileRace: whoever comes first makes the key, and all use it.
func TestKeyFileRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	keys, made := make([]Key, 16), make([]bool, 16)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			var err error
			if keys[i], made[i], err = LoadOrCreateKey(path, rand.Reader); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	n := 0
	for i := range keys {
		if keys[i] != keys[0] {
			t.Fatal("two keys")
		}
		if made[i] {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d made the key", n)
	}
}

// TestKeyIsNotShown: no verb shows the key, and its name does not give it away.
func TestKeyIsNotShown(t *testing.T) {
	k := testKey(200)
	text, err := k.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	shown := string(text)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%X", "%q", "%d"} {
		shown += fmt.Sprintf(verb, k) + fmt.Sprintf(verb, &k) + fmt.Sprintf(verb, []Key{k})
	}
	for _, secret := range []string{hex.EncodeToString(k[:4]), string(k[:4]), "200 201", "200, 201"} {
		if strings.Contains(strings.ToLower(shown), secret) {
			t.Errorf("%q shows in %q", secret, shown)
		}
	}
	if len(k.ID()) != 16 || k.ID() == testKey(201).ID() {
		t.Errorf("name %q", k.ID())
	}
}
