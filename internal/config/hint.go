package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// secretNames are fields that people would put a key into.
var secretNames = []string{"key", "api_key", "apikey", "api-key", "token", "secret", "password", "bearer", "authorization", "auth"}

// unknown says that a field is not known, and what may have been meant.
func unknown(key *yaml.Node, what string, fields []field) *Error {
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	where := ""
	if what != "" {
		where = " of " + what
	}
	if slices.Contains(secretNames, strings.ToLower(key.Value)) || looksSecret(key.Value) {
		return at(key, "unknown field %s%s: no key belongs into a file, name the environment variable that holds it, as key_env of a tenant", quoted(key), where)
	}
	if n := nearest(key.Value, names); n != "" {
		return at(key, "unknown field %s%s: did you mean %q?", quoted(key), where, n)
	}
	return at(key, "unknown field %s%s: there are %s", quoted(key), where, strings.Join(names, ", "))
}

// nearest is the name that s was most likely meant to be, "" if none is near.
func nearest(s string, names []string) string {
	norm := func(s string) string {
		return strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(s))
	}
	best, at := "", 0
	for _, n := range names {
		d := distance(norm(s), norm(n))
		if d <= max(1, len(n)/3) && (best == "" || d < at) {
			best, at = n, d
		}
	}
	return best
}

// distance counts the letters to insert, delete, replace or swap with their
// neighbour that make b of a.
func distance(a, b string) int {
	const far = 1 << 20
	if len(a) > 64 {
		return far
	}
	rows := [3][]int{}
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		row, last, lastButOne := rows[i%3], rows[(i+2)%3], rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], lastButOne[j-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}
