package canary

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// KeySize is the length of a key and of a key file in bytes.
const KeySize = 32

// Key is the secret from which all canaries of its owner are made. Whoever
// has it can mint canaries that the owner's scanner believes.
type Key [KeySize]byte

// ID names a key without giving it away: 16 hex characters.
func (k Key) ID() string { return hex.EncodeToString(derive(&k, "name", 8)) }

// String keeps the key out of logs: it shows only its name.
func (k Key) String() string { return "canary key " + k.ID() }

// GoString is String, for %#v.
func (k Key) GoString() string { return k.String() }

// Format is String, whatever the verb: %x would show the key.
func (k Key) Format(f fmt.State, _ rune) { io.WriteString(f, k.String()) }

// MarshalText is ID, so that a key in a structure is not written to JSON.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.ID()), nil }

// Reasons to refuse a key file. Each comes wrapped in an error that names the
// file and says what to do.
var (
	ErrKeyReadable = errors.New("key file is readable by others")
	ErrKeySize     = fmt.Errorf("key file does not hold %d bytes", KeySize)
	ErrKeyNotFile  = errors.New("key file is not a regular file")
)

// LoadOrCreateKey reads a key file of 32 raw bytes. If there is none it makes
// one from random, readable by its owner only, together with the directories
// above it; created tells. Of several processes that make the same file at
// once, all return the one key that came to stay. Symbolic links are followed.
func LoadOrCreateKey(path string, random io.Reader) (k Key, created bool, err error) {
	k, err = LoadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, false, err
	}
	if _, err := os.Lstat(path); err == nil {
		return Key{}, false, fmt.Errorf("key file %s is a symbolic link to nothing: remove it or make what it points to", path)
	}
	err = createKey(path, random)
	if errors.Is(err, fs.ErrExist) {
		k, err = LoadKey(path)
		return k, false, err
	}
	if err != nil {
		return Key{}, false, err
	}
	k, err = LoadKey(path)
	return k, err == nil, err
}

// LoadKey reads a key file that must exist and hold 32 raw bytes that nobody but
// the owner may read. An error that is fs.ErrNotExist means that there is none.
// The checks are made on the
// open file, so that it cannot be changed for another in between.
func LoadKey(path string) (Key, error) {
	// A named pipe would block on opening, so the kind is looked at before.
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return Key{}, notAFile(path, st)
	}
	f, err := os.Open(path)
	if err != nil {
		return Key{}, fmt.Errorf("open key file: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return Key{}, fmt.Errorf("look at key file: %w", err)
	}
	switch {
	case !st.Mode().IsRegular():
		return Key{}, notAFile(path, st)
	case readableByOthers(st):
		return Key{}, fmt.Errorf("%w: run chmod 600 %s (mode is %#o), and make a new key if others may have read it",
			ErrKeyReadable, path, st.Mode().Perm())
	case st.Size() != KeySize:
		return Key{}, fmt.Errorf("%w: %s has %d: give another path, or remove it to have a new key made",
			ErrKeySize, path, st.Size())
	}
	var k Key
	if _, err := io.ReadFull(f, k[:]); err != nil {
		return Key{}, fmt.Errorf("read key file %s: %w", path, err)
	}
	return k, nil
}

func notAFile(path string, st fs.FileInfo) error {
	what := "something else"
	if st.IsDir() {
		what = "a directory"
	}
	return fmt.Errorf("%w: %s is %s: give the path of a file", ErrKeyNotFile, path, what)
}

// createKey makes a key file that appears whole or not at all, and never in
// place of another: it is written beside and then linked.
func createKey(path string, random io.Reader) (err error) {
	var k Key
	if _, err := io.ReadFull(random, k[:]); err != nil {
		return fmt.Errorf("make a key: read random bytes: %w", err)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of the key file: %w", err)
	}
	f, err := os.CreateTemp(dir, ".canary-key-*") // mode 0600
	if err != nil {
		return fmt.Errorf("make key file: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(k[:])
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	if err := os.Link(f.Name(), path); err != nil {
		return fmt.Errorf("put key file in place: %w", err)
	}
	return nil
}
