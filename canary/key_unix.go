//go:build unix

package canary

import "io/fs"

// readableByOthers reports whether anybody but the owner has any right to a file.
func readableByOthers(st fs.FileInfo) bool { return st.Mode().Perm()&0o077 != 0 }
