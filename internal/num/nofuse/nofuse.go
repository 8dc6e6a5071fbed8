// Package nofuse finds fused multiply-adds in compiled Go, for tests: the
// compiler may turn x*y + z into one instruction with one rounding on arm64 and
// at GOAMD64=v3, and a model's bits would then depend on the machine. Assembly
// is not looked at: there fusing is on purpose.
package nofuse

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Families are the folders whose packages, and those below them, compute what reaches a digest or a
// measure.
var Families = []string{
	"algorithms", "dataset", "engine", "experiment/statistics", "internal/linalg", "job/local", "job/pipeline", "internal/num", "job/open",
}

// Site is one fused instruction.
type Site struct {
	Target      string // "arm64", "amd64/v3"
	Function    string // as the linker names it, without the package path's folders
	Instruction string
	Line        string // file:line, with the whole path
}

func (s Site) String() string {
	return fmt.Sprintf("%s: %s in %s (%s)", s.Target, s.Instruction, s.Function, s.Line)
}

// targets are the build settings under which the compiler fuses. The first shares what it compiles
// with a build of a release.
var targets = []struct {
	name string
	env  []string
}{
	{"arm64", []string{"GOOS=darwin", "GOARCH=arm64"}},
	{"amd64/v3", []string{"GOOS=linux", "GOARCH=amd64", "GOAMD64=v3"}},
}

// Check fails t where the Go of one of the packages has a fused multiply-add outside the functions
// of allowed ("num.F", "num.(*T).M") and the lines that call math.FMA. It skips where there is no
// go command. The packages are named as for go build, in the folder dir.
func Check(t *testing.T, dir string, packages []string, allowed ...string) {
	t.Helper()
	sites, err := Find(dir, packages...)
	if errors.Is(err, exec.ErrNotFound) {
		t.Skipf("no go command to compile with: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sites {
		if !slices.Contains(allowed, s.Function) && !onPurpose(s.Line) {
			t.Errorf("%v: write float64(x*y) + z", s)
		}
	}
}

// onPurpose reports whether a line ("file:line") calls math.FMA.
func onPurpose(line string) bool {
	name, number, _ := strings.Cut(line, ":")
	n, err := strconv.Atoi(number)
	if err != nil {
		return false
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return false
	}
	lines := strings.Split(string(text), "\n")
	return n <= len(lines) && strings.Contains(lines[n-1], "math.FMA(")
}

// Find compiles packages for each target, all of them at once, and lists the fused instructions. A
// package of which the compiler lists no function is an error.
func Find(dir string, packages ...string) ([]Site, error) {
	var sites []Site
	for _, target := range targets {
		listing, err := compile(dir, packages, target.env)
		if err != nil {
			return nil, fmt.Errorf("nofuse: %s: %w", target.name, err)
		}
		found, listed := scan(listing)
		if len(listed) != len(packages) {
			return nil, fmt.Errorf("nofuse: %s: of %d packages, the compiler listed functions of %d: %v", target.name, len(packages), len(listed), listed)
		}
		for _, s := range found {
			s.Target = target.name
			sites = append(sites, s)
		}
	}
	return sites, nil
}

// compile returns the compiler's listing of packages.
func compile(dir string, packages, env []string) ([]byte, error) {
	cmd := exec.Command("go", append([]string{"build", "-gcflags=-S"}, packages...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out[max(0, len(out)-2000):])
	}
	return out, nil
}

var (
	part   = regexp.MustCompile(`^# (\S+)\n`)
	header = regexp.MustCompile(`^(?:\S*/)?(\S+) STEXT `)
	fused  = regexp.MustCompile(`\(([^()]*:\d+)\)\t(V?FN?M(?:ADD|SUB)\w*)\t`)
)

// scan lists the fused instructions of a listing, and the packages of which it has functions.
func scan(listing []byte) (sites []Site, listed []string) {
	pkg, function := "", ""
	for line := range bytes.Lines(listing) {
		if m := part.FindSubmatch(line); m != nil {
			pkg = string(m[1])
		} else if m := header.FindSubmatch(line); m != nil {
			function = string(m[1])
			if !slices.Contains(listed, pkg) {
				listed = append(listed, pkg)
			}
		} else if m := fused.FindSubmatch(line); m != nil {
			sites = append(sites, Site{Function: function, Instruction: string(m[2]), Line: string(m[1])})
		}
	}
	return sites, listed
}
