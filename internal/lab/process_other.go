//go:build !linux

package lab

import "syscall"

// childAttributes are the system's own: the end of its standard input tells a
// child that its parent is gone.
func childAttributes() *syscall.SysProcAttr { return nil }
