package lint

import (
	"go/ast"
	"strings"
	"testing"
)

const (
	maxFile     = 640 // lines
	maxFunction = 85  // lines
	maxTest     = 125 // lines of a function of tests, which may have a table of cases
	// maxExperiments bounds the lines of code of the commands of experiments: the work is done in packages.
	maxExperiments = 1200
)

func TestSizes(t *testing.T) {
	check := func(what string, lines, limit int) {
		if lines > limit {
			t.Errorf("%s has %d lines, at most %d are allowed: split it", what, lines, limit)
		}
	}
	experiments := 0
	for _, s := range sources(t) {
		check(s.name, s.lines(), maxFile)
		if strings.HasPrefix(s.name, "cmd/experimentcmd/") && !s.test() {
			experiments += s.code(t)
		}
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				limit := maxFunction
				if s.test() {
					limit = maxTest
				}
				check(s.name+" "+name(f), s.line(f.End())-s.line(f.Pos())+1, limit)
			}
		}
	}
	check("cmd/experimentcmd", experiments, maxExperiments)
}

// name returns a function's name, with its receiver's type.
func name(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	typ := f.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.Ident:
			return x.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}
