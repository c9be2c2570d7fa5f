package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kvcanary/kvcanary/canary"
)

// keyPath is the key file that a command uses: the flag, else the user's own.
func keyPath(flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", usageErrorf("no place for the key file: %w; name one with --key-file", err)
	}
	return filepath.Join(dir, "kvcanary", "key"), nil
}

// loadKey reads the key file, and makes it on first use.
func loadKey(s *session, flag string) (canary.Key, error) {
	path, err := keyPath(flag)
	if err != nil {
		return canary.Key{}, err
	}
	if flag != "" {
		// A folder that is not there is more likely a slip than a wish.
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return canary.Key{}, usageErrorf("key file: %w: make the folder first", err)
		}
	}
	key, created, err := canary.LoadOrCreateKey(path, rand.Reader)
	if err != nil {
		return canary.Key{}, exitError{exitUsage, err}
	}
	if created {
		fmt.Fprintf(s.stderr, "kvcanary: made a new key, %s: keep it, canaries are recognised by it alone\n", path)
	}
	return key, nil
}
