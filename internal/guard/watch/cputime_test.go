//go:build unix

package watch

import (
	"syscall"
	"time"
)

// cpuTime is the processor time that the process has used. Rates by it are not
// blurred by what else runs on the machine.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
