//go:build !unix

package watch

import "time"

var started = time.Now()

// cpuTime is the time that has passed, for want of better.
func cpuTime() time.Duration { return time.Since(started) }
