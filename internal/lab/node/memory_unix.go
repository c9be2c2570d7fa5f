//go:build unix

package node

import (
	"os"
	"syscall"
)

// mapFile maps the start of a file, shared with everybody who maps it too.
func mapFile(f *os.File, bytes int) (mem []byte, unmap func() error, err error) {
	mem, err = syscall.Mmap(int(f.Fd()), 0, bytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, err
	}
	return mem, func() error { return syscall.Munmap(mem) }, nil
}
