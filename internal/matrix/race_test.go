//go:build race

package matrix

// slow says that everything takes fifteen times as long.
const slow = true
