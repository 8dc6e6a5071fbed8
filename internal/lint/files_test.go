package lint

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mention is a file's name in a document or a comment.
type mention struct {
	where  string // file:line
	dir    string // of that file
	name   string // empty for an anchor of the same document
	link   bool
	anchor string // of a link
}

var (
	// named finds names of files of this repository in comments and documents: only
	// extensions that users' own files do not have.
	named = regexp.MustCompile(`(?:^|[^A-Za-z0-9_*./-])([A-Za-z0-9][A-Za-z0-9_./-]*\.(?:go|md|s|sh|py))\b`)
	// rooted finds what looks like a path from the top of the repository, to a file or a folder.
	rooted = regexp.MustCompile(`(?:^|[^A-Za-z0-9_*./-])([a-z]+/[A-Za-z0-9_./-]*[A-Za-z0-9_])`)
	// linked finds the links of documents, whose targets have any extension.
	linked = regexp.MustCompile(`\[[^\]]*\]\(([^)#:\s]*)(?:#([^)]*))?\)`)
	// unanchored finds the characters of a heading that its anchor does not have.
	unanchored = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	// address finds addresses of the web, whose paths are not files here.
	address = regexp.MustCompile(`https?://\S+`)
)

// mentions lists the names of files in a line of text.
func mentions(where, dir, line string, document bool) (all []mention) {
	line = address.ReplaceAllString(line, "")
	if document {
		for _, m := range linked.FindAllStringSubmatch(line, -1) {
			all = append(all, mention{where: where, dir: dir, name: m[1], link: true, anchor: m[2]})
		}
		line = linked.ReplaceAllString(line, "")
	}
	for _, m := range named.FindAllStringSubmatch(line, -1) {
		all = append(all, mention{where: where, dir: dir, name: m[1]})
	}
	for _, m := range rooted.FindAllStringSubmatch(line, -1) {
		top, _, _ := strings.Cut(m[1], "/")
		if info, err := os.Stat(filepath.Join("..", "..", top)); err == nil && info.IsDir() {
			all = append(all, mention{where: where, dir: dir, name: m[1]})
		}
	}
	return all
}

// documents lists the Markdown files of the repository.
func documents(t *testing.T) (names []string) {
	t.Helper()
	top, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(top, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skip(file, top, d.Name())
		}
		if strings.HasSuffix(file, ".md") {
			name, err := filepath.Rel(top, file)
			names = append(names, filepath.ToSlash(name))
			return err
		}
		return nil
	})
	if err != nil || len(names) < 10 {
		t.Fatalf("%d documents, error %v: this looks at the wrong folder", len(names), err)
	}
	return names
}

// elsewhere are files that are named and stand in the folder shared, which testkit.Shared
// looks for beside the repository, and what looks like a path: the key of a random
// stream, and names of models.
var elsewhere = []string{"accuracy.md", "shared/data/README.md", "dataset/import", "job/fold", "job/digest",
	"flowers.card.md", "hub/README.md", "card.md"}

// exists reports whether a name is that of a file or folder, from the folder where it is
// mentioned or, if it is no link, from one above.
func (m *mention) exists() bool {
	for dir := m.dir; ; dir = path.Dir(dir) {
		if _, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(path.Join(dir, m.name)))); err == nil {
			return true
		}
		if dir == "." || m.link {
			return false
		}
	}
}

// target is the document that a link leads to.
func (m *mention) target() string {
	if m.name == "" {
		page, _, _ := strings.Cut(m.where, ":")
		return page
	}
	return path.Join(m.dir, m.name)
}

// anchors lists the anchors of a document as GitHub makes them from headings.
func anchors(document string) (all []string) {
	seen := make(map[string]int)
	fenced := false
	for line := range strings.SplitSeq(document, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		heading := strings.TrimLeft(line, "#")
		if fenced || heading == line || !strings.HasPrefix(heading, " ") {
			continue
		}
		text := linkText.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "$1")
		anchor := strings.ReplaceAll(unanchored.ReplaceAllString(text, ""), " ", "-")
		if n := seen[anchor]; n > 0 {
			all = append(all, anchor+"-"+strconv.Itoa(n))
		} else {
			all = append(all, anchor)
		}
		seen[anchor]++
	}
	return all
}

// TestNamedFilesExist: a file that a document or a comment names exists, beside it or from a
// folder above it. A link of a document has its target beside it, and the heading that it names is there.
func TestNamedFilesExist(t *testing.T) {
	var all []mention
	headings := make(map[string][]string) // by document: its anchors
	for _, page := range documents(t) {
		text := read(t, page)
		headings[page] = anchors(text)
		for i, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, "<<<<<<< ") {
				t.Errorf("%s:%d has both sides of a merge", page, i+1)
			}
			all = append(all, mentions(page+":"+strconv.Itoa(i+1), path.Dir(page), line, true)...)
		}
	}
	for _, s := range sources(t) {
		for _, group := range s.ast.Comments {
			for _, c := range group.List {
				for i, line := range strings.Split(c.Text, "\n") {
					all = append(all, mentions(s.name+":"+strconv.Itoa(s.line(c.Pos())+i), s.dir(), line, false)...)
				}
			}
		}
	}
	if len(all) < 250 {
		t.Fatalf("only %d names of files: this looks at the wrong things", len(all))
	}
	for _, m := range all {
		if !slices.Contains(elsewhere, m.name) && !m.exists() {
			t.Errorf("%s names %s, which does not exist", m.where, m.name)
		}
		if target := m.target(); m.anchor != "" && !slices.Contains(headings[target], m.anchor) {
			t.Errorf("%s links to #%s, but %s has no such heading", m.where, m.anchor, target)
		}
	}
}

// TestPackagesHaveComments: one file of each package says what the package is.
func TestPackagesHaveComments(t *testing.T) {
	comments := make(map[string][]string) // by folder: the files that have one
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		list := comments[s.dir()]
		if s.ast.Doc != nil {
			list = append(list, s.name)
			if want := "Package " + s.ast.Name.Name + " "; s.ast.Name.Name != "main" &&
				!strings.HasPrefix(s.ast.Doc.Text(), want) {
				t.Errorf("%s: the package comment begins otherwise than with %q", s.name, want)
			}
		}
		comments[s.dir()] = list
	}
	for dir, files := range comments {
		if len(files) != 1 {
			t.Errorf("%s has %d package comments, in %v: want one", dir, len(files), files)
		}
	}
}

// TestMentions: what is taken for a name of a file, and where it is looked for.
func TestMentions(t *testing.T) {
	for line, want := range map[string]string{
		"see tree.go, and [the page](../docs/reference/algorithms.md#keys) of https://x.org/a.md": "../docs/reference/algorithms.md tree.go",
		"files named _test.go, *.go and model.cpm":                                                "",
		"the folder engine/nowhere is no engine, nor is docs/reference/algorithms.md.":            "docs/reference/algorithms.md engine/nowhere docs/reference/algorithms.md",
	} {
		var names []string
		for _, m := range mentions("x:1", "engine", line, true) {
			names = append(names, m.name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q names %q, want %q", line, got, want)
		}
	}
	for name, want := range map[string]bool{"tree.go": true, "engine/tree.go": true,
		"../docs/reference/algorithms.md": true, "oak.go": false, "docs/tree.go": false} {
		if m := (mention{dir: "engine", name: name}); m.exists() != want {
			t.Errorf("%s exists: %v", name, !want)
		}
	}
	if m := (mention{dir: "engine", name: "go.mod", link: true}); m.exists() {
		t.Errorf("a link to go.mod from the folder engine leads to ../go.mod")
	}
	page := "# `--a_b`: [Two](x.md) words, 3\n## Größe\n```\n# fenced\n```\n## Größe\n#no\n"
	if got, want := anchors(page), []string{"--a_b-two-words-3", "größe", "größe-1"}; !slices.Equal(got, want) {
		t.Errorf("anchors of %q: %q, want %q", page, got, want)
	}
}
