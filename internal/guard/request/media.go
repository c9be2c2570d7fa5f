package request

import (
	"bytes"
	"net/http"
	"net/netip"
	"strings"
)

// mediaURL refuses media that an engine would read from its own disk: whatever
// is not data or an address on the web. Some engines take base64 without a
// scheme, which cannot be told from a path. And it refuses addresses that only
// the engine can reach: its own paths among them, which the table of routes has
// closed, as /flush_cache of an SGLang that takes it by GET.
func (m *machine) mediaURL(n *node) {
	if len(m.value) == 0 && !m.over || m.kind != '"' {
		return
	}
	s := unescape(m.scratch[:0], m.value[:wholeEscapes(m.value)]) // of a long one the beginning will do
	m.scratch = s
	web := hasScheme(s, "http://") || hasScheme(s, "https://")
	switch {
	case hasScheme(s, "data:"):
	case !web:
		m.refuseAs(http.StatusBadRequest, CodeFieldRefused, n.path, n.path+" must begin with data:, http: or https:, since an engine may read anything else from its own disk")
	case !m.p.AllowPrivateMedia && !publicHost(string(s[bytes.IndexByte(s, '/')+2:])):
		m.refuseAs(http.StatusBadRequest, CodeFieldRefused, n.path, n.path+" must name a host on the public web, as everybody writes it: others may be reached by the engine alone")
	}
}

// wholeEscapes is up to where a string that may have been cut off has no piece
// of an escape.
func wholeEscapes(s []byte) int {
	i := 0
	for i < len(s) {
		n := 1
		if s[i] == '\\' {
			n = 2
			if i+1 < len(s) && s[i+1] == 'u' {
				n = 6
				if i+4 <= len(s) && (s[i+2] == 'd' || s[i+2] == 'D') && s[i+3] >= '8' { // the first half of a pair
					n = 12
				}
			}
		}
		if i+n > len(s) {
			break
		}
		i += n
	}
	return i
}

func hasScheme(s []byte, scheme string) bool {
	return len(s) >= len(scheme) && bytes.EqualFold(s[:len(scheme)], []byte(scheme))
}

// privateNames are the ends of names that no public server has: RFC 6761, 6762,
// 8375 and 9476, and what clusters and clouds use.
var privateNames = []string{"localhost", "local", "internal", "intranet", "lan", "home", "corp", "private", "home.arpa", "test", "example", "invalid", "onion", "svc"}

// publicHost reports whether what stands behind a scheme names a host that
// everybody can reach, in a form that all parsers read alike: a name with a dot
// and a last label that is no number, or an address in its usual form. A public
// name may yet be resolved to a private address.
func publicHost(rest string) bool {
	host := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host = rest[:i]
	}
	if inner, port, ok := strings.Cut(strings.TrimPrefix(host, "["), "]"); ok && strings.HasPrefix(host, "[") {
		a, err := netip.ParseAddr(inner)
		return err == nil && a.Zone() == "" && validPort(port) && publicAddress(a)
	}
	if i := strings.IndexByte(host, ':'); i >= 0 {
		if !validPort(host[i:]) {
			return false
		}
		host = host[:i]
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if a, err := netip.ParseAddr(host); err == nil {
		return publicAddress(a)
	}
	labels := strings.Split(host, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	last := labels[len(labels)-1]
	if len(labels) < 2 || last[0] >= '0' && last[0] <= '9' {
		return false
	}
	for _, end := range privateNames {
		if strings.HasSuffix("."+host, "."+end) {
			return false
		}
	}
	return true
}

// validPort takes ":" and a number, or nothing.
func validPort(s string) bool {
	return s == "" || s[0] == ':' && len(s) <= 6 && strings.Trim(s[1:], "0123456789") == ""
}

// notPublic are networks, beside those that netip knows, that are no part of the
// public Internet, or lead into one that is not: RFC 6890, 6598, 6052, 3056, 4380.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("::/96"), netip.MustParsePrefix("fec0::/10"),
}

func publicAddress(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
