package lint

import (
	"flag"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pages lists the pages that are written for users: those for contributors name Go functions.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md", "CHANGELOG.md", "deploy/README.md", "metrics/METRICS.md"}
	for _, folder := range []string{"guides", "reference", "design", "python"} {
		found, err := filepath.Glob(filepath.Join("..", "..", "docs", folder, "*.md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			all = append(all, "docs/"+folder+"/"+filepath.Base(f))
		}
	}
	if len(all) < 15 {
		t.Fatalf("only %d pages: this looks at the wrong folder", len(all))
	}
	return all
}

const glossaryPage = "docs/reference/glossary.md"

// inside lists words that only this code's authors know, or that a reader who learned
// English at school does not: no sentence for users has one, unless the glossary explains it.
var inside = []string{
	"abreast", "anew", "beats", "broken off", "condemn", "condemned", "crew", "dispatcher", "fold of a part",
	"folded", "found out", "furthest", "hand over", "handed over", "handover", "hands over", "hands the leadership over",
	"house", "kernel", "ladder", "lane", "lanes", "lest", "misshapen", "named by the time", "nearer", "obeyed", "office",
	"passed over", "passes over", "pulse", "referee", "roster", "rung", "rungs", "scratch memory", "seat", "stand above",
	"stands above",
	"trainer", "trainer state", "wish", "wishes",
}

// prefixes are the packages whose names mean nothing to users: no error begins with one.
var prefixes = regexp.MustCompile(`^(bus|dispatch|engine|jobs|local|members|office|pipeline|referee|replica|state): `)

// tools are the folders whose texts only this project's authors read.
var tools = []string{"harness/contract", "harness/sim", "harness/testkit", "internal/lint", "internal/num/nofuse",
	"dataset/matfile/mattest"}

var printed = flag.Bool("sentences", false, "print every text that TestWords reads")

// text is a literal of the code that may reach a user.
type text struct {
	where string // file:line
	value string
}

// texts lists the literals of a file that may reach users: all but import paths, the
// arguments of panic, and the tags that say how a struct is read.
func (s *source) texts() []text {
	var all []text
	add := func(p token.Pos, value string) {
		all = append(all, text{s.name + ":" + strconv.Itoa(s.line(p)), value})
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.CallExpr:
			f, ok := n.Fun.(*ast.Ident)
			return !ok || f.Name != "panic"
		case *ast.Field:
			if n.Tag == nil {
				return true
			}
			tag := tagOf(n)
			for _, key := range []string{"help", "placeholder", "default"} {
				add(n.Pos(), tag.Get(key))
			}
			return false
		case *ast.BasicLit:
			if value, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				add(n.Pos(), value)
			}
		}
		return true
	})
	return all
}

func tagOf(f *ast.Field) reflect.StructTag {
	tag, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return ""
	}
	return reflect.StructTag(tag)
}

// public lists the files whose texts and names users see.
func public(t *testing.T) []*source {
	return slices.DeleteFunc(slices.Clone(sources(t)), func(s *source) bool { return s.test() || in(s.dir(), tools...) })
}

// whole matches words as whole words.
func whole(words []string) *regexp.Regexp {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = regexp.QuoteMeta(w)
	}
	slices.SortFunc(quoted, func(a, b string) int { return len(b) - len(a) })
	return regexp.MustCompile(`(?i)\b(` + strings.Join(quoted, "|") + `)\b`)
}

// TestWords: what users read has no word that only the inside knows.
func TestWords(t *testing.T) {
	terms := glossary(t)
	wrong := whole(slices.DeleteFunc(slices.Clone(inside), func(w string) bool { return slices.Contains(terms, w) }))
	check := func(where, what string) {
		if w := wrong.FindString(what); w != "" {
			t.Errorf("%s: %q has %q, which users do not know: use a word of %s", where, what, w, glossaryPage)
		}
	}
	n := 0
	for _, s := range public(t) {
		for _, x := range s.texts() {
			n++
			if *printed && strings.Contains(x.value, " ") {
				t.Logf("%s: %s", x.where, x.value)
			}
			check(x.where, x.value)
			if p := prefixes.FindString(x.value); p != "" {
				t.Errorf("%s: %q begins with the name of a package, %q", x.where, x.value, p)
			}
		}
	}
	if n < 2000 {
		t.Fatalf("only %d texts: this looks at the wrong things", n)
	}
	for _, page := range pages(t) {
		for i, line := range strings.Split(read(t, page), "\n") {
			check(page+":"+strconv.Itoa(i+1), line)
		}
	}
}

// read returns a file of the repository.
func read(t *testing.T, page string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// glossary reads the terms of the glossary.
func glossary(t *testing.T) (terms []string) {
	t.Helper()
	for _, line := range strings.Split(read(t, glossaryPage), "\n") {
		if term, ok := termOf(line); ok {
			terms = append(terms, term)
		}
	}
	if len(terms) < 50 {
		t.Fatalf("%s has %d terms: this reads it wrongly", glossaryPage, len(terms))
	}
	return terms
}

// termOf returns the term that a line of the glossary explains.
func termOf(line string) (string, bool) {
	cells := strings.Split(line, "|")
	if len(cells) != 4 || strings.Contains(cells[1], "---") || strings.TrimSpace(cells[1]) == "term" {
		return "", false
	}
	return strings.TrimSpace(cells[1]), true
}

// TestGlossaryAgreesWithItself: a term stands once, in the order of the alphabet within
// its section.
func TestGlossaryAgreesWithItself(t *testing.T) {
	terms := glossary(t)
	slices.Sort(terms)
	if n := len(slices.Compact(slices.Clone(terms))); n != len(terms) {
		t.Errorf("%s explains %d terms twice", glossaryPage, len(terms)-n)
	}
	for _, section := range strings.Split(read(t, glossaryPage), "\n## ")[1:] {
		var words []string
		for line := range strings.Lines(section) {
			if term, ok := termOf(line); ok {
				words = append(words, strings.ToLower(term))
			}
		}
		if !slices.IsSorted(words) {
			title, _, _ := strings.Cut(section, "\n")
			t.Errorf("%s: the terms of %q are not in order", glossaryPage, title)
		}
	}
}
