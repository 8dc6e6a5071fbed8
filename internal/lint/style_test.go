package lint

import (
	"go/ast"
	"go/token"
	"path"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	maxLine    = 120 // characters; a tab is one
	maxUnkeyed = 3   // fields of a struct literal without their names
	longText   = 40  // bytes of a literal in a test that may stand on a longer line
)

// TestLineLength: no line is longer than maxLine. Lines of raw strings (examples in help texts, tags of flags), long
// texts of tables in tests, and directives stay as they are.
func TestLineLength(t *testing.T) {
	for _, s := range sources(t) {
		raw := make(map[int]bool)
		ast.Inspect(s.ast, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if ok && lit.Kind == token.STRING && (lit.Value[0] == '`' || s.test() && len(lit.Value) > longText) {
				for line := s.line(lit.Pos()); line <= s.line(lit.End()); line++ {
					raw[line] = true
				}
			}
			return true
		})
		for i, line := range strings.Split(read(t, s.name), "\n") {
			if n := utf8.RuneCountInString(line); n > maxLine && !raw[i+1] && !strings.HasPrefix(line, "//go:") {
				t.Errorf("%s:%d has %d characters, at most %d are allowed", s.name, i+1, n, maxLine)
			}
		}
	}
}

// TestKeyed: a literal of a struct with a name has the names of its fields, if it has more than maxUnkeyed. A literal
// of a struct without a name stands below the names of its fields, in a table.
func TestKeyed(t *testing.T) {
	structs := make(map[string]bool) // by the path of the package, a dot and the name
	for _, s := range sources(t) {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if _, ok := spec.Type.(*ast.StructType); ok {
					structs[s.dir()+"."+spec.Name.Name] = true
				}
			}
			return true
		})
	}
	for _, s := range sources(t) {
		k := keyed{source: s, structs: structs, imports: importedAs(s), t: t}
		for _, d := range s.ast.Decls {
			ast.Inspect(d, func(n ast.Node) bool {
				if lit, ok := n.(*ast.CompositeLit); ok && lit.Type != nil {
					k.check(lit, lit.Type)
				}
				return true
			})
		}
	}
}

type keyed struct {
	*source
	structs map[string]bool
	imports map[string]string
	t       *testing.T
}

// check looks at a literal of a type, and at the literals in it that leave out their type.
func (k *keyed) check(lit *ast.CompositeLit, typ ast.Expr) {
	var element ast.Expr
	switch typ := typ.(type) {
	case *ast.ArrayType:
		element = typ.Elt
	case *ast.MapType:
		element = typ.Value
	default:
		if len(lit.Elts) > maxUnkeyed && k.structs[k.path(typ)] {
			if _, ok := lit.Elts[0].(*ast.KeyValueExpr); !ok {
				k.t.Errorf("%s:%d: a literal with %d fields without their names, at most %d are allowed",
					k.name, k.line(lit.Pos()), len(lit.Elts), maxUnkeyed)
			}
		}
		return
	}
	if pointer, ok := element.(*ast.StarExpr); ok {
		element = pointer.X
	}
	for _, e := range lit.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			e = pair.Value
		}
		if inner, ok := e.(*ast.CompositeLit); ok && inner.Type == nil {
			k.check(inner, element)
		}
	}
}

// path returns the path of a named type's package, a dot and its name; or an empty string for another type.
func (k *keyed) path(typ ast.Expr) string {
	switch typ := typ.(type) {
	case *ast.Ident:
		return k.dir() + "." + typ.Name
	case *ast.IndexExpr:
		return k.path(typ.X)
	case *ast.SelectorExpr:
		if x, ok := typ.X.(*ast.Ident); ok {
			return k.imports[x.Name] + "." + typ.Sel.Name
		}
	}
	return ""
}

// importedAs returns the folders of the module's packages that a file imports, by the name that it uses for them.
func importedAs(s *source) map[string]string {
	all := make(map[string]string)
	for _, i := range s.ast.Imports {
		if dir, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module+"/"); ok {
			name := path.Base(dir)
			if i.Name != nil {
				name = i.Name.Name
			}
			all[name] = dir
		}
	}
	return all
}
