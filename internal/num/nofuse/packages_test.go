package nofuse

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
)

// allowed are the functions that ask for fused multiply-adds.
var allowed = []string{
	"linalg.addTileGo", "linalg.addTile", "linalg.(*buffers).addTiles", "linalg.(*buffers).addEdge", "linalg.choleskyBase",
	"linalg.solveBase",
	"linalg.reflectPanel", "linalg.norm", "linalg.dot", "linalg.addScaled",
}

// TestNothingFuses holds rule 2 of internal/num in every package whose results are the same bits
// everywhere: a model's bits, and those of its measures, do not depend on the processor. All
// packages are compiled at once, by processes of their own.
func TestNothingFuses(t *testing.T) {
	testkit.WithoutRace(t)
	const top = "../../.."
	var packages []string
	for _, family := range Families {
		packages = append(packages, below(t, top, family)...)
	}
	if len(packages) < 2*len(Families) {
		t.Fatalf("%d packages: this looks at the wrong folders", len(packages))
	}
	Check(t, top, packages, allowed...)
}

// below lists the packages of a folder and of those below it, other than those that are for tests.
func below(t *testing.T, top, family string) (packages []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(top, family), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if d.Name() == "testdata" {
			return fs.SkipDir
		}
		if computes(t, path) {
			name, err := filepath.Rel(top, path)
			packages = append(packages, "./"+filepath.ToSlash(name))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// computes reports whether a folder has Go that is not for tests alone: that imports testing
// nowhere. It reads all of it: a result of this test is kept as long as nothing there changes.
func computes(t *testing.T, dir string) bool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			if i.Path.Value == `"testing"` {
				return false
			}
		}
	}
	return len(names) > 0
}
