package config

import (
	"math"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// str takes a text. A value that looks like a key is refused wherever it stands.
func str(what string, out *string) field { return words(what, looksSecret, out) }

// file takes the path of a file, a folder or a socket. One that is written as a
// path may be as mixed as a key is: names of folders are given out by machines.
func file(what string, out *string) field {
	return words(what, func(s string) bool {
		if strings.HasPrefix(s, "/") || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../") {
			return slices.ContainsFunc(strings.Split(s, "/"), beginsAsKey)
		}
		return looksSecret(s)
	}, out)
}

func words(what string, secret func(string) bool, out *string) field {
	return field{what, func(n *yaml.Node) *Error {
		if err := scalar(n, what, "a text"); err != nil {
			return err
		}
		if n.Tag != "!!str" && n.Tag != "!!int" && n.Tag != "!!float" {
			return at(n, "%s holds %s: write a text, in quotes if it looks like something else", what, kindOf(n))
		}
		if secret(n.Value) {
			return at(n, "%s: this looks like a key: no key belongs into a file, name the environment variable that holds it", what)
		}
		if n.Value == "" {
			return at(n, "%s is empty: write a text, or leave the line out", what)
		}
		*out = n.Value
		return nil
	}}
}

// variable takes the name of an environment variable.
func variable(what string, out *string) field {
	return field{what, func(n *yaml.Node) *Error {
		if err := scalar(n, what, "the name of an environment variable"); err != nil {
			return err
		}
		if looksSecret(n.Value) || !variableName.MatchString(n.Value) {
			return at(n, "%s: write the name of an environment variable, such as API_KEY: the key itself does not belong into a file", what)
		}
		*out = n.Value
		return nil
	}}
}

// count takes a whole number from least on.
func count(what string, least int, out *int) field {
	return field{what, func(n *yaml.Node) *Error {
		v, err := number(n, what)
		if err != nil {
			return err
		}
		if v < int64(least) {
			return at(n, "%s is %d: it must be at least %d", what, v, least)
		}
		*out = int(v)
		return nil
	}}
}

// decimal takes a number from least to most.
func decimal(what string, least, most float64, out *float64) field {
	return field{what, func(n *yaml.Node) *Error {
		if err := scalar(n, what, "a number"); err != nil {
			return err
		}
		v, err := strconv.ParseFloat(digits(n), 64)
		if err != nil || n.Tag != "!!int" && n.Tag != "!!float" || !(v >= least && v <= most) {
			return at(n, "%s: write a number from %v to %v", what, least, most)
		}
		*out = v
		return nil
	}}
}

// flag takes true or false.
func flag(what string, out *bool) field {
	return field{what, func(n *yaml.Node) *Error {
		if err := scalar(n, what, "true or false"); err != nil {
			return err
		}
		if n.Tag != "!!bool" {
			return at(n, "%s holds %s: write true or false", what, kindOf(n))
		}
		*out = strings.EqualFold(n.Value, "true")
		return nil
	}}
}

// choice takes one word of a list.
func choice(what string, words []string, out *string) field {
	return field{what, func(n *yaml.Node) *Error {
		if err := str(what, out).set(n); err != nil {
			return err
		}
		return oneOf(n, what, words)
	}}
}

// address takes a host and a port to listen on. A host left out is every one.
func address(what string, out *string) field {
	return field{what, func(n *yaml.Node) *Error {
		if err := str(what, out).set(n); err != nil {
			return err
		}
		_, port, err := net.SplitHostPort(*out)
		if v, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || v > math.MaxUint16 {
			return at(n, "%s: write HOST:PORT, such as 127.0.0.1:8080", what)
		}
		return nil
	}}
}

// address of a server: http or https, with a host, and nothing that would be
// lost or shown.
func serverURL(what string, out *string) field {
	return field{what, func(n *yaml.Node) *Error {
		if err := str(what, out).set(n); err != nil {
			return err
		}
		u, err := url.Parse(*out)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
			return at(n, "%s: write an address such as http://127.0.0.1:8000", what)
		case u.User != nil:
			return at(n, "%s holds a name or a password: no key belongs into a file, name the environment variable that holds it", what)
		case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
			return at(n, "%s: write the address without ? and #", what)
		}
		return nil
	}}
}

// seed takes any number of 64 bits.
func seed(what string, out **uint64) field {
	return field{what, func(n *yaml.Node) *Error {
		if err := scalar(n, what, "a whole number"); err != nil {
			return err
		}
		v, err := strconv.ParseUint(digits(n), 10, 64)
		if err != nil || n.Tag != "!!int" {
			return at(n, "%s: write a whole number from 0 to %d", what, uint64(math.MaxUint64))
		}
		*out = &v
		return nil
	}}
}

// duration takes a time with its unit.
func duration(what string, out *time.Duration) field {
	return field{what, func(n *yaml.Node) *Error {
		if err := scalar(n, what, "a time with its unit, such as 10m"); err != nil {
			return err
		}
		d, err := time.ParseDuration(n.Value)
		switch {
		case err != nil:
			return at(n, "%s: write a time with its unit, such as 90s, 10m or 2h", what)
		case d < 0:
			return at(n, "%s is %v: it must not be negative", what, d)
		}
		*out = d
		return nil
	}}
}

func number(n *yaml.Node, what string) (int64, *Error) {
	if err := scalar(n, what, "a whole number"); err != nil {
		return 0, err
	}
	if n.Tag == "!!str" || n.Tag == "!!float" && strings.Trim(n.Value, "+-_0123456789") != "" || n.Tag == "!!bool" || n.Tag == "!!timestamp" {
		return 0, at(n, "%s holds %s: write a whole number, such as 4096", what, kindOf(n))
	}
	v, err := strconv.ParseInt(digits(n), 10, 64)
	if err != nil || v > math.MaxInt32*1000 || v < math.MinInt32 {
		return 0, at(n, "%s: write a whole number in decimal digits, no more than %d", what, int64(math.MaxInt32*1000))
	}
	return v, nil
}

// digits takes the separators out of a number: 1_000_000.
func digits(n *yaml.Node) string { return strings.ReplaceAll(n.Value, "_", "") }

func scalar(n *yaml.Node, what, want string) *Error {
	if err := plain(n); err != nil {
		return err
	}
	if isNull(n) {
		return at(n, "%s: nothing is written behind it: write %s, or leave the line out", what, want)
	}
	if n.Kind != yaml.ScalarNode {
		return at(n, "%s holds %s: write %s", what, kindOf(n), want)
	}
	return nil
}

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	// Beginnings of keys, as providers give them out.
	keyBegins = regexp.MustCompile(`^(?i:bearer |basic )|^(sk|pk|rk)[-_]|^(hf|gsk|nvapi|xai|pplx|r8|ghp|glpat|fw|csk)[-_][A-Za-z0-9]|^AIza|^AKIA|^ya29\.|^eyJ`)
	keyBody   = regexp.MustCompile(`^[A-Za-z0-9+/_.=-]{24,}$`)
)

// looksSecret reports whether a text may be a key: it begins as keys do, or is
// long and as mixed as only random text is.
func looksSecret(s string) bool {
	s = strings.TrimSpace(s)
	if beginsAsKey(s) {
		return true
	}
	return keyBody.MatchString(s) && mixed(s)
}

func beginsAsKey(s string) bool { return len(s) >= 8 && keyBegins.MatchString(s) }

// mixed reports whether digits, capitals and small letters change places again
// and again. Names of models, files and variables stay with one for a while.
func mixed(s string) bool {
	kind := func(r rune) int {
		switch {
		case unicode.IsDigit(r):
			return 1
		case unicode.IsUpper(r):
			return 2
		case unicode.IsLower(r):
			return 3
		}
		return 0
	}
	changes, letters, last := 0, 0, 0
	for _, r := range s {
		k := kind(r)
		if k == 0 {
			last = 0
			continue
		}
		letters++
		if last != 0 && k != last {
			changes++
		}
		last = k
	}
	return letters >= 24 && changes*3 >= letters
}
