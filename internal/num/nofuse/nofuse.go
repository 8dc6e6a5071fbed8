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

// Families are the folders whose packages, and those below them, compute what reaches a digest or a
// measure.
var Families = []string{
	"algorithms", "dataset", "engine", "experiment/statistics", "internal/linalg", "job/local", "job/pipeline",
	"internal/num", "job/enhance", "job/open",
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

// target holds build settings under which the compiler fuses.
type target struct {
	name string
	env  []string
}

// arm64 shares what it compiles with a build of a release. For amd64, the compiler has no rule of fusing that it
// does not have for arm64: amd64 is for code that only amd64 has.
var (
	arm64 = target{"arm64", []string{"GOOS=darwin", "GOARCH=arm64"}}
	amd64 = target{"amd64/v3", []string{"GOOS=linux", "GOARCH=amd64", "GOAMD64=v3"}}
)

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

// Find compiles packages for arm64, all of them at once, and lists the fused instructions. Packages with code that
// only amd64 has are also compiled for amd64/v3. If the compiler lists no function of a package, Find returns an
// error.
func Find(dir string, packages ...string) ([]Site, error) {
	sites, err := arm64.find(dir, packages)
	if err != nil {
		return nil, err
	}
	apart, err := apart(dir, packages)
	if err != nil || len(apart) == 0 {
		return sites, err
	}
	more, err := amd64.find(dir, apart)
	return append(sites, more...), err
}

// find compiles packages for the target, and lists the fused instructions.
func (g target) find(dir string, packages []string) ([]Site, error) {
	listing, err := g.command(dir, append([]string{"build", "-gcflags=-S"}, packages...)).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("nofuse: %s: %w\n%s", g.name, err, listing[max(0, len(listing)-2000):])
	}
	sites, listed := scan(listing)
	if len(listed) != len(packages) {
		return nil, fmt.Errorf("nofuse: %s: of %d packages, the compiler listed functions of %d: %v", g.name, len(packages),
			len(listed), listed)
	}
	for i := range sites {
		sites[i].Target = g.name
	}
	return sites, nil
}

// command returns a go command for the target.
func (g target) command(dir string, args []string) *exec.Cmd {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly"), g.env...)
	return cmd
}

// apart returns the packages that have files for one target only, or that ask num.Accelerated: what follows is no
// code on arm64.
func apart(dir string, packages []string) (apart []string, err error) {
	var files [2][]string // of a package, a line each
	for i, g := range []target{arm64, amd64} {
		out, err := g.command(dir, append([]string{"list", "-f",
			"{{.ImportPath}}\t{{.Dir}}\t{{range .GoFiles}}{{.}} {{end}}"}, packages...)).Output()
		if err != nil {
			return nil, fmt.Errorf("nofuse: go list for %s: %w", g.name, err)
		}
		files[i] = strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	for i, line := range files[1] {
		part := strings.Split(line, "\t")
		differ := line != files[0][i]
		for _, name := range strings.Fields(part[2]) {
			text, err := os.ReadFile(filepath.Join(part[1], name))
			if err != nil {
				return nil, err
			}
			differ = differ || bytes.Contains(text, []byte("num.Accelerated"))
		}
		if differ {
			apart = append(apart, part[0])
		}
	}
	return apart, nil
}

var (
	part   = regexp.MustCompile(`^# (\S+)\n`)
	header = regexp.MustCompile(`^(?:\S*/)?(\S+) STEXT `)
	fused  = regexp.MustCompile(`\(([^()]*:\d+)\)\t(V?FN?M(?:ADD|SUB)\w*)\t`)
)

// scan lists the fused instructions of a listing, and the packages whose functions it has.
func scan(listing []byte) (sites []Site, listed []string) {
	pkg, function := "", ""
	for line := range bytes.Lines(listing) {
		switch { // a listing has millions of lines, and few are for the regular expressions
		case bytes.HasPrefix(line, []byte("# ")):
			if m := part.FindSubmatch(line); m != nil {
				pkg = string(m[1])
			}
		case bytes.Contains(line, []byte(" STEXT ")):
			if m := header.FindSubmatch(line); m != nil {
				function = string(m[1])
				if !slices.Contains(listed, pkg) {
					listed = append(listed, pkg)
				}
			}
		case bytes.Contains(line, []byte("MADD")), bytes.Contains(line, []byte("MSUB")):
			if m := fused.FindSubmatch(line); m != nil {
				sites = append(sites, Site{Function: function, Instruction: string(m[2]), Line: string(m[1])})
			}
		}
	}
	return sites, listed
}
