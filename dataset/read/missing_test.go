package read

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/matfile/mattest"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// holed are files with the rows 1 2, ? 3, 4 ?, 5 6 and the label 1.
func holed() map[string][]byte {
	f := &mattest.File{}
	f.AddDoubles("features", 4, 2, 1, math.NaN(), 4, 5, 2, 3, math.NaN(), 6)
	f.AddDoubles("labels", 4, 1, 1, 1, 1, 1)
	return map[string][]byte{
		"a.csv":    []byte("a,b,label_c\n1,2,1\n,3,1\n4,NA,1\n5,6,1\n"),
		"a.libsvm": []byte("1 1:1 2:2\n1 1:nan 2:3\n1 1:4 2:nan\n1 1:5 2:6\n"),
		"a.mat":    f.Bytes(),
	}
}

// TestMissing: each kind of file refuses missing values, leaves their rows out, or
// fills them.
func TestMissing(t *testing.T) {
	for name, b := range holed() {
		for policy, want := range map[string]string{"drop": "0[1 2] 3[5 6]", "0": "0[1 2] 1[0 3] 2[4 0] 3[5 6]",
			"-7.5": "0[1 2] 1[-7.5 3] 2[4 -7.5] 3[5 6]"} {
			missing, err := dataset.ParseMissing(policy)
			if err != nil {
				t.Fatal(err)
			}
			src, err := OpenBytes(t, name, b, OpenOptions{Missing: missing})
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := keptRows(t, src); got != want {
				t.Errorf("%s, %s: %s, want %s", name, policy, got, want)
			}
			if rows := src.Info().Rows; missing.Drop && rows >= 0 {
				t.Errorf("%s: %d rows are said to be known before they are read", name, rows)
			}
		}
		src, err := OpenBytes(t, name, b, OpenOptions{})
		if err == nil {
			_, _, err = importer.Build(src, importer.Options{})
		}
		datasettest.MustContain(t, err, name, "row 1", "--missing drop")
	}
}

// keptRows writes the rows that are read, with their numbers, and lists the others.
func keptRows(t *testing.T, src dataset.Source) (kept string, out []int) {
	t.Helper()
	err := importer.Blocks(src, 3, importer.Options{LeftOut: func(row int) {
		out = append(out, row)
	}}, func(r *dataset.Rows, _ []string) error {
		for i := range r.N {
			x := make([]float32, r.Features)
			if r.Sparse {
				columns, values := r.NonZeros(i)
				for j, c := range columns {
					x[c] = values[j]
				}
			} else {
				copy(x, r.Dense(i))
			}
			kept += fmt.Sprintf(" %d%v", r.Row[i], x)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return kept[min(1, len(kept)):], out
}

func TestMissingLabels(t *testing.T) {
	const content = "a,label_c,label_d\n1,1,0\n2,,1\n"
	src, err := OpenFile(t, "a.csv", content, OpenOptions{Missing: dataset.Missing{Drop: true}})
	if err != nil {
		t.Fatal(err)
	}
	if kept, out := keptRows(t, src); kept != "0[1]" || !slices.Equal(out, []int{1}) {
		t.Errorf("%s without %v", kept, out)
	}
	src, err = OpenFile(t, "a.csv", content, OpenOptions{Missing: dataset.Missing{Fill: true}})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = importer.Build(src, importer.Options{})
	datasettest.MustContain(t, err, `row 1, label 0 "c"`,
		"and missing labels cannot be filled; --missing drop leaves such samples out")
	for kind, o := range map[string]LabelOptions{
		"a,class\n1,sad\n2,\n3,calm\n":      {Kind: dataset.Class},
		"a,age\n1,5\n2,?\n3,6\n":            {Kind: dataset.Age, Sigma: 1, High: 9},
		"a,y_c,y_d\n1,5,1\n2,NA,1\n3,6,1\n": {Kind: dataset.Counts},
	} {
		src, err := OpenFile(t, "a.csv", kind, OpenOptions{Labels: o, Missing: dataset.Missing{Drop: true}})
		if err != nil {
			t.Fatal(err)
		}
		if kept, out := keptRows(t, src); kept != "0[1] 2[3]" || !slices.Equal(out, []int{1}) {
			t.Errorf("%q: %s without %v", kind, kept, out)
		}
	}
}

// classFiles are the classes x, y and two missing ones, with the features 1 to 4.
func classFiles(t *testing.T, first, second string) map[string][]byte {
	t.Helper()
	f := &mattest.File{}
	f.AddDoubles("features", 4, 1, 1, 2, 3, 4)
	f.AddDoubles("class", 4, 1, 7, math.NaN(), math.NaN(), 8)
	var b bytes.Buffer
	a := npy.NewArchive(&b)
	x, err := a.Floats("features", 4, 1)
	if err == nil {
		err = x.Write([]float32{1, 2, 3, 4})
	}
	if err == nil {
		err = x.Flush()
	}
	if err == nil {
		err = a.List("labels", []string{"x", first, second, "y"})
	}
	if err == nil {
		err = a.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		"a.csv": fmt.Appendf(nil, "a,class\n1,x\n2,%s\n3,%s\n4,y\n", first, second),
		"a.svm": fmt.Appendf(nil, "x 1:1\n%s 1:2\n%s 1:3\ny 1:4\n", first, second),
		"a.npz": b.Bytes(), "a.mat": f.Bytes(),
	}
}

// TestMissingClasses: what stands for a missing value is no class.
func TestMissingClasses(t *testing.T) {
	for i, first := range numbers.MissingWords {
		second := strings.ToUpper(numbers.MissingWords[(i+1)%len(numbers.MissingWords)])
		for name, b := range classFiles(t, first, second) {
			if name == "a.svm" && strings.Contains(first+second, "#") {
				continue // a comment
			}
			for _, classes := range [][]string{nil, {"x", "y", "7", "8"}} { // of no model, and of one
				o := OpenOptions{Labels: LabelOptions{Kind: dataset.Class, Classes: classes}}
				for _, o.Missing = range []dataset.Missing{{}, {Fill: true}} {
					src, err := OpenBytes(t, name, b, o)
					if err == nil {
						_, _, err = importer.Build(src, importer.Options{})
					}
					datasettest.MustContain(t, err, name, "row 1, label 0", "missing", "--missing drop leaves such samples out")
				}
				o.Missing = dataset.Missing{Drop: true}
				src, err := OpenBytes(t, name, b, o)
				if err != nil {
					t.Fatal(err)
				}
				kept, out := keptRows(t, src)
				if labels := src.Info().Labels; kept != "0[1] 3[4]" || !slices.Equal(out, []int{1, 2}) || classes == nil &&
					labels != 2 {
					t.Errorf("%s, %s and %s: %d classes, %s without %v", name, first, second, labels, kept, out)
				}
			}
		}
	}
}

// TestLeftOutImport: rows that are left out are not in a dataset, which knows which
// they were; names and folds of the file stay with their rows.
func TestLeftOutImport(t *testing.T) {
	names := datasettest.WriteFile(t, "n.json", `{"rows": ["p", "q", "r", "s"]}`)
	src, err := OpenBytes(t, "a.csv", holed()["a.csv"], OpenOptions{Missing: dataset.Missing{Drop: true},
		NamesFile: names})
	if err != nil {
		t.Fatal(err)
	}
	var warned []string
	m, shards, err := importer.Build(src, importer.Options{Warn: func(s errtext.Text) {
		warned = append(warned, s.String())
	}})
	if err != nil {
		t.Fatal(err)
	}
	if m.Rows != 2 || m.FileRows() != 4 || !slices.Equal(m.LeftOutRows(), []int{1, 2}) ||
		!slices.Equal(m.FileRow(), []int{0, 3}) || m.Missing != "drop" {
		t.Errorf("%+v", m)
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
	for i, s := range shards {
		if err := m.CheckShard(i, s); err != nil {
			t.Error(err)
		}
	}
	if len(warned) == 0 || !bytes.Contains([]byte(warned[0]), []byte("2 of 4 samples")) {
		t.Errorf("%q", warned)
	}
	list, err := SplitFor(m, datasettest.WriteFile(t, "f.csv", "row,fold\n0,1\n1,0\n2,1\n3,0\n"))
	if err != nil || !slices.Equal(list.Assigned, []uint16{1, 0}) || list.Folds != 2 || list.Overlap {
		t.Fatalf("%+v, error %v", list, err)
	}
	list, err = SplitFor(m, datasettest.WriteFile(t, "f.csv", "row,a,b\n0,0,1\n1,0,1\n2,1,1\n3,1,0\n"))
	if err != nil || !slices.Equal(list.Assigned, []uint16{2, 1}) || !list.Overlap {
		t.Errorf("%+v, error %v", list, err)
	}
	_, err = SplitFor(m, datasettest.WriteFile(t, "f.csv", "row,a\n0,1\n1,0\n2,0\n3,1\n"))
	datasettest.MustContain(t, err, "f.csv", "left out", "split 0 tests every sample")
	_, err = SplitFor(m, datasettest.WriteFile(t, "f.csv", "row,fold\n0,1\n1,0\n2,0\n3,1\n"))
	datasettest.MustContain(t, err, "f.csv", "fold 0")
	_, err = SplitFor(m, datasettest.WriteFile(t, "f.csv", "row,fold\n0,1\n1,0\n"))
	datasettest.MustContain(t, err, "f.csv")

	dir := t.TempDir()
	imported, err := importer.Import(src, dir, importer.Options{})
	if err != nil || imported.Digest() != m.Digest() {
		t.Errorf("imported as %v, built as %v, error %v", imported, m, err)
	}
}

func TestAllLeftOut(t *testing.T) {
	src, err := OpenFile(t, "a.csv", "a,label_c\n,1\n,1\n", OpenOptions{Missing: dataset.Missing{Drop: true}})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = importer.Build(src, importer.Options{})
	datasettest.MustContain(t, err, "a.csv", "all 2 samples")
}

// TestMissingKept: with mean and median the shards of each kind of file keep missing features, as the same
// NaN, and a later file has the model's values there.
func TestMissingKept(t *testing.T) {
	digests := map[string]bool{}
	for name, b := range holed() {
		src, err := OpenBytes(t, name, b, OpenOptions{Missing: dataset.Missing{By: dataset.FillMean}})
		if err != nil {
			t.Fatal(err)
		}
		m, shards, err := importer.Build(src, importer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
		kept := 0
		for _, r := range shards {
			for _, x := range r.X {
				if math.Float32bits(x) == 0x7fc00000 {
					kept++
				}
			}
		}
		if digests[m.Digest()] = true; kept != 2 || m.Fill() != dataset.FillMean || m.Rows != 4 {
			t.Errorf("%s: %d missing features, filled by %q, %d rows", name, kept, m.Fill(), m.Rows)
		}
		s := &dataset.Schema{Features: 2, Labels: 1, FeatureNames: m.FeatureNames, LabelNames: m.LabelNames,
			LabelColumns: m.LabelColumns, Reading: m.Reading, Fill: []float64{10, 20}}
		path := datasettest.WriteFile(t, name, string(b))
		src, _, err = OpenFor(path, OpenOptions{NoLabels: true, Missing: dataset.Missing{By: dataset.FillMean}}, s)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := keptRows(t, src); got != "0[1 2] 1[10 3] 2[4 20] 3[5 6]" {
			t.Errorf("%s: %s", name, got)
		}
		_, _, err = OpenFor(path, OpenOptions{NoLabels: true, Missing: dataset.Missing{By: dataset.FillMedian}}, s)
		datasettest.MustContain(t, err, "--missing median: the model has the mean of its training samples but not the "+
			"median: give --missing mean")
		src, _, err = OpenFor(path, OpenOptions{NoLabels: true}, s)
		datasettest.MustContain(t, errors.Join(err, scanned(src)),
			"--missing drop leaves such samples out, --missing 0 replaces missing features by 0 (or another number), "+
				"--missing mean by the mean of the training samples")
		s.Fill = nil
		src, _, err = OpenFor(path, OpenOptions{NoLabels: true}, s)
		if err = errors.Join(err, scanned(src)); strings.Contains(fmt.Sprint(err), "--missing mean") {
			t.Errorf("%s: %v", name, err)
		}
		datasettest.MustContain(t, err, "--missing 0 replaces missing features by 0 (or another number); the model does "+
			"not have the mean or median of its training samples")
		_, _, err = OpenFor(path, OpenOptions{NoLabels: true, Missing: dataset.Missing{By: dataset.FillMean}}, s)
		datasettest.MustContain(t, err, "--missing mean: the model does not have the mean of its training samples")
		other := *m
		other.Missing = dataset.FillMedian
		datasettest.MustContain(t, m.Same(&other), "its missing values are filled with median",
			"in the new dataset with mean")
	}
	if len(digests) != 1 {
		t.Errorf("digests %v", digests)
	}
	src, err := OpenFile(t, "a.csv", "a,label_b,label_c\n1,1,0\n2,,1\n",
		OpenOptions{Missing: dataset.Missing{By: dataset.FillMedian}})
	if err == nil {
		_, _, err = importer.Build(src, importer.Options{})
	}
	datasettest.MustContain(t, err, "row 1", "and missing labels cannot be filled")
	src, err = OpenFile(t, "a.csv", "a,label_b\n1,1\n1e39,1\n",
		OpenOptions{Missing: dataset.Missing{By: dataset.FillMedian}})
	if err == nil {
		_, _, err = importer.Build(src, importer.Options{})
	}
	datasettest.MustContain(t, err, "row 1", "1e+39 is too large for a float32")
}

// scanned returns the error of reading and checking all rows as a prediction does; nil: there is none.
func scanned(src dataset.Source) error {
	if src == nil {
		return nil
	}
	return importer.Blocks(src, 2, importer.Options{}, func(*dataset.Rows, []string) error { return nil })
}

// TestMovedColumnsAreFilled: values go by the model's order, whatever the file's.
func TestMovedColumnsAreFilled(t *testing.T) {
	s := modelOf(t, "a,b,c,label_d\n1,2,u,1\n,,v,1\n", OpenOptions{Missing: dataset.Missing{By: dataset.FillMean},
		CSV: CSVOptions{Categories: []string{"c"}}})
	s.Fill = []float64{10, 20, .25, .75}
	src, _, err := OpenForModel(t, "n.csv", "c,b,a\n?,NA,1\nu,3,\n",
		OpenOptions{NoLabels: true, Missing: dataset.Missing{By: dataset.FillMean}}, s)
	if err != nil {
		t.Fatal(err)
	}
	if rows := datasettest.Collect(t, src); fmt.Sprint(rows[0].Values, rows[1].Values) != "[1 20 0.25 0.75] [10 3 1 0]" {
		t.Errorf("%v", rows)
	}
}

// With marks between thousands a class, a group and a level is a number as any other.
func TestThousandsInClassesAndGroups(t *testing.T) {
	names, rows, err := ClassesOf(t, "a.csv", Column("class", `"1,200"`, "1200", "7"),
		OpenOptions{CSV: CSVOptions{Thousands: ','}})
	if err != nil || !slices.Equal(names, []string{"7", "1200"}) || !slices.Equal(rows, []int{1, 1, 0}) {
		t.Errorf("%q %v, %v", names, rows, err)
	}
	src, err := OpenBytes(t, "a.csv", Grouped(`"1,200"`, "1200", "7"), OpenOptions{CSV: CSVOptions{Thousands: ','},
		Beside: BesideOptions{Groups: "person"}})
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := importer.Build(src, importer.Options{})
	if err != nil || !slices.Equal(m.Groups.Names, []string{"7", "1200"}) {
		t.Errorf("%+v, %v", m, err)
	}
}
