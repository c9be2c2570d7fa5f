//go:build unix

package guard

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// quiet says that an idle connection is open and that nothing has come on it
// since its last answer. Bytes that came belong to no request: whoever sent them
// means them for the next one's client.
//
// It lifts the read deadline of a connection with TLS.
func quiet(c net.Conn) bool {
	if t, ok := c.(*tls.Conn); ok {
		if !drained(t) {
			return false
		}
		c = t.NetConn()
	}
	raw, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	rc, err := raw.SyscallConn()
	if err != nil {
		return false
	}
	open := false
	var one [1]byte
	err = rc.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK)
		open = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true
	})
	return err == nil && open
}

// drained says that nothing is left of what was received and decrypted: bytes
// behind an answer may have come in one record with its end. A read whose time
// is over takes what is there, and nothing from the network.
func drained(t *tls.Conn) bool {
	if t.SetReadDeadline(time.Unix(1, 0)) != nil {
		return false
	}
	var one [1]byte
	n, err := t.Read(one[:])
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && t.SetReadDeadline(time.Time{}) == nil
}
