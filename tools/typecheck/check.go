package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
)

// checker checks packages, each after what it imports.
type checker struct {
	files        *token.FileSet
	architecture string
	known        map[string]*types.Package // by path, those that were checked
}

// check checks packages that stand in an order in which each comes after what it imports. The
// bodies of functions count only in those that were asked for.
func check(all []*listed, architecture string) error {
	c := &checker{files: token.NewFileSet(), architecture: architecture, known: map[string]*types.Package{"unsafe": types.Unsafe}}
	var faults []error
	for _, l := range all {
		if l.ImportPath != "unsafe" {
			faults = append(faults, c.add(l)...)
		}
	}
	return errors.Join(faults...)
}

// add checks a package.
func (c *checker) add(l *listed) (faults []error) {
	var parsed []*ast.File
	for _, path := range l.paths() {
		f, err := parser.ParseFile(c.files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return []error{err}
		}
		parsed = append(parsed, f)
	}
	cfg := types.Config{
		GoVersion: l.goVersion(), IgnoreFuncBodies: l.DepOnly, Importer: imports{c, l.ImportMap},
		Sizes: types.SizesFor("gc", c.architecture), Error: func(err error) { faults = append(faults, err) },
	}
	c.known[l.ImportPath], _ = cfg.Check(l.ImportPath, c.files, parsed, nil)
	if l.DepOnly {
		return faults
	}
	if len(l.SFiles) > 0 {
		faults = append(faults, fmt.Errorf("%s has assembly for %s: build it, this is no check of it", l.ImportPath, c.architecture))
	}
	return append(faults, c.withoutBody(parsed)...)
}

// withoutBody finds functions that have no body; without assembly, nothing else can have it.
func (c *checker) withoutBody(files []*ast.File) (faults []error) {
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body == nil {
				faults = append(faults, fmt.Errorf("%s: %s has no body", c.files.Position(fn.Pos()), fn.Name.Name))
			}
		}
	}
	return faults
}

// imports finds what the files of a package import.
type imports struct {
	checker *checker
	paths   map[string]string
}

// Import implements types.Importer.
func (i imports) Import(path string) (*types.Package, error) {
	if to, ok := i.paths[path]; ok {
		path = to
	}
	if p := i.checker.known[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s is not known", path)
}
