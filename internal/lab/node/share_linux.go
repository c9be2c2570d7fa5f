package node

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// newShared makes a file for a pool that only this user may open. It is memory
// without a name, so that nothing is left of it however its processes end.
func newShared() (*os.File, error) {
	fd, err := unix.MemfdCreate("kvcanary-pool", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "kvcanary-pool")
	if err := f.Chmod(0o600); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// share fixes the file's length for good: a mapping that somebody cuts kills
// whoever reads it. It says where the file is found while this process has it
// open.
func share(f *os.File) (path string, forget func() error, err error) {
	const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return "", nil, fmt.Errorf("seal: %w", err)
	}
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd()), func() error { return nil }, nil
}
