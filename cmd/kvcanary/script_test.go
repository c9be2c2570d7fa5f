package main

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(ownConfig{m}, map[string]func(){"kvcanary": main})
}

// ownConfig runs tests with a configuration directory of their own: keys and
// logs of whoever runs them are left alone.
type ownConfig struct{ *testing.M }

func (m ownConfig) Run() int {
	dir, err := os.MkdirTemp("", "kvcanary-config-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	os.Setenv("XDG_CONFIG_HOME", dir)
	return m.M.Run()
}

// TestScripts runs every command as a user does. Besides testscript's own
// commands the scripts have:
//
//	exits CODE PROGRAM ARG...   runs a program and wants that exit code
//	fake KIND                   starts a server on loopback that misbehaves in one way; its address is $URL
//	lab ARG...                  starts kvcanary lab; its address is $URL
//	witness NAME LOGKEY         starts a witness of that log; its address is $NAME, its key NAME.pub
//	stoplab                     ends it and waits until it is gone
//	guard FILE                  starts kvcanary guard; its addresses are $GUARD and $GUARDSIDE, its log guard.log
//	hangup                      has it read its file again
//	stopguard                   ends it and wants exit code 0
//	ask FILE URL [BODY [KEY]]   sends a request and keeps the answer
//	await FILE PATTERN          waits until a file has what matches
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		Deadline:            time.Now().Add(30 * time.Minute), // a script that hangs shows its stacks; the race detector takes its time
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_CONFIG_HOME", env.WorkDir+"/config")
			env.Values[labKey{}] = new(func())
			env.Values[fenceKey{}] = new(fence)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"fake":  fake,
			"lab":   startLab,

			"stoplab":   stopLab,
			"witness":   startWitness,
			"guard":     startGuard,
			"hangup":    hangup,
			"stopguard": stopGuard,
			"ask":       askURL,
			"await":     await,
		},
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
