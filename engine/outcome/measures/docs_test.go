package measures

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/reference/measures.md anew")

// TestDocs: the tables of docs/reference/measures.md are those of the code. With -update the
// test writes them: go test ./engine/outcome/measures -run TestDocs -update.
func TestDocs(t *testing.T) {
	const page, first, last = "../../../docs/reference/measures.md", "<!-- measures from the code -->\n",
		"<!-- end of measures -->\n"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), first)
	_, tail, also := strings.Cut(rest, last)
	if !ok || !also {
		t.Fatalf("%s has no lines %q and %q", page, first, last)
	}
	text := head + first + "\n" + table("Ten measures of distributions", All) +
		table("More measures of distributions", More) + table("Measures of classes and numbers", Others) + last + tail
	if text == string(b) {
		return
	}
	if !*update {
		t.Fatalf("the tables of %s differ from the code; write them with go test ./engine/outcome/measures -run TestDocs "+
			"-update", page)
	}
	if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// table is a section with a line for each measure.
func table(title string, all []Measure) string {
	b := "## " + title + "\n\n| name | in tables | definition | better |\n| --- | --- | --- | --- |\n"
	for _, m := range all {
		better := "lower"
		if m.HigherIsBetter {
			better = "higher"
		}
		b += fmt.Sprintf("| `%s` | %s | %s | %s |\n", m.Name, strings.ReplaceAll(m.Title, "|", `\|`),
			strings.ReplaceAll(m.Formula, "|", `\|`), better)
	}
	return b + "\n"
}
