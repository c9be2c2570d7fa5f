// Package speed measures the guard as a process of its own, beside other ways
// to the same engine: what it costs, what it holds and whether that grows. All
// of it is in the tests, which read /proc and so run on Linux:
//
//	make guard-speed
//	make soak
//
// go test ./... runs short forms, in which the test's own binary serves as the
// guard and nothing depends on how fast the machine is.
package speed
