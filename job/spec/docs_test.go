package spec

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
)

var update = flag.Bool("update", false, "write the tables of docs/reference/algorithms.md anew")

const page = "../../docs/reference/algorithms.md"

// TestDocs: the tables of docs/reference/algorithms.md are those of the code. With -update the test writes
// them: go test ./job/spec -run TestDocs -update.
func TestDocs(t *testing.T) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := between(t, string(b), "keys", table(Common()))
	text = between(t, text, "settings", settingsOf(registry.All()))
	if text == string(b) {
		return
	}
	if !*update {
		t.Fatalf("the tables of %s are not those of the code: go test ./job/spec -run TestDocs -update", page)
	}
	if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// between replaces what stands between the two comments of a name.
func between(t *testing.T, text, name, content string) string {
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
	var sections []string
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
		sections = append(sections, fmt.Sprintf("## Settings of %s\n\n%s\n%s", strings.Join(names, " and "), docs, table(a.Params())))
	}
	return strings.Join(sections, "\n")
}

func same(a, b algorithms.Algorithm) bool {
	return reflect.DeepEqual(texts(a.Params()), texts(b.Params()))
}

// texts returns what is printed of settings.
func texts(params []param.Param) (rows [][4]string) {
	for _, p := range params {
		rows = append(rows, [4]string{"`" + p.Name + "`", p.Doc, p.Wanted(), p.Default})
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
