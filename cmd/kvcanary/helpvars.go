package main

import (
	"strings"

	"github.com/alecthomas/kong"
)

// helpVars are the tables that help texts name.
func helpVars() kong.Vars {
	return kong.Vars{"protocols": strings.Join(protocolNames(), ", ")}
}
