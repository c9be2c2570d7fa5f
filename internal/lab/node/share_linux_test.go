package node

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Nobody can cut or lengthen a pool that nodes have mapped, whoever may open it:
// the next read past its end would kill them.
func TestSharedMemoryCannotBeCut(t *testing.T) {
	m, path, err := CreateMemory(5, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, size := range []int64{0, 100, int64(fileBytes(5, 4)) - 1, int64(fileBytes(5, 4)) + 1} {
		if err := os.Truncate(path, size); !errors.Is(err, unix.EPERM) {
			t.Errorf("to %d bytes: %v", size, err)
		}
	}
	m.mark(4, markOf(owner(1, 2, 3), 0, 4, 4)) // it is all still there
}
