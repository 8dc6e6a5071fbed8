package lint

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	maxMethods = 25 // of a type
	maxFields  = 20 // of a struct
)

// ceilings has a line for each figure above its limit: the kind, the package or type, and the figure.
// It only falls: `go test ./internal/lint -run Shape -lower` writes the figures that have fallen.
const ceilings = "testdata/ceilings.txt"

// exceptions are the types that may have more than maxMethods methods or maxFields fields, each with the reason.
var exceptions = map[string]string{
	"fields metrics.Coordinator": "one field for each series: a new metric adds one",
}

var lower = flag.Bool("lower", false, "write the figures of TestShape that have fallen")

// phrases are patterns that make comments hard to read. Comments have none of them.
var phrases = regexp.MustCompile(`(?i)\b(of which|of whom|whoever|that of those|lest|no more|as far as)\b|: else\b`)

// TestShape bounds the methods of a type, the fields of a struct, the references against the order of a package's
// files, and the awkward phrases in a package's comments. With -v it prints how each package is cut.
func TestShape(t *testing.T) {
	figures := make(map[string]int) // by "kind name"
	for _, p := range packages(t) {
		maps.Copy(figures, p.figures())
		t.Log(p)
	}
	listed := readCeilings(t)
	for what := range listed {
		if _, ok := figures[what]; !ok {
			figures[what] = 0
		}
	}
	for _, what := range slices.Sorted(maps.Keys(figures)) {
		if exceptions[what] != "" {
			continue
		}
		kind, _, _ := strings.Cut(what, " ")
		limit := map[string]int{"methods": maxMethods, "fields": maxFields}[kind]
		if allowed, ok := listed[what]; figures[what] > max(limit, allowed) {
			t.Errorf("%s: %d, at most %d are allowed", what, figures[what], max(limit, allowed))
		} else if ok && figures[what] < allowed && !*lower {
			t.Errorf("%s has fallen from %d to %d: so must its ceiling; use -lower", what, allowed, figures[what])
		}
	}
	if !*lower {
		return
	}
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(listed)) {
		kind, _, _ := strings.Cut(what, " ")
		if n := min(figures[what], listed[what]); n > map[string]int{"methods": maxMethods, "fields": maxFields}[kind] {
			fmt.Fprintln(&b, what, n)
		}
	}
	if err := os.WriteFile(ceilings, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readCeilings(t *testing.T) map[string]int {
	t.Helper()
	b, err := os.ReadFile(ceilings)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]int)
	for line := range strings.Lines(string(b)) {
		var kind, name string
		var n int
		if _, err := fmt.Sscan(line, &kind, &name, &n); err != nil {
			t.Fatalf("%s: %q: %v", ceilings, line, err)
		}
		all[kind+" "+name] = n
	}
	return all
}

// gopackage is a package without its tests.
type gopackage struct {
	dir   string
	files []*source
	tests []*source
}

func packages(t *testing.T) []*gopackage {
	all := make(map[string]*gopackage)
	for _, s := range sources(t) {
		p := all[s.dir()]
		if p == nil {
			p = &gopackage{dir: s.dir()}
			all[s.dir()] = p
		}
		if s.test() {
			p.tests = append(p.tests, s)
		} else {
			p.files = append(p.files, s)
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *gopackage) int { return cmp.Compare(a.dir, b.dir) })
}

// figures returns what ceilings.txt bounds, by "kind name".
func (p *gopackage) figures() map[string]int {
	all, methods := make(map[string]int), make(map[string]bool)
	for _, s := range p.files {
		for _, d := range s.ast.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || methods[name(f)] { // a method of two architectures counts once
				continue
			}
			methods[name(f)] = true
			typ, _, _ := strings.Cut(name(f), ".")
			all["methods "+p.dir+"."+typ]++
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if fields, ok := spec.Type.(*ast.StructType); ok {
					all["fields "+p.dir+"."+spec.Name.Name] = fields.Fields.NumFields()
				}
			}
			return true
		})
		for _, c := range s.ast.Comments {
			if found := len(phrases.FindAllString(c.Text(), -1)); found > 0 {
				all["phrases "+p.dir] += found
			}
		}
	}
	if up := upward(p.arrows()); up > 0 {
		all["upward "+p.dir] = up
	}
	return all
}

// arrows returns, for each file, the other files of the package that declare what it uses: functions, types, constants
// and variables, and methods whose name one file alone declares.
func (p *gopackage) arrows() [][]bool {
	declared, methods := make(map[string]int), make(map[string]int)
	for i, s := range p.files {
		for _, d := range s.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					declared[d.Name.Name] = i
				} else if at, twice := methods[d.Name.Name]; twice && at != i {
					methods[d.Name.Name] = -1
				} else {
					methods[d.Name.Name] = i
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						declared[spec.Name.Name] = i
					case *ast.ValueSpec:
						for _, n := range spec.Names {
							declared[n.Name] = i
						}
					}
				}
			}
		}
	}
	uses := make([][]bool, len(p.files))
	for i, s := range p.files {
		uses[i] = make([]bool, len(p.files))
		for _, id := range s.ast.Unresolved {
			if at, ok := declared[id.Name]; ok && at != i {
				uses[i][at] = true
			}
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if at, ok := methods[sel.Sel.Name]; ok && at >= 0 && at != i {
					uses[i][at] = true
				}
			}
			return true
		})
	}
	return uses
}

// upward counts the arrows against an order of the files in which few are. It begins with the files that use the fewest
// others, and moves one file at a time to its best place until no move helps.
func upward(uses [][]bool) int {
	order := make([]int, len(uses)) // a file may use those before it
	for i := range order {
		order[i] = i
	}
	count := func(all []bool) (n int) {
		for _, used := range all {
			if used {
				n++
			}
		}
		return n
	}
	slices.SortStableFunc(order, func(a, b int) int { return count(uses[a]) - count(uses[b]) })
	cost := func(used bool) int {
		if used {
			return 1
		}
		return 0
	}
	for moved := true; moved; {
		moved = false
		for _, file := range slices.Clone(order) {
			at := slices.Index(order, file)
			rest := slices.Delete(slices.Clone(order), at, at+1)
			ups := 0 // if file comes first: it uses those behind it
			for _, other := range rest {
				ups += cost(uses[file][other])
			}
			best, least, now := 0, ups, ups
			for i, other := range rest {
				ups += cost(uses[other][file]) - cost(uses[file][other])
				if ups < least {
					best, least = i+1, ups
				}
				if i+1 == at {
					now = ups
				}
			}
			if least < now {
				order, moved = slices.Insert(rest, best, file), true
			}
		}
	}
	up := 0
	for i, file := range order {
		for _, later := range order[i+1:] {
			up += cost(uses[file][later])
		}
	}
	return up
}

// String says how the package is cut. A function with one caller is not exported, and its name occurs once in the
// package outside its declaration, and never in its tests.
func (p *gopackage) String() string {
	lines, functions, single := 0, 0, 0
	occurs := func(files []*source) map[string]int {
		all := make(map[string]int)
		for _, s := range files {
			ast.Inspect(s.ast, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					all[id.Name]++
				}
				return true
			})
		}
		return all
	}
	called, tested := occurs(p.files), occurs(p.tests)
	for _, s := range p.files {
		lines += s.lines()
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				functions++
				if !f.Name.IsExported() && called[f.Name.Name] == 2 && tested[f.Name.Name] == 0 {
					single++
				}
			}
		}
	}
	return fmt.Sprintf("%-40s %3d files %6d lines, %2d functions per 1,000 lines, %2d %% with one caller", p.dir,
		len(p.files), lines, 1000*functions/max(1, lines), 100*single/max(1, functions))
}
