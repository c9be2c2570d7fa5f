package main

import "github.com/alecthomas/kong"

// helpVars are the tables that help texts name.
func helpVars() kong.Vars { return kong.Vars{} }
