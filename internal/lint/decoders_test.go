package lint

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// decodersPage lists what reads bytes from networks and disks.
const decodersPage = "docs/dev/decoders.md"

// parsers are the functions that a package calls which decodes bytes by itself.
var parsers = map[string][]string{
	"encoding/json":                   {"Unmarshal", "NewDecoder"},
	"encoding/csv":                    {"NewReader"},
	"encoding/gob":                    {"NewDecoder"},
	"encoding/xml":                    {"Unmarshal", "NewDecoder"},
	"archive/zip":                     {"NewReader", "OpenReader"},
	"archive/tar":                     {"NewReader"},
	"compress/gzip":                   {"NewReader"},
	"compress/zlib":                   {"NewReader"},
	"github.com/goccy/go-yaml/parser": {"ParseBytes"},
	"io":                              {"ReadAll"},
}

// trusted packages read only what this program itself has just written for them, or
// what the user's own command has: not what peers or disks say.
var trusted = []string{"cmd", "harness/proc", "harness/testkit", "harness/chaos", "harness/sim", "harness/bench",
	"internal/lint", "harness/contract", "tools"}

// listed reads the page: the packages of its table, and their fuzz targets as
// "package.Target".
func listed(t *testing.T) (packages, targets []string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(decodersPage)))
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(string(b)) {
		cells := strings.Split(line, "|")
		if len(cells) != 7 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		names := code.FindAllStringSubmatch(cells[1], -1)
		for _, n := range names {
			packages = append(packages, n[1])
		}
		for _, f := range code.FindAllStringSubmatch(cells[5], -1) {
			targets = append(targets, names[0][1]+"."+f[1])
		}
	}
	if len(targets) == 0 {
		t.Fatalf("%s lists no targets", decodersPage)
	}
	return packages, targets
}

// TestDecodersHaveFuzzTargets: what the page lists exists, and what exists is
// listed.
func TestDecodersHaveFuzzTargets(t *testing.T) {
	_, want := listed(t)
	var have []string
	for _, s := range sources(t) {
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test() && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz") {
				have = append(have, s.dir()+"."+f.Name.Name)
			}
		}
	}
	for _, target := range want {
		if !slices.Contains(have, target) {
			t.Errorf("%s lists the fuzz target %s, which does not exist", decodersPage, target)
		}
	}
	for _, target := range have {
		if !slices.Contains(want, target) {
			t.Errorf("%s does not list the fuzz target %s", decodersPage, target)
		}
	}
}

// TestDecodersAreListed: a package that parses bytes by itself has a row.
func TestDecodersAreListed(t *testing.T) {
	packages, _ := listed(t)
	for _, s := range sources(t) {
		if s.test() || in(s.dir(), trusted...) || slices.Contains(packages, s.dir()) {
			continue
		}
		for _, call := range s.calls() {
			if p, f, _ := strings.Cut(call, "\x00"); slices.Contains(parsers[p], f) {
				t.Errorf("%s calls %s of %s; %s has no row for its package", s.name, f, p, decodersPage)
			}
		}
	}
}

// calls lists what the file calls of other packages, as path, NUL and name.
func (s *source) calls() []string {
	paths := make(map[string]string) // by the name that the file uses
	for _, i := range s.ast.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			continue
		}
		name := p[strings.LastIndex(p, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		paths[name] = p
	}
	var all []string
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && paths[x.Name] != "" {
					all = append(all, paths[x.Name]+"\x00"+sel.Sel.Name)
				}
			}
		}
		return true
	})
	return all
}
