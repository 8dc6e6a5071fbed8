package read_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/inspect"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// TestInspectEncodings: inspect lists the encodings in which a file that is not UTF-8 is text, at most four, the
// likeliest first, and each of them reads it. The others refuse it.
func TestInspectEncodings(t *testing.T) {
	const rows = "1,2,.5,.5\n3,4,.25,.75\n5,6,.2,.8\n"
	class := read.OpenOptions{Labels: read.LabelOptions{Kind: dataset.Class}}
	for _, c := range []struct {
		file, text, encoding string
		o                    read.OpenOptions
	}{
		{"header.csv", "größe,fläche,label_froh,label_müde\n" + rows, "windows-1252", read.OpenOptions{}},
		{"french.csv", "âge,côté,label_fâché,label_gaieté\n" + rows, "windows-1252", read.OpenOptions{}},
		{"class.csv", "x,z,class\n1,2,grün\n3,4,rot\n5,6,grün\n7,8,rot\n", "windows-1252", class},
		{"category.csv", "x,ort,label_a,label_b\n1,Köln,.5,.5\n3,Bonn,.25,.75\n4,Köln,.5,.5\n3,Bonn,.25,.75\n",
			"windows-1252", read.OpenOptions{CSV: read.CSVOptions{Categories: []string{"ort"}}}},
		{"group.csv", "x,person,label_a,label_b\n1,Jörg,.5,.5\n3,Zoë,.25,.75\n4,Jörg,.5,.5\n", "windows-1252",
			read.OpenOptions{Beside: read.BesideOptions{Groups: "person"}}},
		{"japanese.csv", "年齢,身長,label_楽しい,label_悲しい\n" + rows, "shift_jis", read.OpenOptions{}},
		{"kana.csv", "x,z,class\n1,2,ネコ\n3,4,イヌ\n5,6,ネコ\n7,8,イヌ\n", "shift_jis", class},
		{"chinese.csv", "年龄,身高,label_高兴,label_难过\n" + rows, "gbk", read.OpenOptions{}},
		{"little.csv", "größe,x,label_a,label_b\n" + rows, "utf-16le", read.OpenOptions{}},
		{"big.csv", "größe,x,label_a,label_b\n" + rows, "utf-16be", read.OpenOptions{}},
		{"class.svm", "grün 1:1\nrot 1:2\ngrün 1:3\n", "windows-1252", class},
	} {
		path := datasettest.WriteFile(t, c.file, read.Encoded(t, c.text, c.encoding))
		if _, err := read.TryOpen(path, c.o); err == nil || !strings.Contains(err.Error(), "--encoding "+c.encoding) {
			t.Errorf("%s: an import says %v", c.file, err)
		}
		found, err := inspect.Inspect(path, c.o, importer.Options{})
		if err != nil || found.Refused == "" || len(found.Readings) == 0 || len(found.Readings) > 4 {
			t.Errorf("%s: %+v, %v", c.file, found, err)
			continue
		}
		right := false
		for _, r := range found.Readings {
			if r.Refused != "" { // some other byte of the file is no text in the encoding
				continue
			}
			at := slices.IndexFunc(r.Flags, func(f dataset.Flag) bool { return f.Name == "--encoding" })
			if at < 0 {
				t.Errorf("%s: a reading is %+v", c.file, r)
				continue
			}
			right = right || r.Flags[at].Value == c.encoding
			o, _, err := inspect.Apply(r.Way, c.o, importer.Options{})
			if err == nil {
				_, err = read.TryOpen(path, o)
			}
			if err != nil {
				t.Errorf("%s: %v: %v", c.file, r.Flags, err)
			}
		}
		if !right {
			t.Errorf("%s: no reading has the encoding %s: %+v", c.file, c.encoding, found.Readings)
		}
	}
}

// checkReadable reads a file in every way: it may be refused, and it must be
// the same each time.
func checkReadable(t *testing.T, path string, o read.OpenOptions) {
	t.Helper()
	o.NoLabels = true
	if src, err := read.Open(path, o); err == nil {
		datasettest.TryCollect(src)
	}
	o.NoLabels = false
	if f, err := inspect.Inspect(path, o, importer.Options{}); err == nil {
		if _, err := json.Marshal(f); err != nil {
			t.Error(err)
		}
	}
	src, err := read.Open(path, o)
	if err != nil || src.Info().Features > 1<<10 || src.Info().Labels > 1<<10 {
		return
	}
	m, _, err := importer.Build(src, importer.Options{})
	if err != nil {
		return
	}
	if again, _, err := importer.Build(src, importer.Options{}); err != nil || m.Digest() != again.Digest() {
		t.Errorf("read again: %v", err)
	}
	read.ForModel(t, path, o, m)
}

func FuzzCSV(f *testing.F) {
	dir := f.TempDir()
	f.Add("a,b,label_c,label_d\n1,2,0,1\n3,-4e2,.5,.5\n", "", "")
	f.Add("row_name,a,class\n\"x\"\"\",3,sad\n", "class", "")
	f.Add("1,2,3\n4,5,6\n", "age", "last")
	f.Add("sep=;\na;label_c\n1,5;1\n;1\n;;\n", "", "")
	f.Fuzz(func(t *testing.T, content, kind, column string) {
		path := filepath.Join(dir, "a.csv")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		o := read.OpenOptions{Labels: read.LabelOptions{Kind: dataset.LabelKind(kind), Sigma: 1, High: 9}}
		if column != "" {
			o.Labels.Columns = []string{column}
		}
		checkReadable(t, path, o)
		o.Missing.Drop = true
		checkReadable(t, path, o)
	})
}

// A usual name, or a class of the model, beside numbers above numbers does not make a row a header.
func TestClassesAreNoHeader(t *testing.T) {
	class := func(columns ...string) read.OpenOptions {
		return read.OpenOptions{Labels: read.LabelOptions{Kind: dataset.Class, Columns: columns}}
	}
	for _, name := range []string{"y", "Y", "target", "label", "label_1", "y_pos", "name", "class"} {
		content := "5.1,3.5," + name + "\n4.9,3.0,n\n4.7,3.2,m\n"
		if _, rows, err := read.Opened(t, "a.csv", content, class("2")); len(rows) != 3 || err != nil {
			t.Errorf("%q: %d rows, error %v", content, len(rows), err)
		}
		_, _, err := read.Opened(t, "a.csv", content, class())
		if datasettest.MustBe(t, err, dataset.ErrAmbiguous); err != nil {
			datasettest.MustContain(t, err, "--header yes", "--header no", name)
		}
		if _, rows, err := read.Opened(t, "a.csv", "4.9,3.0,"+name+"\n"+content, class("last")); len(rows) != 4 ||
			err != nil {
			t.Errorf("%q again: %d rows, error %v", name, len(rows), err)
		}
	}
	found, err := inspect.Inspect(datasettest.WriteFile(t, "a.csv",
		"5.1,3.5,y\n4.9,3.0,n\n4.7,3.2,n\n4.1,3.1,m\n4.2,3.3,m\n"), class(), importer.Options{})
	if err != nil || len(found.Readings) < 2 {
		t.Errorf("readings %+v, error %v", found, err)
	}
	for _, content := range []string{
		"400,500,label_a,label_b\n.1,.2,.5,.5\n.3,.2,.5,.5\n", "0,1,2,target\n.1,.2,.3,cat\n.4,.2,.6,dog\n",
		",0,1,target\na,.1,.2,cat\nb,.3,.4,dog\n",
		"400,500,target\n.1,.2,1\n.3,.4,0\n", "1,target\ncat,3\ndog,4\n",
	} {
		o := read.OpenOptions{}
		if strings.Contains(content, "target") {
			o = class()
		}
		if strings.Contains(content, "1,target\ncat") {
			o.CSV.Categories = []string{"0"}
		}
		if _, rows, err := read.Opened(t, "a.csv", content, o); len(rows) != 2 || err != nil {
			t.Errorf("%q: %d rows, error %v", content, len(rows), err)
		}
	}
}

// inspect lists the columns of a file whose numbers have several marks, and only advice that works.
func TestNumbersWithSeveralMarks(t *testing.T) {
	const none, thousands = "x,z,label_a,label_b\n\"1,5\",0.5,0.5,0.5\n7.25,2.5,0.25,0.75\n",
		"a,b,label_a,label_b\n\"1,234\",2,0.5,0.5\n\"2,500\",3,0.25,0.75\n"
	_, _, err := read.Imported(t, "n.csv", none, read.OpenOptions{}, importer.Checks{})
	datasettest.MustContain(t, err,
		`"1,5" is not a number; --decimal , reads 1.5, but then "0.5" (line 2, column 1) is not a number: write all numbers of the file with the same separators`)
	f, err := inspect.Inspect(datasettest.WriteFile(t, "n.csv", none), read.OpenOptions{}, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Columns) != 4 || f.Rows != 2 || !strings.Contains(f.Refused, "write all numbers of the file with the same "+
		"separators") || len(f.Readings) == 0 {
		t.Errorf("%+v", f)
	}
	for _, r := range f.Readings {
		if r.Refused == "" {
			t.Errorf("can be read: %+v", r)
		}
	}
	_, _, err = read.Imported(t, "t.csv", thousands, read.OpenOptions{}, importer.Checks{})
	datasettest.MustContain(t, err, `"1,234" is not a number; --thousands , reads 1234`)
	if strings.Contains(err.Error(), "--decimal") {
		t.Errorf("%v", err)
	}
	if _, _, err := read.Imported(t, "t.csv", thousands, read.OpenOptions{CSV: read.CSVOptions{Thousands: ','}},
		importer.Checks{}); err != nil {
		t.Errorf("as advised: %v", err)
	}
	f, err = inspect.Inspect(datasettest.WriteFile(t, "t.csv", thousands), read.OpenOptions{}, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, r := range f.Readings {
		if r.Refused == "" {
			n++
			if !strings.Contains(r.What, "--thousands , reads 1234") || strings.Contains(r.What, "--decimal") {
				t.Errorf("%q", r.What)
			}
		}
	}
	if n == 0 || len(f.Columns) != 4 {
		t.Errorf("%+v", f)
	}
	// Without another number either mark may be meant.
	_, _, err = read.Imported(t, "w.csv", "a,class\n\"1,234\",x\n\"2,500\",y\n",
		read.OpenOptions{Labels: read.LabelOptions{Kind: dataset.Class}}, importer.Checks{})
	datasettest.MustBe(t, err, dataset.ErrAmbiguous)
	datasettest.MustContain(t, err, "--decimal , reads 1.234", "--thousands , reads 1234")
}

// TestRowNamesByDefault: a column that is taken for names of rows without a flag is told with the flag that makes it a
// feature; one with numbers that are no index is refused, and both ways of the error read the file.
func TestRowNamesByDefault(t *testing.T) {
	rest := []string{"1,0.1,0.9", "2,0.5,0.5", "3,0.8,0.2"}
	file := func(name string, values ...string) string {
		text := name + ",a,label_p,label_q\n"
		for i, v := range values {
			text += v + "," + rest[i] + "\n"
		}
		return text
	}
	for name, c := range map[string]struct{ file, note string }{
		"index": {file("", "0", "1", "2"), "column 0, which has no name, has the names of the samples; " +
			"--feature-columns lists it if it is a feature"},
		"texts": {file("name", "x", "y", "x"), `column 0, "name"`},
		"own column": {file("row_name", "7", "8", "9"),
			`column 0, "row_name", has the names of the samples; --feature-columns`},
		"other name":   {file("Name", "1.5", "1.5", "2"), ""},
		"measurements": {file("", "400.5", "512.25", "633.1"), "column 0, which has no name, has the names of the samples"},
	} {
		src, err := read.Open(datasettest.WriteFile(t, "x.csv", c.file), read.OpenOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if notes := strings.Join(errtext.Strings(src.Info().Notes), "\n"); !strings.Contains(notes, c.note) ||
			c.note == "" && strings.Contains(notes, "has the names of the samples") {
			t.Errorf("%s: notes %s", name, notes)
		}
	}
	found, err := inspect.Inspect(datasettest.WriteFile(t, "x.csv", file("name", "1", "2", "3")), read.OpenOptions{},
		importer.Options{})
	if err != nil || found.Columns[0].Role != inspect.RoleRowNames {
		t.Errorf("inspected as %+v, %v", found, err)
	}
}

// Only numbers that are read show what a mark means: neither those of a column that is dropped nor those of texts.
func TestMarksOfOtherColumns(t *testing.T) {
	const file = "tags;pop;label_x;label_y\n3,7;2,107;0;1\n1,2;999;1;0\n4,25;1,204;0;1\n"
	for name, o := range map[string]read.OpenOptions{
		"dropped": {Drop: []string{"tags"}}, "category": {CSV: read.CSVOptions{Categories: []string{"tags"}}},
		"names": {CSV: read.CSVOptions{RowNames: "tags"}}, "group": {Beside: read.BesideOptions{Groups: "tags"}},
	} {
		src, err := read.OpenBytes(t, "a.csv", []byte(file), o)
		if err == nil {
			_, err = datasettest.TryCollect(src)
		}
		datasettest.MustBe(t, err, dataset.ErrAmbiguous)
		datasettest.MustContain(t, err, `"2,107" may mean 2107 or 2.107`, "--thousands ,", "--decimal ,")
		f, err := inspect.Inspect(datasettest.WriteFile(t, "a.csv", file), o, importer.Options{})
		if err != nil || len(f.Readings) < 2 {
			t.Errorf("%s: inspect lists %+v, %v", name, f.Readings, err)
		}
	}
	src, err := read.OpenBytes(t, "a.csv", []byte(file), read.OpenOptions{})
	if err == nil {
		_, err = datasettest.TryCollect(src)
	}
	if err != nil { // here 3,7 is a number
		t.Error(err)
	}
}

func FuzzLibsvm(f *testing.F) {
	dir := f.TempDir()
	f.Add("# features: a, b\n# labels: c\n1\t2:1  # Zoë\r\n1 # x\n", "")
	f.Add("sad 2:1\ncalm 1:1\n", "class")
	f.Add("# columns: 9\n3,1 2:1\n", "counts")
	f.Fuzz(func(t *testing.T, content, kind string) {
		path := filepath.Join(dir, "a.libsvm")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		checkReadable(t, path, read.OpenOptions{Labels: read.LabelOptions{Kind: dataset.LabelKind(kind), Sigma: 1, High: 9}})
	})
}
