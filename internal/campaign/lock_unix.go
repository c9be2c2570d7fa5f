//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package campaign

import (
	"errors"
	"os"
	"syscall"
)

// lock takes a directory for this process until f is closed, or the process
// ends. It reports false if another process has taken it.
func lock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	if errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.ENOSYS) {
		return true, nil // some network file systems have no locks
	}
	return err == nil, err
}
