package lab

import "syscall"

// childAttributes make a child die with its parent, and keep the terminal's
// interrupt, which is for the parent, from ending it first.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
