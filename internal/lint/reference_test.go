package lint

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// backticked returns the words in backticks of the first column of a page's tables.
func backticked(page string) (all []string) {
	word := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(page) {
		if cells := strings.Split(line, "|"); len(cells) > 3 && cells[0] == "" {
			for _, m := range word.FindAllStringSubmatch(cells[1], -1) {
				all = append(all, m[1])
			}
		}
	}
	return all
}

// TestKinds: docs/reference/commands.md has every kind of error.
func TestKinds(t *testing.T) {
	const source, page = "cmd/cli/errors.go", "docs/reference/commands.md"
	kinds := []string{"failed"}
	for _, m := range regexp.MustCompile(`f\.Kind(?:, f\.Code)? = "([a-z_]+)"`).
		FindAllStringSubmatch(read(t, source), -1) {
		kinds = append(kinds, m[1])
	}
	if len(kinds) < 6 {
		t.Fatalf("only %d kinds of errors in %s", len(kinds), source)
	}
	listed := backticked(read(t, page))
	for _, k := range kinds {
		if !slices.Contains(listed, k) {
			t.Errorf("%s has no kind of error %q", page, k)
		}
	}
}

// TestKeys: after each comment "keys of FILE:TYPE..." the pages on JSON have a table with the JSON
// keys of these types, and no other.
func TestKeys(t *testing.T) {
	types := make(map[string][]string) // "FILE:TYPE" to keys
	for _, s := range public(t) {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if d, ok := n.(*ast.TypeSpec); ok {
				if st, ok := d.Type.(*ast.StructType); ok {
					types[s.name+":"+d.Name.Name] = keysOf(st)
				}
			}
			return true
		})
	}
	n := checkKeys(t, "docs/reference/json.md", types) + checkKeys(t, "docs/reference/reports.md", types)
	if n < 10 {
		t.Fatalf("only %d tables of keys", n)
	}
}

// checkKeys holds the tables of a page to the types, and returns how many there are.
func checkKeys(t *testing.T, page string, types map[string][]string) int {
	t.Helper()
	sections := regexp.MustCompile(`<!-- keys of ([^>]*?) -->\n\n((?:\|[^\n]*\n)+)`).
		FindAllStringSubmatch(read(t, page), -1)
	for _, m := range sections {
		var keys []string
		for name := range strings.FieldsSeq(m[1]) {
			if len(types[name]) == 0 {
				t.Errorf("%s: there are no JSON keys of %s", page, name)
			}
			keys = append(keys, types[name]...)
		}
		listed := backticked(m[2])
		for _, k := range keys {
			if !slices.Contains(listed, k) {
				t.Errorf("%s has no key %q of %s", page, k, m[1])
			}
		}
		for _, k := range listed {
			if !slices.Contains(keys, k) {
				t.Errorf("%s has the key %q, which %s lacks", page, k, m[1])
			}
		}
	}
	return len(sections)
}

// keysOf lists the JSON keys of a struct.
func keysOf(st *ast.StructType) (all []string) {
	for _, f := range st.Fields.List {
		if f.Tag == nil {
			continue
		}
		if key, _, _ := strings.Cut(tagOf(f).Get("json"), ","); key != "" && key != "-" {
			all = append(all, key)
		}
	}
	return all
}
