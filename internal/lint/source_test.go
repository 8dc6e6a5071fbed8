// Package lint holds the rules of this repository's code, as tests: which package
// may import which, what the pure packages may use, and how long files and
// functions may be.
package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/coppice-ldl/coppice"

// source is one parsed Go file of the repository.
type source struct {
	name string // from the top of the repository, with slashes
	ast  *ast.File
	fset *token.FileSet
}

// dir returns the folder of the file's package.
func (s *source) dir() string { return path.Dir(s.name) }

func (s *source) test() bool { return strings.HasSuffix(s.name, "_test.go") }

func (s *source) line(p token.Pos) int { return s.fset.Position(p).Line }

// code returns how many lines of the file are neither blank nor a comment.
func (s *source) code(t *testing.T) (n int) {
	t.Helper()
	for line := range strings.Lines(read(t, s.name)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}

// lines returns the length of the file.
func (s *source) lines() int { return s.line(s.ast.FileEnd) }

// imports returns the import paths.
func (s *source) imports() []string {
	var all []string
	for _, i := range s.ast.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err == nil {
			all = append(all, p)
		}
	}
	return all
}

// in reports whether a folder is one of families, or below one.
func in(dir string, families ...string) bool {
	for _, f := range families {
		if dir == f || strings.HasPrefix(dir, f+"/") {
			return true
		}
	}
	return false
}

var parsed = sync.OnceValues(parseAll)

// sources returns every Go file of the repository.
func sources(t *testing.T) []*source {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("only %d files: this looks at the wrong folder", len(all))
	}
	return all
}

func parseAll() ([]*source, error) {
	top, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	var all []*source
	err = filepath.WalkDir(top, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skip(file, top, d.Name())
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		s, err := parse(top, file)
		all = append(all, s)
		return err
	})
	return all, err
}

// skip leaves out what the go command leaves out.
func skip(dir, top, name string) error {
	if dir != top && (name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
		return filepath.SkipDir
	}
	return nil
}

func parse(top, file string) (*source, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	name, err := filepath.Rel(top, file)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, name, b, parser.ParseComments)
	return &source{filepath.ToSlash(name), tree, fset}, err
}
