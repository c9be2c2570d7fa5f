package matrix

import "strings"

// limits say what keeps a fault from being found more often, for those of which
// the mechanism gives a reason.
var limits = map[string]string{}

// limitOf is the reason for a fault, or for all of its modes.
func limitOf(fault string) string {
	if why, ok := limits[fault]; ok {
		return why
	}
	name, _, _ := strings.Cut(fault, ":")
	return limits[name]
}
