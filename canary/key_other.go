//go:build !unix

package canary

import "io/fs"

// readableByOthers is always false where file modes say nothing about access.
func readableByOthers(fs.FileInfo) bool { return false }
