// Package stats holds the bounds and tests that verdicts rest on.
//
// Everything is exact: no normal approximation, because the counts here are
// small and the interesting ones are zero. Pure functions of their arguments;
// an argument outside its domain is a bug of the caller and panics.
package stats
