//go:build !linux

package node

import "os"

// newShared makes a file for a pool that only this user may open.
func newShared() (*os.File, error) { return os.CreateTemp("", "kvcanary-pool-") }

// share leaves a file its name, which is removed at the end of a process that
// is not killed.
func share(f *os.File) (path string, forget func() error, err error) {
	return f.Name(), func() error { return os.Remove(f.Name()) }, nil
}
