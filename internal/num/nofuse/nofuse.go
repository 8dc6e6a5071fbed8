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
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Site is one fused instruction.
type Site struct {
	Target      string // "arm64", "amd64/v3"
	Function    string // as the linker names it, without the package path's folders
	Instruction string
	Line        string // file:line
}

func (s Site) String() string {
	return fmt.Sprintf("%s: %s in %s (%s)", s.Target, s.Instruction, s.Function, s.Line)
}

// targets are the build settings under which the compiler fuses.
var targets = []struct {
	name string
	env  []string
}{
	{"arm64", []string{"GOARCH=arm64"}},
	{"amd64/v3", []string{"GOARCH=amd64", "GOAMD64=v3"}},
}

// Check fails t where the Go of the package in dir has a fused multiply-add
// outside the functions of allowed ("num.F", "num.(*T).M") and the lines that call
// math.FMA. It skips where there is no go command.
func Check(t *testing.T, dir string, allowed ...string) {
	t.Helper()
	sites, err := Find(dir)
	if errors.Is(err, exec.ErrNotFound) {
		t.Skipf("no go command to compile with: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sites {
		if !slices.Contains(allowed, s.Function) && !onPurpose(dir, s.Line) {
			t.Errorf("%v: write float64(x*y) + z", s)
		}
	}
}

// onPurpose reports whether a line ("file:line") of the package in dir calls math.FMA.
func onPurpose(dir, line string) bool {
	name, number, _ := strings.Cut(line, ":")
	n, err := strconv.Atoi(number)
	if err != nil {
		return false
	}
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return false
	}
	lines := strings.Split(string(text), "\n")
	return n <= len(lines) && strings.Contains(lines[n-1], "math.FMA(")
}

// Find compiles the package in dir for each target and lists the fused
// instructions.
func Find(dir string) ([]Site, error) {
	var sites []Site
	for _, target := range targets {
		listing, err := compile(dir, target.env)
		if err != nil {
			return nil, fmt.Errorf("nofuse: %s for %s: %w", dir, target.name, err)
		}
		found, functions := scan(listing)
		if functions == 0 {
			return nil, fmt.Errorf("nofuse: %s for %s: the compiler listed no function", dir, target.name)
		}
		for _, s := range found {
			s.Target = target.name
			sites = append(sites, s)
		}
	}
	return sites, nil
}

// compile returns the compiler's listing of the package in dir.
func compile(dir string, env []string) ([]byte, error) {
	cmd := exec.Command("go", "build", "-gcflags=-S", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOFLAGS=-mod=readonly")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out[max(0, len(out)-2000):])
	}
	return out, nil
}

var (
	header = regexp.MustCompile(`^(?:\S*/)?(\S+) STEXT `)
	fused  = regexp.MustCompile(`\((?:[^()]*/)?([^()]*:\d+)\)\t(V?FN?M(?:ADD|SUB)\w*)\t`)
)

// scan lists the fused instructions of a listing and counts its functions.
func scan(listing []byte) (sites []Site, functions int) {
	function := ""
	for line := range bytes.Lines(listing) {
		if m := header.FindSubmatch(line); m != nil {
			function = string(m[1])
			functions++
		} else if m := fused.FindSubmatch(line); m != nil {
			sites = append(sites, Site{Function: function, Instruction: string(m[2]), Line: string(m[1])})
		}
	}
	return sites, functions
}
