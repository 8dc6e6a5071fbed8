package openapi

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write descriptions.txt")

// TestDescriptions: descriptions.txt has the comments of the Go types and fields that requests and responses have.
func TestDescriptions(t *testing.T) {
	_, s := requests()
	sources := make(map[string]map[string]*ast.TypeSpec) // by package and name
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.types)) {
		of := s.types[name]
		if doc := comment(typeOf(t, sources, of).Doc); doc != "" {
			doc = strings.TrimPrefix(doc, of.Name()+" ")
			fmt.Fprintf(&text, "%s\t%s\n", name, doc)
		}
		keys(t, sources, of, func(key, doc string) {
			if doc != "" {
				fmt.Fprintf(&text, "%s.%s\t%s\n", name, key, doc)
			}
		})
	}
	if *update {
		if err := os.WriteFile("descriptions.txt", []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text.String() != descriptions {
		t.Error("descriptions.txt differs from the comments in the code: run go test ./protocol/openapi " +
			"-run TestDescriptions -update")
	}
}

// keys calls found for each key of a struct's JSON, with the comment of its field.
func keys(t *testing.T, sources map[string]map[string]*ast.TypeSpec, of reflect.Type, found func(key, doc string)) {
	fields := make(map[string]*ast.Field)
	if body, ok := typeOf(t, sources, of).Type.(*ast.StructType); ok {
		for _, f := range body.Fields.List {
			for _, name := range f.Names {
				fields[name.Name] = f
			}
		}
	}
	for field := range of.Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch f := fields[field.Name]; {
		case field.Anonymous && key == "" && field.Type.Kind() == reflect.Struct:
			keys(t, sources, field.Type, found)
		case f != nil && key != "" && key != "-":
			doc := comment(f.Doc)
			if doc == "" {
				doc = comment(f.Comment)
			}
			found(key, strings.TrimPrefix(doc, field.Name+" "))
		}
	}
}

// comment returns the text of a comment on one line.
func comment(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// typeOf returns the source of a type.
func typeOf(t *testing.T, sources map[string]map[string]*ast.TypeSpec, of reflect.Type) *ast.TypeSpec {
	t.Helper()
	dir, ok := strings.CutPrefix(of.PkgPath(), "github.com/coppice-ldl/coppice/")
	if !ok {
		t.Fatalf("%v is not a type of this module", of)
	}
	if sources[dir] == nil {
		sources[dir] = make(map[string]*ast.TypeSpec)
		paths, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(dir), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range file.Decls {
				group, ok := decl.(*ast.GenDecl)
				if !ok {
					continue
				}
				for _, spec := range group.Specs {
					if one, ok := spec.(*ast.TypeSpec); ok {
						if one.Doc == nil {
							one.Doc = group.Doc
						}
						sources[dir][one.Name.Name] = one
					}
				}
			}
		}
	}
	if sources[dir][of.Name()] == nil {
		t.Fatalf("%v was not found in %s", of, dir)
	}
	return sources[dir][of.Name()]
}
