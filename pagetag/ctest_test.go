package pagetag

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"
)

// The header for C answers every vector as this package does. It needs a C
// compiler, as the race detector does: CC or cc.
func TestHeaderForCAgreesOnEveryVector(t *testing.T) {
	program := compile(t, "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-fsanitize=undefined", "-fno-sanitize-recover")
	v := readVectors(t)
	var cases, answers []string
	add := func(name, input, answer string) {
		cases, answers = append(cases, name+"\x00"+input), append(answers, answer)
	}
	for _, g := range v.Tags {
		add(g.Name, tagCase(t, g), g.Tag+" "+g.Mark)
	}
	for _, b := range v.Tables {
		name := b.Name + ", " + b.Strength
		add(name+", table", fmt.Sprintf("table %s %x %s", b.Expected.line(), len(b.Tags), strings.Join(b.Tags, " ")), b.Table.line())
		add(name+", marks", fmt.Sprintf("marks %s %x %s", b.Expected.line(), len(b.Marks), strings.Join(b.Marks, " ")), b.Mark.line())
		if b.Table.Page < 0 && b.Table.Class != "accept" {
			continue // the whole table is refused, so no page of it is verified
		}
		add(name+", verify", verifyCase(t, b), b.Verify.line())
	}

	var in strings.Builder
	for _, c := range cases {
		_, input, _ := strings.Cut(c, "\x00")
		in.WriteString(input + "\n")
	}
	lines := run(t, program, in.String())
	if len(lines) != len(answers) {
		t.Fatalf("%d cases, %d answers", len(answers), len(lines))
	}
	for i, line := range lines {
		if line != answers[i] {
			name, input, _ := strings.Cut(cases[i], "\x00")
			t.Errorf("%s: C says %q, want %q\n%s", name, line, answers[i], input)
		}
	}
}

// It is a header for C++ too, which has stricter conversions.
func TestHeaderForCIsOneForCPlusPlus(t *testing.T) {
	program := compile(t, "-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Werror")
	if lines := run(t, program, ""); len(lines) != 0 {
		t.Errorf("answers to nothing: %q", lines)
	}
}

func compile(t *testing.T, flags ...string) string {
	t.Helper()
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "cc"
	}
	program := filepath.Join(t.TempDir(), "vectors")
	args := append(flags, "-O2", "-o", program, "testdata/vectors.c")
	if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: this test needs a C compiler, name it in CC\n%s", compiler, err, out)
	}
	return program
}

func run(t *testing.T, program, input string) (lines []string) {
	t.Helper()
	cmd := exec.Command(program)
	cmd.Stdin = strings.NewReader(input)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the C program: %v\n%s", err, complaints.Bytes())
	}
	for line := range strings.Lines(string(out)) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	return lines
}

func (o outcome) line() string { return fmt.Sprintf("%s %d", o.Class, o.Page) }

func (o ownerVector) line() string {
	return fmt.Sprintf("%s %s %s %s %x", o.Epoch, o.Tenant, o.Request, o.Generation, o.Space)
}

func (e expectedVector) line() string {
	return fmt.Sprintf("%s %x %s %x", e.Owner.line(), e.First, e.Tokens, e.PageTokens)
}

func tagCase(t *testing.T, g tagVector) string {
	var strength Strength
	for s, name := range strengths {
		if name == g.Strength {
			strength = s
		}
	}
	complete := 0
	if g.Complete {
		complete = 1
	}
	low, high, digest := uint64(0), uint64(0), make([]byte, DigestSize)
	switch strength {
	case ByAccident:
		if _, err := fmt.Sscanf(g.Hash, "%16x%16x", &high, &low); err != nil {
			t.Fatal(err)
		}
	case ByAdversary: // C has no AES: the digest is given
		copy(digest, unhex(t, g.Tag)[headerSize:])
	}
	return fmt.Sprintf("tag %x %x %x %x %s %x %x %x", uint8(strength), complete, g.Index, g.Length, g.Owner.line(), low, high, digest)
}

func verifyCase(t *testing.T, b tableVector) string {
	s := scheme(t, b.Strength, b.Key)
	out := fmt.Sprintf("verify %x %s %x", uint8(s.Strength()), b.Expected.line(), len(b.Tags))
	for i, tag := range b.Tags {
		page := b.Pages[i].bytes()
		h := xxh3.Hash128(page)
		digest := make([]byte, DigestSize)
		if parsed, err := Parse(unhex(t, tag)); err == nil && s.Strength() == ByAdversary {
			digest = slowAdversary(parsed, page, Key(unhex(t, b.Key)))
		}
		out += fmt.Sprintf(" %s %x %x %s", tag, h.Lo, h.Hi, hex.EncodeToString(digest))
	}
	return out
}
