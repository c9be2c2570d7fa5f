package main

import (
	"strings"

	"github.com/alecthomas/kong"

	"github.com/kvcanary/kvcanary/internal/engine"
	"github.com/kvcanary/kvcanary/internal/explore"
	"github.com/kvcanary/kvcanary/internal/matrix"
	"github.com/kvcanary/kvcanary/internal/report"
)

// helpVars are the tables that help texts name.
func helpVars() kong.Vars {
	return kong.Vars{
		"reports":   strings.Join(report.FormatNames(), ", "),
		"engines":   strings.Join(engine.Names(), ", "),
		"protocols": strings.Join(protocolNames(), ", "),
		"probes":    strings.Join(probeNames(matrix.Probes()), ", "),
		"nofault":   matrix.NoFault,

		"invariants": strings.Join(explore.InvariantNames(), ", "),
		"standing":   "I0 to I8",
	}
}
