package preflight

import (
	"regexp"
	"strconv"
	"strings"
)

// release is a version whose order is known: "0.5.22", "v0.29.0", "b10434".
type release []int

// platform is a part of a tag that says what an image is built for, and not
// what is in it.
var platform = regexp.MustCompile(`^(cu\d*|cuda\d*|rocm\d*|cpu|gpu|xpu|hpu|npu|tpu|intel|amd|amd64|arm64|aarch64|x86|64|ubuntu\d*|openai|runtime|server|full|slim|base|llamacpp|trtllm|neuron|gaudi|gfx\w+|py\d*|mi\d+x?|b\d+|\d+)$`)

// parseRelease reads a version that names a release. Forks ("0.5.11+acme"),
// nightlies ("0.5.22.dev20261009") and builds from source
// ("0.0.0.dev1+g3d8fc9a0c") are kept as what they are: ok is false, because
// what they hold does not follow from their number.
func parseRelease(v string) (r release, ok bool) {
	v = strings.TrimSpace(v)
	// llama.cpp: build number and commit.
	if rest, is := strings.CutPrefix(v, "b"); is {
		build, _, _ := strings.Cut(rest, "-")
		n, err := strconv.Atoi(build)
		return release{n}, err == nil
	}
	v = strings.TrimPrefix(v, "v")
	// Container tags say what they are built for behind the version.
	v, variant, _ := strings.Cut(v, "-")
	for part := range strings.FieldsFuncSeq(variant, func(r rune) bool { return r == '-' || r == '.' || r == '_' }) {
		if !platform.MatchString(part) {
			return nil, false
		}
	}
	v, _, _ = strings.Cut(v, ".post")
	for part := range strings.SplitSeq(v, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, false
		}
		r = append(r, n)
	}
	for _, n := range r {
		ok = ok || n != 0
	}
	return r, ok && len(r) > 1
}

// before reports whether r is an earlier release than o.
func (r release) before(o release) bool {
	for i := range max(len(r), len(o)) {
		a, b := 0, 0
		if i < len(r) {
			a = r[i]
		}
		if i < len(o) {
			b = o[i]
		}
		if a != b {
			return a < b
		}
	}
	return false
}
