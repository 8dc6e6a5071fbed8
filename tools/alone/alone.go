package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// alone lists those of some packages that have tests, all of which run in one goroutine. Only of
// the packages given it is known what they start.
func alone(packages map[string]*listed) (all []string, err error) {
	s := &search{packages: packages, starts: make(map[string]bool)}
	for _, path := range slices.Sorted(maps.Keys(packages)) {
		l := packages[path]
		tests, imports := slices.Concat(l.TestGoFiles, l.XTestGoFiles), slices.Concat(l.TestImports, l.XTestImports)
		if len(tests) == 0 || s.below(path) || s.files(l.Dir, tests) || slices.ContainsFunc(imports, s.imported) {
			continue
		}
		all = append(all, path)
	}
	return all, s.err
}

// search finds out what packages start goroutines, themselves or by what they import.
type search struct {
	packages map[string]*listed
	starts   map[string]bool // by path of a package, without its tests
	err      error
}

// others are paths of packages elsewhere whose functions call what they are given in other
// goroutines, or have goroutines of their own that share memory with the caller.
var others = []string{
	"net/http", "testing/synctest", "golang.org/x/sync", "github.com/nats-io", "github.com/hashicorp", "github.com/prometheus/client_golang",
}

// imported reports whether a package that is imported starts goroutines.
func (s *search) imported(path string) bool {
	if s.packages[path] != nil {
		return s.below(path)
	}
	return slices.ContainsFunc(others, func(o string) bool { return path == o || strings.HasPrefix(path, o+"/") })
}

// below reports whether a package without its tests starts goroutines, or what it imports does.
func (s *search) below(path string) bool {
	if starts, ok := s.starts[path]; ok {
		return starts
	}
	l := s.packages[path]
	starts := s.files(l.Dir, l.GoFiles) || slices.ContainsFunc(l.Imports, s.imported)
	s.starts[path] = starts
	return starts
}

// files reports whether one of some files of a folder starts a goroutine.
func (s *search) files(dir string, names []string) bool {
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			s.err = err
			return true
		}
		if starts(f) {
			return true
		}
	}
	return false
}

// starters are the functions and methods that call what they are given, or their caller, in
// another goroutine, by name, whoever has them.
var starters = []string{"Go", "TryGo", "Parallel", "RunParallel", "AfterFunc", "SetFinalizer", "AddCleanup"}

// starts reports whether a file starts a goroutine.
func starts(f *ast.File) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.SelectorExpr: // not only where it is called
			found = found || slices.Contains(starters, n.Sel.Name)
		}
		return !found
	})
	return found
}
