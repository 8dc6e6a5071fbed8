package lint

import (
	"strings"
	"testing"
)

// layers lists the families of packages from the bottom up, each with the
// families below that it may import besides itself. Imports run downwards only: a
// family may name only families listed before it.
var layers = []struct {
	family string
	below  []string
}{
	{"internal/version", nil},
	{"internal/harness/allocs", nil},
	{"internal/harness/browser", nil}, // for tests: nobody above may import it
	{"internal/rtt", nil},
	{"internal/machine", nil},
	{"internal/units", nil},
	{"internal/printable", nil},
	{"internal/tempdir", nil},
	{"internal/budget", nil},
	{"internal/yamltree", nil},
	{"internal/config", []string{"internal/yamltree"}},
	{"internal/num", nil},
	{"internal/linalg", []string{"internal/num"}},
	{"internal/digests", nil},
	{"internal/inplace", nil},
	{"internal/blobs", []string{"internal/digests", "internal/inplace"}},
	{"internal/archive", nil},
	{"dataset", []string{"internal/num", "internal/printable", "internal/units", "internal/tempdir"}},
	{"round", []string{"dataset"}},
	{"algorithms", []string{"round", "dataset", "internal/num", "internal/linalg", "internal/version"}},
	{"engine", []string{"round", "dataset", "internal/num"}},
	{"algorithms/algorithmtest", []string{"engine", "round", "algorithms", "dataset", "internal/num", "internal/harness/allocs"}}, // for tests: nobody above may import it
	{"protocol", []string{"round", "algorithms/curve", "algorithms/measures", "dataset", "internal/num"}},                         // what jobs show, and no algorithm
	{"metrics", []string{"internal/version"}},
	{"internal/bus", []string{"protocol"}},
	{"jobrun", []string{"engine", "round", "algorithms", "dataset"}},
	{"internal/local", []string{"jobrun", "engine", "round", "algorithms", "dataset"}},
	{"internal/speed", []string{"engine", "round", "algorithms", "dataset", "internal/num", "internal/version"}},
	{"bench", nil}, // scripts of the peers
	{"experiment/result", nil},
	{"experiment/folds", []string{"dataset"}},
	{"experiment/statistics", nil},
	{"experiment/figure", []string{"experiment/statistics", "internal/printable"}},
	{"experiment/report", []string{"experiment/result", "experiment/statistics", "experiment/figure", "algorithms/measures", "internal/units", "internal/printable"}},
	{"experiment/plots", []string{"experiment/figure", "algorithms/curve", "algorithms/measures", "dataset"}},
	{"spec", []string{"protocol", "round", "algorithms", "dataset", "internal/yamltree", "internal/units"}},
	{"client", []string{"protocol", "dataset", "internal/archive", "internal/units", "internal/tempdir"}},
	{"internal/harness/netlab", []string{"internal/units"}},
	{"internal/harness/freeport", nil},
	{"internal/harness/proc", []string{"internal/harness/freeport", "client", "protocol"}},
	{"internal/bench", []string{"internal/harness/proc", "internal/speed", "internal/bus", "internal/local", "client", "spec", "protocol", "round", "algorithms"}},
	{"worker", []string{
		"jobrun", "internal/local", "internal/bus", "internal/blobs", "internal/inplace", "internal/machine", "internal/version", "internal/num", "internal/units", "internal/rtt",
		"engine", "protocol", "metrics", "round", "algorithms", "dataset",
	}},
	{"coordinator", []string{
		"spec", "jobrun", "internal/local", "internal/budget", "internal/bus", "internal/archive", "internal/blobs", "internal/inplace", "internal/digests", "internal/machine", "internal/version", "internal/num", "internal/units", "internal/rtt",
		"engine", "protocol", "metrics", "round", "algorithms", "dataset",
	}},
	{"internal/harness/sim", []string{
		"internal/local", "jobrun", "worker", "coordinator", "internal/bus", "internal/blobs", "internal/digests", "internal/version", "internal/num",
		"engine", "protocol", "metrics", "round", "algorithms", "dataset",
	}},
	{"internal/harness/testkit", []string{"internal/harness/freeport", "coordinator", "internal/bus", "protocol", "dataset"}}, // for tests: nobody above may import it
	{"internal/harness/testkit/scaletest", []string{
		"internal/harness/testkit", "internal/local", "engine", "round", "algorithms", "dataset", "internal/num",
	}},
	{"experiment", []string{"experiment/result", "experiment/folds", "spec", "protocol", "round", "algorithms", "dataset", "internal/yamltree", "internal/num", "internal/printable", "internal/units"}},
	{"experiment/runner", []string{"experiment", "internal/budget", "internal/local", "jobrun", "engine", "round", "algorithms", "dataset"}},
	{"internal/harness/chaos", []string{
		"internal/harness/netlab", "internal/harness/freeport", "internal/harness/proc", "internal/tempdir", "experiment", "experiment/report", "internal/local", "internal/bus", "client", "spec", "protocol", "round", "algorithms", "dataset",
	}},
	{"cmd", []string{
		"experiment", "experiment/runner", "experiment/result", "experiment/report", "experiment/plots", "experiment/folds", "worker", "coordinator", "internal/archive", "internal/harness/netlab", "internal/harness/proc", "internal/bench", "internal/speed", "bench", "internal/harness/chaos", "internal/bus", "internal/local", "internal/version",
		"internal/units", "internal/printable", "internal/tempdir", "internal/config", "client", "spec", "protocol", "engine", "round", "algorithms", "dataset",
	}},
	{"deploy", nil},
	{"tools", nil}, // size, and modules of their own
	{"internal/lint", nil},
}

// owners says which families may import a module from outside; only tests may
// import any other.
var owners = map[string][]string{
	"github.com/nats-io":            {"internal/bus"},
	"github.com/hashicorp":          {"coordinator/store"},
	"github.com/prometheus":         {"metrics", "coordinator", "worker"},
	"github.com/goccy/go-yaml":      {"spec", "experiment", "internal/config", "internal/yamltree"},
	"github.com/grafana":            {"tools/grafana"},
	"github.com/alecthomas/kong":    {"cmd"},
	"github.com/jedib0t/go-pretty":  {"cmd"},
	"github.com/mattn/go-isatty":    {"cmd"},
	"github.com/mattn/go-runewidth": {"internal/printable"},
	"gonum.org/v1/gonum":            {"experiment/folds", "experiment/statistics"},
	"gonum.org/v1/plot":             {"experiment/figure"},
	"golang.org/x/text":             {"dataset", "experiment", "internal/printable"},
	"golang.org/x/sync":             {"client", "worker", "coordinator", "engine", "internal/local", "internal/harness/chaos", "cmd"},
	"golang.org/x/sys":              {"internal/num", "internal/speed", "internal/blobs", "internal/inplace", "dataset", "worker", "coordinator", "internal/harness/netlab", "internal/harness/proc", "internal/harness/chaos", "cmd"},
}

// pure families know no transport, log or metrics, not even in tests.
var (
	pure    = []string{"round", "algorithms", "dataset", "internal/num", "internal/linalg"}
	foreign = []string{"github.com/nats-io", "github.com/hashicorp", "github.com/prometheus"}
)

// family returns the index in layers of a folder's family, the narrowest that it is in; -1
// for none.
func family(dir string) int {
	found := -1
	for i, l := range layers {
		if in(dir, l.family) && (found < 0 || len(l.family) > len(layers[found].family)) {
			found = i
		}
	}
	return found
}

func TestLayersRunDownwards(t *testing.T) {
	for i, l := range layers {
		for _, b := range l.below {
			if j := family(b); j < 0 || j >= i {
				t.Errorf("%s may import %s, which is not below it", l.family, b)
			}
		}
	}
}

func TestImportsRunDownwards(t *testing.T) {
	for _, s := range sources(t) {
		i := family(s.dir())
		if i < 0 {
			t.Errorf("%s: its package has no layer; give it one in internal/lint", s.name)
			continue
		}
		for _, p := range s.imports() {
			dir, ours := strings.CutPrefix(p, module+"/")
			if ours && !s.test() && !in(dir, layers[i].family) && !in(dir, layers[i].below...) {
				t.Errorf("%s imports %s: packages of %s may import %v", s.name, dir, layers[i].family, layers[i].below)
			}
		}
	}
}

// TestHarnessOfTests: what helps tests is in no binary.
func TestHarnessOfTests(t *testing.T) {
	forTests := []string{"internal/harness/testkit", "internal/harness/allocs", "internal/harness/browser", "algorithms/algorithmtest"}
	for _, s := range sources(t) {
		for _, p := range s.imports() {
			dir, ours := strings.CutPrefix(p, module+"/")
			if ours && !s.test() && in(dir, forTests...) && !in(s.dir(), forTests...) {
				t.Errorf("%s imports %s, which is for tests", s.name, dir)
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
