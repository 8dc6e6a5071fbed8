package lint

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// architecturePage has the table of the floors.
const architecturePage = "ARCHITECTURE.md"

// floors reads the table of the floors: the number of the floor by folder.
func floors(t *testing.T) map[string]int {
	t.Helper()
	code := regexp.MustCompile("`([a-z/]+)`")
	all, lowest := make(map[string]int), 0
	for line := range strings.Lines(read(t, architecturePage)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		floor, err := strconv.Atoi(strings.TrimSpace(cells[1]))
		if err != nil {
			continue
		}
		if lowest > 0 && floor != lowest-1 {
			t.Errorf("%s: floor %d does not stand above %d", architecturePage, lowest, floor)
		}
		lowest = floor
		for _, name := range code.FindAllStringSubmatch(cells[2], -1) {
			if _, twice := all[name[1]]; twice {
				t.Errorf("%s lists %s twice", architecturePage, name[1])
			}
			all[name[1]] = floor
		}
	}
	if len(all) < 12 || lowest != 1 {
		t.Fatalf("%s lists %d folders down to floor %d: this reads it wrongly", architecturePage, len(all), lowest)
	}
	return all
}

// apart are folders without a floor: nothing imports them, and they import nothing of the repository.
var apart = []string{"deploy", "tools", "internal/lint"}

// owners says which families may import a module from outside; only tests may
// import any other.
var owners = map[string][]string{
	"github.com/nats-io":            {"protocol/bus"},
	"github.com/hashicorp":          {"coordinator/store"},
	"github.com/prometheus":         {"metrics", "coordinator", "worker"},
	"github.com/goccy/go-yaml":      {"job/spec", "experiment", "internal/config", "internal/yamltree"},
	"github.com/alecthomas/kong":    {"cmd"},
	"github.com/jedib0t/go-pretty":  {"cmd"},
	"github.com/mattn/go-isatty":    {"cmd"},
	"github.com/mattn/go-runewidth": {"internal/printable"},
	"gonum.org/v1/gonum":            {"experiment/folds", "experiment/statistics"},
	"codeberg.org/go-pdf/fpdf":      {"experiment/figure"},
	"gonum.org/v1/plot":             {"experiment/figure"},
	"codeberg.org/go-fonts":         {"experiment/figure"},
	"golang.org/x/image":            {"experiment/figure"},
	"github.com/klauspost/compress": {"tools", "dataset/parquet"},
	"github.com/andybalholm/brotli": {"dataset/parquet"},
	"github.com/chromedp":           {"harness/browser"},
	"github.com/google/rpmpack":     {"tools/release"},
	"google.golang.org/protobuf":    {"job/export"},
	"golang.org/x/text":             {"dataset", "experiment", "internal/printable"},
	"golang.org/x/sync": {"client", "worker", "coordinator", "engine", "job/local", "harness/chaos",
		"harness/testkit/clitest", "cmd"},
	"golang.org/x/sys": {"internal/num", "harness/speed", "internal/blobs", "internal/files", "dataset", "worker",
		"coordinator", "harness/netlab", "harness/proc", "harness/chaos", "harness/testkit/clitest", "cmd"},
}

// pure families know no transport, log or metrics, not even in tests.
var (
	pure = []string{"engine/round", "engine/schedule", "engine/outcome", "algorithms", "job/pipeline", "dataset",
		"internal/num", "internal/linalg"}
	foreign = []string{"github.com/nats-io", "github.com/hashicorp", "github.com/prometheus"}
)

// folder returns the folder of the table that dir is in, the narrowest; "" if there is none.
func folder(floors map[string]int, dir string) (found string) {
	for name := range floors {
		if in(dir, name) && len(name) > len(found) {
			found = name
		}
	}
	return found
}

// TestImportsRunDownwards: a package imports only packages of its own folder and of lower floors. With -v it prints the
// relations.
func TestImportsRunDownwards(t *testing.T) {
	floor := floors(t)
	relations := make(map[string]bool)
	for _, s := range sources(t) {
		from := folder(floor, s.dir())
		if from == "" && !in(s.dir(), apart...) {
			t.Errorf("%s: %s gives its package no floor", s.name, architecturePage)
		}
		for _, p := range s.imports() {
			dir, ours := strings.CutPrefix(p, module+"/")
			if !ours || s.test() {
				continue
			}
			to := folder(floor, dir)
			if to == "" || from == "" || from != to && floor[to] >= floor[from] {
				t.Errorf("%s imports %s: floor %d must not import floor %d", s.name, dir, floor[from], floor[to])
			}
			if from != to {
				relations[fmt.Sprintf("%s (%d) imports %s (%d)", from, floor[from], to, floor[to])] = true
			}
		}
	}
	t.Logf("%d relations:\n%s", len(relations), strings.Join(slices.Sorted(maps.Keys(relations)), "\n"))
}

// TestHarnessOfTests: what helps tests is in no binary.
func TestHarnessOfTests(t *testing.T) {
	forTests := []string{"harness/testkit", "harness/allocs", "harness/browser", "harness/contract"}
	for _, s := range sources(t) {
		for _, p := range s.imports() {
			dir, ours := strings.CutPrefix(p, module+"/")
			if ours && !s.test() && in(dir, forTests...) && !in(s.dir(), forTests...) {
				t.Errorf("%s imports %s, which is for tests", s.name, dir)
			}
		}
	}
}

// TestCommandsWithoutHarness: the commands that train, predict and ask a cluster need no code of the harness.
func TestCommandsWithoutHarness(t *testing.T) {
	imports := make(map[string][]string) // of packages, without their tests
	for _, s := range sources(t) {
		for _, p := range s.imports() {
			if dir, ours := strings.CutPrefix(p, module+"/"); ours && !s.test() {
				imports[s.dir()] = append(imports[s.dir()], dir)
			}
		}
	}
	for _, command := range []string{"cmd/traincmd", "cmd/jobcmd", "cmd/modelcmd", "cmd/datasetcmd", "cmd/experimentcmd",
		"cmd/clustercmd", "cmd/uicmd"} {
		if len(imports[command]) == 0 {
			t.Errorf("%s imports nothing", command)
		}
		seen, next := map[string]bool{command: true}, []string{command}
		for len(next) > 0 {
			dir := next[0]
			next = next[1:]
			for _, p := range imports[dir] {
				if in(p, "harness") {
					t.Errorf("%s needs %s, because %s imports it", command, p, dir)
				}
				if !seen[p] {
					seen[p], next = true, append(next, p)
				}
			}
		}
	}
}

func TestModulesHaveOwners(t *testing.T) {
	for _, s := range sources(t) {
		for _, p := range s.imports() {
			first, _, _ := strings.Cut(p, "/")
			if s.test() || !strings.Contains(first, ".") || in(p, module) {
				continue
			}
			if !owned(p, s.dir()) {
				t.Errorf("%s imports %s, which belongs to other packages; see internal/lint", s.name, p)
			}
		}
	}
}

// owned reports whether a folder may import a path from outside.
func owned(p, dir string) bool {
	for prefix, families := range owners {
		if in(p, prefix) {
			return in(dir, families...)
		}
	}
	return false
}

func TestPurePackagesKnowNoTransport(t *testing.T) {
	for _, s := range sources(t) {
		if !in(s.dir(), pure...) {
			continue
		}
		for _, p := range s.imports() {
			if in(p, foreign...) {
				t.Errorf("%s imports %s", s.name, p)
			}
		}
	}
}

// TestGoInstall checks that go.mod has no replace or exclude: "go install MODULE/cmd/coppice@VERSION" refuses both.
func TestGoInstall(t *testing.T) {
	for line := range strings.Lines(read(t, "go.mod")) {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); word == "replace" || word == "exclude" {
			t.Errorf("go.mod: %q", line)
		}
	}
}
