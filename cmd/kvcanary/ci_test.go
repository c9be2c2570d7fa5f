package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// steps are the scripts of a pipeline's template, in order.
func steps(t *testing.T, path string) []string {
	t.Helper()
	p, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Runs struct {
			Steps []struct {
				Run string `yaml:"run"`
			} `yaml:"steps"`
		} `yaml:"runs"`
		Job struct {
			Script []string `yaml:"script"`
		} `yaml:"kvcanary"`
	}
	if err := yaml.Unmarshal(p, &file); err != nil {
		t.Fatal(err)
	}
	out := file.Job.Script
	for _, s := range file.Runs.Steps {
		out = append(out, s.Run)
	}
	if len(out) < 2 {
		t.Fatalf("%s has %d steps", path, len(out))
	}
	return out
}

// pipeline runs steps as a runner does, each in a shell that ends at the first
// error, and returns the exit code of the one that failed.
func pipeline(t *testing.T, dir string, env, steps []string) (code int, output string) {
	t.Helper()
	var all strings.Builder
	for _, s := range steps {
		cmd := exec.Command("bash", "-eo", "pipefail", "-c", s)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		all.Write(out)
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode(), all.String()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return 0, all.String()
}

// The templates for pipelines do what they say, on an engine that leaks and on
// one that does not.
func TestTemplatesForPipelines(t *testing.T) {
	leaking := startLabProcess(t, nil, "--transport", "pipe", "--fault", "stale_reserve")
	sound := startLabProcess(t, nil, "--transport", "pipe")
	for _, c := range []struct {
		name, url string
		want      int
	}{{"leaking", leaking.url, exitFound}, {"sound", sound.url, exitClean}, {"nobody", "http://127.0.0.1:1", exitUnreachable}} {
		t.Run("github/"+c.name, func(t *testing.T) {
			dir := t.TempDir()
			code, out := pipeline(t, dir, []string{
				"BASE_URL=" + c.url + "/v1", "MODEL=kvcanary-lab", "PROTOCOLS=straddle", "KEY_ENV=", "BUDGET=1000000", "OUT=run",
				"AT=deploy/engine.yaml:7", "FAIL_ON=leak", "GITHUB_STEP_SUMMARY=" + filepath.Join(dir, "summary.md"),
			}, steps(t, "../../deploy/ci/github/action.yml"))
			if code != c.want {
				t.Fatalf("exit code %d\n%s", code, out)
			}
			wantFiles(t, dir, code != exitUnreachable, "summary.md", "run.sarif", "run.xml", "run.html")
			if found := strings.Contains(out, "::error file=deploy/engine.yaml,line=7,title=kvcanary leak::"); found != (code == exitFound) {
				t.Errorf("annotated: %v\n%s", found, out)
			}
		})
		t.Run("gitlab/"+c.name, func(t *testing.T) {
			dir := t.TempDir()
			code, out := pipeline(t, dir, []string{
				"KVCANARY_BASE_URL=" + c.url + "/v1", "KVCANARY_MODEL=kvcanary-lab", "KVCANARY_PROTOCOLS=straddle", "KVCANARY_BUDGET=1000000", "KVCANARY_FAIL_ON=leak",
			}, steps(t, "../../deploy/ci/gitlab/kvcanary.yml"))
			if code != c.want {
				t.Fatalf("exit code %d\n%s", code, out)
			}
			wantFiles(t, dir, code != exitUnreachable, "kvcanary.xml", "kvcanary.sarif", "kvcanary.html")
		})
	}
}

func wantFiles(t *testing.T, dir string, there bool, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
}
