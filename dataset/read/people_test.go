package read

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
)

var writePeople = flag.Bool("write-people", false, "write the table of dataset/read/FILES.md anew")

// People is the folder of files as people have them; testdata/people/make.py made them.
var People = filepath.Join("testdata", "people")

// PeopleOptions reads the flags of a case, as the commands have them.
func PeopleOptions(t *testing.T, flags string) (o OpenOptions) {
	t.Helper()
	words := strings.Fields(flags)
	for i := 0; i < len(words); i++ {
		value := ""
		if words[i] != "--zero-based" && i+1 < len(words) {
			i++
			value = words[i]
		}
		var err error
		switch flag := words[max(0, i-1)]; {
		case words[i] == "--zero-based":
			o.Libsvm.ZeroBased = true
		case flag == "--delimiter":
			o.CSV.Delimiter, err = ParseDelimiter(value)
		case flag == "--thousands":
			o.CSV.Thousands, err = ParseThousands(value)
		case flag == "--decimal":
			o.CSV.Decimal = value
		case flag == "--missing":
			o.Missing, err = dataset.ParseMissing(value)
		case flag == "--drop":
			o.Drop = strings.Split(value, ",")
		case flag == "--categories":
			o.CSV.Categories = strings.Split(value, ",")
		case flag == "--encoding":
			o.Encoding, err = ParseEncoding(value)
		case flag == "--feature-columns":
			o.FeatureColumns = strings.Split(value, ",")
		case flag == "--label-columns":
			o.Labels.Columns = strings.Split(value, ",")
		case flag == "--labels":
			o.Labels.Kind = dataset.LabelKind(value)
		case flag == "--header":
			o.CSV.Header = dataset.Header(value)
		case flag == "--features-variable":
			o.Arrays.FeaturesVariable = value
		case flag == "--labels-variable":
			o.Arrays.LabelsVariable = value
		default:
			err = fmt.Errorf("an unknown flag")
		}
		if err != nil {
			t.Fatalf("%s: %v", flags, err)
		}
	}
	return o
}

// readPeople says what a file is read as: its shape, the names, the first row.
func readPeople(path string, o OpenOptions) (string, error) {
	src, err := Open(path, o)
	if err != nil {
		return "", err
	}
	rows, first, left := 0, "", 0
	err = importer.Scan(src, &importer.Options{LeftOut: func(int) {
		left++
	}}, "", -1, func(r *dataset.Row, _ *importer.Checker) error {
		if rows++; rows == 1 {
			first = fmt.Sprint(datasettest.Dense(*r, src.Info().Features), " -> ", r.Labels)
			if r.Name != "" {
				first = r.Name + " " + first
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	i := src.Info()
	shape := fmt.Sprintf("%d x %d, %d", rows, i.Features, i.Labels)
	if left > 0 {
		shape += fmt.Sprintf(" (%d left out)", left)
	}
	return fmt.Sprintf("%s | %s -> %s | %s", shape, strings.Join(i.FeatureNames, ", "), strings.Join(i.LabelNames, ", "),
		first), nil
}

// TestPeople: each file is read, or refused, as the table says, and an error names
// the file.
func TestPeople(t *testing.T) {
	known := map[string]bool{"make.py": true, "pair_labels.npy": true}
	for _, c := range PeopleCases {
		known[c.File] = true
		path := filepath.Join(People, c.File)
		got, err := readPeople(path, PeopleOptions(t, c.Flags))
		if err != nil {
			var named bool
			if got, named = strings.CutPrefix(err.Error(), path+": "); !named {
				t.Errorf("%s %s: error %q does not begin with the file", c.File, c.Flags, err)
			}
		}
		if got != c.Want {
			t.Errorf("%s %s:\n%s\nwant\n%s", c.File, c.Flags, got, c.Want)
		}
	}
	files, err := os.ReadDir(People)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !known[f.Name()] {
			t.Errorf("%s is in no case", f.Name())
		}
	}
}

// The table's place in the page.
const (
	peopleBegin = "<!-- people: written by go test ./dataset/read -run TestPeopleTable -write-people -->\n"
	peopleEnd   = "<!-- end of people -->\n"
)

// TestPeopleTable: dataset/read/FILES.md has the cases.
func TestPeopleTable(t *testing.T) {
	page := "FILES.md"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), peopleBegin)
	old, after, ok2 := strings.Cut(rest, peopleEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", page)
	}
	switch table := peopleTable(); {
	case *writePeople:
		if err := os.WriteFile(page, []byte(before+peopleBegin+table+peopleEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case old != table:
		t.Errorf("the table of %s is not that of the cases; the comment before it says how to write it", page)
	}
}

func peopleTable() string {
	var b strings.Builder
	b.WriteString("\n| file | flags | read as, or refused because |\n| --- | --- | --- |\n")
	for _, c := range PeopleCases {
		flags := ""
		if c.Flags != "" {
			flags = "`" + c.Flags + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.File, flags, strings.ReplaceAll(c.Want, "|", "·"))
	}
	b.WriteString("\n")
	return b.String()
}
