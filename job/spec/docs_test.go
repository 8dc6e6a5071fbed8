package spec

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
)

var update = flag.Bool("update", false, "write the tables of docs/reference anew")

const pages = "../../docs/reference/"

// TestDocs: the tables of docs/reference are those of the code. With -update the test writes
// them: go test ./job/spec -run TestDocs -update.
func TestDocs(t *testing.T) {
	check(t, "job-spec.md", "keys", table(Common()))
	check(t, "algorithms.md", "settings", settingsOf(registry.All()))
}

// check holds a table of a page to the code.
func check(t *testing.T, name, section, content string) {
	t.Helper()
	page := pages + name
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := between(t, page, string(b), section, content)
	if text == string(b) {
		return
	}
	if !*update {
		t.Fatalf("the tables of %s differ from the code; write them with go test ./job/spec -run TestDocs -update", page)
	}
	if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// between replaces what stands between the two comments of a name.
func between(t *testing.T, page, text, name, content string) string {
	first, last := fmt.Sprintf("<!-- %s from the code -->\n", name), fmt.Sprintf("<!-- end of %s -->\n", name)
	head, rest, ok := strings.Cut(text, first)
	_, tail, also := strings.Cut(rest, last)
	if !ok || !also {
		t.Fatalf("%s has no lines %q and %q", page, first, last)
	}
	return head + first + "\n" + content + "\n" + last + tail
}

// settingsOf writes a section for each table of settings; algorithms of the same table share
// one.
func settingsOf(all []algorithms.Algorithm) string {
	var sections, index []string
	for i, a := range all {
		if i > 0 && same(a, all[i-1]) {
			continue
		}
		names, docs := []string{}, ""
		for _, b := range all[i:] {
			if !same(a, b) {
				break
			}
			names = append(names, b.Name())
			docs += fmt.Sprintf("- `%s`: %s.\n", b.Name(), b.Doc())
		}
		title := strings.Join(names, " and ")
		index = append(index, fmt.Sprintf("[%s](#%s)", title, strings.ReplaceAll(title, " ", "-")))
		sections = append(sections, fmt.Sprintf("## %s\n\n%s\n%s", title, docs, table(a.Params())))
	}
	lines := "" // of ten links, which are no long sentence
	for some := range slices.Chunk(index, 10) {
		lines += "- " + strings.Join(some, ", ") + "\n"
	}
	return lines + "\n" + strings.Join(sections, "\n")
}

func same(a, b algorithms.Algorithm) bool {
	return reflect.DeepEqual(texts(a.Params()), texts(b.Params()))
}

// texts returns what is printed of settings.
func texts(params []param.Param) (rows [][4]string) {
	for _, p := range params {
		wanted := p.Wanted()
		if len(p.Words) > 20 { // names, which are no sentence
			wanted = "`" + wanted + "`"
		}
		rows = append(rows, [4]string{"`" + p.Name + "`", p.Doc, wanted, p.Default})
	}
	return rows
}

func table(params []param.Param) string {
	b := "| key | what | values | default |\n| --- | --- | --- | --- |\n"
	for _, row := range texts(params) {
		b += "| " + strings.Join(row[:], " | ") + " |\n"
	}
	return b
}
