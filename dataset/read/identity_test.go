package read

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/matfile/mattest"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// TestEqualNumbersAreOneClass: pandas writes whole numbers as 1.0 once a value is missing.
func TestEqualNumbersAreOneClass(t *testing.T) {
	want := []int{0, 1, 0, 1, 0, 1}
	svm := []byte("0 1:1\n1 1:2\n0.0 1:3\n1.0 1:4\n-0 1:5\n+1 1:6\n")
	text := NpzBytes("features", NpyBytes("<f8", false, "(6, 1)", []float64{1, 2, 3, 4, 5, 6}),
		"class", NpyBytes("|S3", false, "(6,)", []byte("0\x00\x001\x00\x000.01.00\x00\x001e0")))
	for name, b := range map[string][]byte{
		"a.csv": Column("class", "0", "1", "0.0", "1.0", "0", "1"), "a.svm": svm, "a.npz": text,
		"b.npz": NpzBytes("features", NpyBytes("<f8", false, "(6, 1)", []float64{1, 2, 3, 4, 5, 6}), "class",
			NpyBytes("<f4", false, "(6,)", []float32{0, 1, 0, 1, 0, 1})),
	} {
		names, rows, err := ClassesOf(t, name, b, OpenOptions{})
		if err != nil || !slices.Equal(names, []string{"0", "1"}) || !slices.Equal(rows, want) {
			t.Errorf("%s: %q %v, %v", name, names, rows, err)
		}
	}
	src, err := OpenBytes(t, "a.csv", Column("class", "0", "1", "0.0", "1.0", "0", "1"),
		OpenOptions{Labels: LabelOptions{Kind: dataset.Class}})
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(errtext.Strings(src.Info().Notes), "\n")
	if !strings.Contains(notes, "2 classes: 0 (3 samples), 1 (3 samples)") ||
		!strings.Contains(notes, `equal numbers are read as one class, such as "0" and "0.0"`) {
		t.Errorf("notes %q", notes)
	}
	// A decimal comma is one more spelling.
	names, rows, err := ClassesOf(t, "c.csv", []byte("x;class\n1,5;1,0\n2,5;2\n3,5;1\n"), OpenOptions{})
	if err != nil || !slices.Equal(names, []string{"1", "2"}) || !slices.Equal(rows, []int{0, 1, 0}) {
		t.Errorf("decimal comma: %q %v, %v", names, rows, err)
	}
}

// TestTextsStayTexts: as soon as one class is no number, all are texts.
func TestTextsStayTexts(t *testing.T) {
	names, _, err := ClassesOf(t, "a.csv", Column("class", "1.10", "2", "a"), OpenOptions{})
	if err != nil || !slices.Equal(names, []string{"1.10", "2", "a"}) {
		t.Errorf("%q, %v", names, err)
	}
}

// Grouped is a file of one feature, two labels and groups.
func Grouped(groups ...string) []byte {
	b := []byte("x,label_a,label_b,person\n")
	for i, g := range groups {
		b = fmt.Appendf(b, "%d,.5,.5,%s\n", i+1, g)
	}
	return b
}

// GroupsOf builds a file and returns its groups, with those of the rows.
func GroupsOf(t *testing.T, name string, b []byte) (names []string, rows []uint16, err error) {
	t.Helper()
	src, err := OpenBytes(t, name, b, OpenOptions{Beside: BesideOptions{Groups: "person"}})
	if err != nil {
		return nil, nil, err
	}
	m, _, err := importer.Build(src, importer.Options{Groups: func(of []uint16) { rows = slices.Clone(of) }})
	if err != nil {
		return nil, nil, err
	}
	return m.Groups.Names, rows, nil
}

func TestEqualNumbersAreOneGroup(t *testing.T) {
	names, rows, err := GroupsOf(t, "a.csv", Grouped("12", "12.0", "7", "7.0", "12", "7"))
	if err != nil || !slices.Equal(names, []string{"7", "12"}) || !slices.Equal(rows, []uint16{1, 1, 0, 0, 1, 0}) {
		t.Errorf("%q %v, %v", names, rows, err)
	}
}

// large are whole numbers that float64 does not tell apart.
var large = []uint64{9007199254740993, 9007199254740992, 9223372036854775807, 9223372036854775806}

// largeFiles have the numbers of large as classes, and as groups of persons.
func largeFiles(signed bool) map[string][]byte {
	descr, f := "<u8", &mattest.File{}
	if signed {
		descr = "<i8"
	}
	x, half := []float64{1, 2, 3, 4}, []float64{.5, .5, .5, .5}
	f.AddDoubles("features", 4, 1, x...)
	f.AddDoubles("labels", 4, 2, append(half, half...)...)
	f.AddWhole("class", signed, 4, 1, large...)
	f.AddWhole("person", signed, 1, 4, large...)
	csv, svm := "x,label_a,label_b,class,person\n", ""
	for i, v := range large {
		csv += fmt.Sprintf("%d,.5,.5,%d,%d\n", i+1, v, v)
		svm += fmt.Sprintf("%d 1:%d\n", v, i+1)
	}
	return map[string][]byte{
		"a.npz": NpzBytes("features", NpyBytes("<f8", false, "(4, 1)", x), "labels",
			NpyBytes("<f8", false, "(4, 2)", append(half, half...)),
			"class", NpyBytes(descr, false, "(4, 1)", large), "person", NpyBytes(descr, false, "(4,)", large)),
		"a.mat": f.Bytes(), "a.csv": []byte(csv), "a.svm": []byte(svm),
	}
}

// TestLargeIdentities: whole numbers of 64 bits are exact, as classes and as groups.
func TestLargeIdentities(t *testing.T) {
	wantNames := []string{"9007199254740992", "9007199254740993", "9223372036854775806", "9223372036854775807"}
	for _, signed := range []bool{false, true} {
		for name, b := range largeFiles(signed) {
			names, rows, err := ClassesOf(t, name, b,
				OpenOptions{Drop: map[string][]string{"a.csv": {"label_a", "label_b", "person"}}[name]})
			if err != nil || !slices.Equal(names, wantNames) || !slices.Equal(rows, []int{1, 0, 3, 2}) {
				t.Errorf("%s: classes %q %v, %v", name, names, rows, err)
			}
			if name == "a.svm" {
				continue
			}
			groups, of, err := GroupsOf(t, name, b)
			if err != nil || !slices.Equal(groups, wantNames) || !slices.Equal(of, []uint16{1, 0, 3, 2}) {
				t.Errorf("%s: groups %q %v, %v", name, groups, of, err)
			}
		}
	}
	b := NpzBytes("features", NpyBytes("<f8", false, "(2, 1)", []float64{1, 2}), "class",
		NpyBytes("<u8", false, "(2,)", []uint64{math.MaxUint64, math.MaxUint64 - 1}))
	names, _, err := ClassesOf(t, "a.npz", b, OpenOptions{})
	if err != nil || !slices.Equal(names, []string{"18446744073709551614", "18446744073709551615"}) {
		t.Errorf("%q, %v", names, err)
	}
}

// TestOneSpellingForModels: a model knows its classes by their numbers, whatever kind of file has them.
func TestOneSpellingForModels(t *testing.T) {
	codes := []int64{20231105, 20231106, 1234567, 20231105}
	b := NpzBytes("features", NpyBytes("<f8", false, "(4, 1)", []float64{1, 2, 3, 4}), "class",
		NpyBytes("<i8", false, "(4,)", codes))
	names, _, err := ClassesOf(t, "a.npz", b, OpenOptions{})
	if err != nil || !slices.Equal(names, []string{"1234567", "20231105", "20231106"}) {
		t.Fatalf("%q, %v", names, err)
	}
	schema := &dataset.Schema{Features: 1, Labels: 3, LabelNames: names}
	o := OpenOptions{Labels: LabelOptions{Kind: dataset.Class}}
	for _, texts := range [][]string{{"20231105", "1234567"}, {"20231105.0", "1.234567e6"}} {
		src, _, err := OpenForModel(t, "a.csv", string(Column("class", texts...)), o, schema)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := datasettest.TryCollect(src)
		if err != nil || rows[0].Labels[1] != 1 || rows[1].Labels[0] != 1 {
			t.Errorf("%q: %+v, %v", texts, rows, err)
		}
	}
	for text, says := range map[string]string{"7": `the class "7" is unknown`, "a": `the class "a" is unknown`} {
		src, _, err := OpenForModel(t, "a.csv", string(Column("class", "20231105", text)), o, schema)
		if err == nil {
			_, err = datasettest.TryCollect(src)
		}
		datasettest.MustContain(t, err, says)
	}
	src, _, err := OpenForModel(t, "a.csv", string(Column("class", "1234567", "01234567")), o, schema)
	if err == nil {
		_, err = datasettest.TryCollect(src)
	}
	datasettest.MustBe(t, err, dataset.ErrAmbiguous)
	// Zeros in front are a part of the name as long as the column agrees on them.
	names, _, err = ClassesOf(t, "a.csv", Column("class", "007", "010", "007"), OpenOptions{})
	if err != nil || !slices.Equal(names, []string{"007", "010"}) {
		t.Errorf("%q, %v", names, err)
	}
	known := &dataset.Schema{Features: 1, Labels: 2, LabelNames: names}
	src, _, err = OpenForModel(t, "a.csv", string(Column("class", "007", "010.0")), o, known)
	if err != nil {
		t.Fatal(err)
	}
	if rows, err := datasettest.TryCollect(src); err != nil || rows[0].Labels[0] != 1 || rows[1].Labels[1] != 1 {
		t.Errorf("%+v, %v", rows, err)
	}
	// Other zeros are refused as within one file.
	for _, c := range []struct{ text, name string }{{"7", "007"}, {"10", "010"}, {"0007", "007"}, {"7.0", "007"}} {
		src, _, err = OpenForModel(t, "a.csv", string(Column("class", c.text)), o, known)
		if err == nil {
			_, err = datasettest.TryCollect(src)
		}
		datasettest.MustBe(t, err, dataset.ErrAmbiguous)
		datasettest.MustContain(t, err, fmt.Sprintf("%q, and the known class %q, are one class as numbers", c.text, c.name),
			"write "+c.name+" for one class", "row 0")
	}
}

// Names of labels in a file of classes that are numbers are their names if the numbers count them, for training and for
// a model with these names; otherwise a note says that they are not used.
func TestNamesOfCountedClasses(t *testing.T) {
	names := []string{"cat", "dog", "elk"}
	files := func(classes ...int) map[string][]byte {
		x, f, svm := make([]float64, len(classes)), &mattest.File{}, "# labels: cat, dog, elk\n"
		whole, doubles := make([]int64, len(classes)), make([]float64, len(classes))
		for i, class := range classes {
			x[i], whole[i], doubles[i] = float64(i), int64(class), float64(class)
			svm += fmt.Sprintf("%d 1:%d\n", class, i+1)
		}
		f.AddDoubles("features", int32(len(classes)), 1, x...)
		f.AddDoubles("labels", int32(len(classes)), 1, doubles...)
		f.AddCells("label_names", names...)
		shape := fmt.Sprintf("(%d,)", len(classes))
		return map[string][]byte{
			"a.npz": NpzBytes("features", NpyBytes("<f8", false, shape, x), "labels", NpyBytes("<i8", false, shape, whole),
				"label_names", NpyBytes("|S3", false, "(3,)", []byte("catdogelk"))),
			"a.mat": f.Bytes(), "a.svm": []byte(svm),
		}
	}
	for _, c := range []struct {
		classes []int
		model   []string
		want    []string
		rows    []int
		note    string
	}{
		{[]int{2, 0, 1, 0}, nil, names, []int{2, 0, 1, 0},
			`the classes are counted from 0 and have the label names of the file: 3 ("cat", "dog", "elk")`},
		{[]int{2, 3, 1, 3}, nil, names, []int{1, 2, 0, 2}, "counted from 1"},
		{[]int{2, 0, 0, 2}, nil, []string{"cat", "elk"}, []int{1, 0, 0, 1}, "counted from 0"},
		{[]int{1, 3, 3, 1}, nil, []string{"cat", "elk"}, []int{0, 1, 1, 0}, "counted from 1"},
		{[]int{1, 2, 2, 1}, nil, []string{"1", "2"}, []int{0, 1, 1, 0},
			`the label names in the file are not used: they are 3 ("cat", "dog", "elk"), but the classes are 2 ("1", "2")`},
		{[]int{0, 3, 1, 2}, nil, []string{"0", "1", "2", "3"}, []int{0, 3, 1, 2}, "not used"},
		// matched with the model by name
		{[]int{0, 2, 0, 2}, []string{"elk", "cat", "dog"}, names, []int{0, 2, 0, 2}, "counted from 0"},
		{[]int{0, 2, 0, 2}, []string{"0", "1", "2"}, []string{"0", "1", "2"}, []int{0, 2, 0, 2}, ""},
	} {
		for name, b := range files(c.classes...) {
			var o OpenOptions
			o.Labels.Classes = c.model
			got, rows, err := ClassesOf(t, name, b, o)
			if err != nil || !slices.Equal(got, c.want) || !slices.Equal(rows, c.rows) {
				t.Errorf("%s %v of %q: %q %v, %v; want %q %v", name, c.classes, c.model, got, rows, err, c.want, c.rows)
			}
			o.Labels.Kind = dataset.Class
			src, err := OpenBytes(t, name, b, o)
			if err != nil {
				t.Fatal(err)
			}
			notes := strings.Join(errtext.Strings(src.Info().Notes), "\n")
			if c.note != "" && !strings.Contains(notes, c.note) || c.note == "" && strings.Contains(notes, "names of labels") {
				t.Errorf("%s %v: notes %q, want %q", name, c.classes, notes, c.note)
			}
		}
	}
}

// ClassesOf reads the classes of a file, and its rows as numbers of classes.
func ClassesOf(t *testing.T, name string, b []byte, o OpenOptions) (names []string, rows []int, err error) {
	t.Helper()
	o.Labels.Kind = dataset.Class
	src, err := OpenBytes(t, name, b, o)
	if err != nil {
		return nil, nil, err
	}
	all, err := datasettest.TryCollect(src)
	for _, r := range all {
		rows = append(rows, slices.Index(r.Labels, 1))
	}
	return src.Info().LabelNames, rows, err
}

// Column is a file of one feature and a column of texts.
func Column(name string, texts ...string) []byte {
	b := []byte("x," + name + "\n")
	for i, text := range texts {
		b = fmt.Appendf(b, "%d,%s\n", i+1, text)
	}
	return b
}
