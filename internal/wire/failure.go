package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
	"unicode"
)

// CallError is why a call beside the prompts, a token count or a list of
// models, did not succeed. Exactly one of its fields is set.
type CallError struct {
	Refusal *Refusal
	Failure *Failure
}

func (e *CallError) Error() string {
	if e.Failure != nil {
		return e.Failure.Message
	}
	return fmt.Sprintf("refused with status %d (%s): %s", e.Refusal.Status, e.Refusal.Kind, e.Refusal.Message)
}

// stalled is the cause by which a watchdog cancels an exchange.
type stalled struct {
	after time.Duration
	doing string
}

func (s *stalled) Error() string {
	return fmt.Sprintf("%s for %v", s.doing, s.after)
}

// stall says what a cancelled exchange died of: the caller, a watchdog, or
// neither (nil).
func stall(ctx context.Context, host string) *Failure {
	cause := context.Cause(ctx)
	if cause == nil {
		return nil
	}
	if s, ok := errors.AsType[*stalled](cause); ok {
		return &Failure{FailedTimeout, fmt.Sprintf("%s: %v; gave up: the server may be overloaded, or the timeout be too short for this prompt", host, s)}
	}
	return &Failure{FailedCanceled, host + ": stopped before the answer was complete"}
}

// connectFailure explains an error that came in place of an HTTP response.
func connectFailure(ctx context.Context, host string, err error) *Failure {
	if f := stall(ctx, host); f != nil {
		return f
	}
	say := func(kind FailureKind, format string, args ...any) *Failure {
		return &Failure{kind, host + ": " + fmt.Sprintf(format, args...)}
	}
	if p, ok := errors.AsType[*promptError](err); ok {
		return say(FailedRequest, "could not %s; nothing is known about the target", oneLine(p.Error(), 200))
	}
	if strings.Contains(err.Error(), "invalid header field") {
		return say(FailedRequest, "the key holds a character that no header can carry, a line break perhaps: look at the variable it comes from")
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "proxyconnect" {
		return say(FailedConnect, "the proxy of the environment (HTTP_PROXY, HTTPS_PROXY) could not be reached (%s): correct or unset it, or add the host to NO_PROXY", oneLine(rootCause(err), 100))
	}
	if m := tlsProblem(err); m != "" {
		return say(FailedTLS, "%s", m)
	}
	if d, ok := errors.AsType[*net.DNSError](err); ok {
		if d.IsNotFound {
			return say(FailedConnect, "no such host: is the name in the base URL right?")
		}
		return say(FailedConnect, "the name could not be looked up: is the network up?")
	}
	var ne net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return say(FailedConnect, "nothing listens there (connection refused): is the server running, and the port right?")
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return say(FailedConnect, "no route to it: is the network up, and the address right?")
	case errors.As(err, &ne) && ne.Timeout():
		return say(FailedConnect, "no connection within %v: is the address right, and no firewall in between?", dialTimeout)
	case isHangup(err):
		return say(FailedCut, "the connection was closed before any answer came: see the server's log")
	case strings.Contains(err.Error(), "malformed "):
		return say(FailedNotAPI, "what answers there does not speak proper HTTP (%s): is the port right?", oneLine(rootCause(err), 100))
	}
	return say(FailedConnect, "the request failed: %s", oneLine(rootCause(err), 200))
}

// tlsProblem names what is wrong with a TLS connection, "" if nothing is.
func tlsProblem(err error) string {
	const fix = "; fix the certificate, or trust its authority (--ca FILE, or SSL_CERT_FILE)"
	if e, ok := errors.AsType[x509.HostnameError](err); ok {
		return "TLS: the certificate is for another name (" + oneLine(rootCause(e), 200) + ")" + fix
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "TLS: the certificate is signed by an authority that is not trusted here" + fix
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if e.Reason == x509.Expired {
			return "TLS: the certificate has expired or is not yet valid" + fix
		}
		return "TLS: the certificate is not valid (" + oneLine(e.Error(), 200) + ")" + fix
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "TLS: the certificate could not be verified (" + oneLine(rootCause(e), 200) + ")" + fix
	}
	plain := "TLS: the server there speaks plain HTTP: use http:// in the base URL, or the port that speaks TLS"
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return plain
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok || strings.Contains(err.Error(), "tls: ") {
		why := oneLine(rootCause(err), 200)
		if errors.Is(err, errUnshown) {
			why = errUnshown.Error()
		}
		if strings.Contains(why, "certificate required") || strings.Contains(why, "bad certificate") {
			why += "); the server wants a client certificate that it knows (--client-cert and --client-key"
		}
		return "TLS: the handshake failed (" + why + ")"
	}
	if strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return plain
	}
	if strings.Contains(err.Error(), "TLS handshake timeout") {
		return "TLS: the handshake did not finish in time: does the port speak TLS?"
	}
	return ""
}

// isHangup reports whether the other side closed the connection.
func isHangup(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed) ||
		strings.Contains(err.Error(), "server closed idle connection")
}

// rootCause is the innermost text of an error, without the URL and the
// addresses that net and net/http put before it.
func rootCause(err error) string {
	for {
		in := errors.Unwrap(err)
		if in == nil {
			return err.Error()
		}
		err = in
	}
}

// oneLine makes foreign text fit for a message: control characters become
// spaces and the length is bounded, in bytes.
func oneLine(s string, limit int) string {
	cut := len(s) > limit
	if cut {
		s = s[:limit]
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	s = strings.Join(strings.Fields(s), " ")
	if cut {
		s += "..."
	}
	return s
}
