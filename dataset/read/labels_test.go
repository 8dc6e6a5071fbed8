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
	"github.com/coppice-ldl/coppice/internal/errtext"
)

func OpenFile(t *testing.T, name, content string, o OpenOptions) (dataset.Source, error) {
	t.Helper()
	return Open(datasettest.WriteFile(t, name, content), o)
}

func TestAges(t *testing.T) {
	o := OpenOptions{Labels: LabelOptions{Kind: dataset.Age, Sigma: 2, Low: 0, High: 69}}
	src, err := OpenFile(t, "a.csv", "f,age,g\n1,30,2\n3,0,4\n5,69,6\n7,30.5,8\n", o)
	if err != nil {
		t.Fatal(err)
	}
	info := src.Info()
	if info.Features != 2 || info.Labels != 70 || info.LabelNames[0] != "0" || info.LabelNames[69] != "69" {
		t.Fatalf("%+v", info)
	}
	for i, r := range datasettest.Collect(t, src) {
		age, sum := []float64{30, 0, 69, 30.5}[i], 0.0
		want := make([]float64, 70)
		for k := range want {
			want[k] = math.Exp(-(float64(k) - age) * (float64(k) - age) / 8)
			sum += want[k]
		}
		for k := range want {
			if math.Abs(r.Labels[k]-want[k]/sum) > 1e-15 {
				t.Fatalf("age %v, label %d: %v, want %v", age, k, r.Labels[k], want[k]/sum)
			}
		}
	}
}

func TestAgeWithSmallSigma(t *testing.T) {
	o := OpenOptions{Labels: LabelOptions{Kind: dataset.Age, Sigma: 0.001, Low: 10, High: 12}}
	src, err := OpenFile(t, "a.csv", "f,age\n1,11.5\n1,10.4\n", o)
	if err != nil {
		t.Fatal(err)
	}
	rows := datasettest.Collect(t, src)
	if got := rows[0].Labels; !slices.Equal(got, []float64{0, 0.5, 0.5}) {
		t.Errorf("%v", got)
	}
	if got := rows[1].Labels; !slices.Equal(got, []float64{1, 0, 0}) {
		t.Errorf("%v", got)
	}
}

// Where the age is the exact number, the last one of the scale has all ages up to the next.
func TestExactAges(t *testing.T) {
	o := OpenOptions{Labels: LabelOptions{Kind: dataset.Age, Sigma: 2, Low: 0, High: 69},
		Beside: BesideOptions{Values: "age"}}
	src, err := OpenFile(t, "a.csv", "f,age\n1,69.5\n", o)
	if err != nil {
		t.Fatal(err)
	}
	r := datasettest.Collect(t, src)[0]
	if ratio, want := r.Labels[68]/r.Labels[69], math.Exp((0.25-2.25)/8); r.Value != 69.5 || math.Abs(ratio-want) > 1e-12 {
		t.Errorf("value %v, degree of 68 over that of 69 %v, want %v", r.Value, ratio, want)
	}
	o.Labels.Sigma = 0.001
	if src, err = OpenFile(t, "a.csv", "f,age\n1,69.9\n", o); err != nil {
		t.Fatal(err)
	}
	if got := datasettest.Collect(t, src)[0].Labels; got[69] != 1 {
		t.Errorf("%v", got[66:])
	}
	for _, age := range []string{"70", "-0.5"} {
		src, err := OpenFile(t, "a.csv", "f,age\n1,"+age+"\n", o)
		if err == nil {
			err = src.Scan(func(*dataset.Row) error { return nil })
		}
		if err == nil || !strings.Contains(err.Error(), age+" is outside the range 0 to 69") {
			t.Errorf("age %s: %v", age, err)
		}
	}
}

func TestAgeErrors(t *testing.T) {
	good := LabelOptions{Kind: dataset.Age, Sigma: 2, Low: 0, High: 69}
	for content, says := range map[string]string{
		"f,age\n1,5\n2,70\n":  "row 1 (counted from 0): the number 70 is outside the range 0 to 69",
		"f,age\n1,5\n2,NaN\n": "row 1",
		"f,age\n1,5\n2,old\n": `row 1, column 1 "age" (counted from 0; line 3): "old" is not a number`,
	} {
		src, err := OpenFile(t, "a.csv", content, OpenOptions{Labels: good})
		if err == nil {
			_, err = datasettest.TryCollect(src)
		}
		datasettest.MustContain(t, err, says, "a.csv")
	}
	for _, o := range []LabelOptions{
		{Kind: dataset.Age, High: 69}, {Kind: dataset.Age, Sigma: math.NaN(), High: 69}, {Kind: dataset.Age, Sigma: 2},
		{Kind: dataset.Age, Sigma: 2, Low: 5, High: 5}, {Kind: dataset.Age, Sigma: 2, High: 1 << 30},
	} {
		if _, err := OpenFile(t, "a.csv", "f,age\n1,5\n", OpenOptions{Labels: o}); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
	_, err := OpenFile(t, "a.csv", "f,age\n1,5\n",
		OpenOptions{Labels: LabelOptions{Kind: dataset.Age, Sigma: 2, Low: 8388600, High: 8388700}})
	datasettest.MustContain(t, err, "range 8388600:8388700", "and all numbers from -8388608 to 8388607")
}

func TestClasses(t *testing.T) {
	for content, want := range map[string]string{
		"f,class\n1,sad\n2,calm\n3,sad\n": "[calm sad] [0 1] [1 0] [0 1]",
		"f,class\n1,10\n2,9\n3,10\n":      "[9 10] [0 1] [1 0] [0 1]",
		"10,Target\n9,1\n10,2\n":          "[1 2] [1 0] [0 1]",
		"Label,f\n10,1\n9,2\n10,3\n":      "[9 10] [0 1] [1 0] [0 1]",
		"f,class\n1,10\n2,9\n3,x\n":       "[10 9 x] [1 0 0] [0 1 0] [0 0 1]",
		"f,label_c\n1,b\n2,a\n3,b\n":      "[a b] [0 1] [1 0] [0 1]",
	} {
		src, err := OpenFile(t, "a.csv", content, OpenOptions{Labels: LabelOptions{Kind: dataset.Class}})
		if err != nil {
			t.Errorf("%q: %v", content, err)
			continue
		}
		got := fmt.Sprint(src.Info().LabelNames)
		for _, r := range datasettest.Collect(t, src) {
			got += fmt.Sprint(" ", r.Labels)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", content, got, want)
		}
	}
}

func TestKnownClasses(t *testing.T) {
	o := OpenOptions{Labels: LabelOptions{Kind: dataset.Class, Classes: []string{"x", "b", "a"}}}
	src, err := OpenFile(t, "a.csv", "f,class\n1,a\n2,b\n", o)
	if err != nil {
		t.Fatal(err)
	}
	if rows := datasettest.Collect(t, src); !slices.Equal(rows[0].Labels, []float64{0, 0, 1}) || src.Info().Labels != 3 {
		t.Errorf("%v", rows)
	}
	src, err = OpenFile(t, "a.csv", "f,class\n1,a\n2,z\n", o)
	if err != nil {
		t.Fatal(err)
	}
	_, err = datasettest.TryCollect(src)
	datasettest.MustContain(t, err, "row 1", `"z"`)
	o.Labels.Classes = []string{"a", "a"}
	_, err = OpenFile(t, "a.csv", "f,class\n1,a\n", o)
	datasettest.MustContain(t, err, "the list of classes has a class twice")
	_, err = OpenFile(t, "a.csv", "f,class\n1,a\n2,\n", OpenOptions{Labels: LabelOptions{Kind: dataset.Class}})
	datasettest.MustContain(t, err, "row 1", "class is empty")
}

func TestCounts(t *testing.T) {
	o := OpenOptions{Labels: LabelOptions{Kind: dataset.Counts}}
	src, err := OpenFile(t, "a.csv", "f,y_good,y_bad\n1,3,1\n2,0,5\n", o)
	if err != nil {
		t.Fatal(err)
	}
	rows := datasettest.Collect(t, src)
	if !slices.Equal(rows[0].Labels, []float64{0.75, 0.25}) || !slices.Equal(rows[1].Labels, []float64{0, 1}) {
		t.Errorf("%v", rows)
	}
	if names := src.Info().LabelNames; !slices.Equal(names, []string{"good", "bad"}) {
		t.Errorf("%v", names)
	}
	for content, says := range map[string]string{
		"f,y_good,y_bad\n1,3,1\n2,0,0\n":  "row 1 (counted from 0): the counts sum to 0",
		"f,y_good,y_bad\n1,3,1\n2,2,-1\n": `row 1, label 1 "bad" (counted from 0): -1 is not a count`,
		"f,y_good,y_bad\n1,NaN,1\n":       `row 0, column 1 "y_good" (counted from 0; line 2): "NaN" is a missing value; --missing drop leaves such samples out`,
	} {
		src, err := OpenFile(t, "a.csv", content, o)
		if err == nil {
			_, err = datasettest.TryCollect(src)
		}
		datasettest.MustContain(t, err, says)
	}
}

func TestParseLabelKind(t *testing.T) {
	for _, word := range []string{"", "distributions", "age", "class", "counts", "bounded"} {
		if _, err := dataset.ParseLabelKind(word); err != nil {
			t.Error(err)
		}
	}
	_, err := dataset.ParseLabelKind("ages")
	datasettest.MustContain(t, err, `"ages"`, "age, class, counts or bounded")
}

func TestParseRange(t *testing.T) {
	if low, high, err := ParseRange("-3:69"); low != -3 || high != 69 || err != nil {
		t.Error(low, high, err)
	}
	for _, s := range strings.Fields("0 : 1: :1 a:b 5:5 6:5 1:2:3") {
		if _, _, err := ParseRange(s); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
}

// TestClassHeader: a first line with numbers and a text above texts is a row, unless a flag says that it is a header.
func TestClassHeader(t *testing.T) {
	content := "4.5,5.5,mood\n"
	for i := range 20 {
		content += fmt.Sprintf("%d,%d,%s\n", i, i*i, []string{"calm", "sad"}[i%2])
	}
	last := LabelOptions{Kind: dataset.Class, Columns: []string{"last"}}
	for header, classes := range map[dataset.Header]int{dataset.HeaderYes: 2, dataset.HeaderNo: 3, dataset.HeaderAuto: 3} {
		src, err := OpenFile(t, "a.csv", content, OpenOptions{CSV: CSVOptions{Header: header}, Labels: last})
		if err != nil || src.Info().Labels != classes {
			t.Errorf("header %s: %v, error %v", header, src, err)
		}
	}
}

// Numbers of a scale have no exponent in errors.
func TestNumbersOfScaleInFull(t *testing.T) {
	age := OpenOptions{Labels: LabelOptions{Kind: dataset.Age, Sigma: 1, Low: 999_998, High: 1_000_003}}
	datasettest.MustContain(t, Built(t, "a.csv", "a,age\n1,1000000\n2,1000004\n", age, importer.Checks{}),
		"the number 1000004 is outside the range 999998 to 1000003")
	datasettest.MustContain(t, Built(t, "a.csv", "a,label_x,label_y\n1,-2000000,3\n",
		OpenOptions{Labels: LabelOptions{Kind: dataset.Counts}}, importer.Checks{}), "-2000000 is not a count")
	age.Beside.Intervals = []string{"from", "to"}
	datasettest.MustContain(t, Built(t, "a.csv", "a,age,from,to\n1,1000000,2000000,1000000\n", age, importer.Checks{}),
		"the interval begins at 2000000, which is above its end, 1000000")
}

// TestAgesWithFractions: a note counts the rows whose ages are rounded for the error, each scan anew.
func TestAgesWithFractions(t *testing.T) {
	path := datasettest.WriteFile(t, "x.csv", "a,age\n1,25.5\n2,26.5\n3,30\n")
	o := OpenOptions{Labels: LabelOptions{Kind: dataset.Age, Sigma: 2, Low: 0, High: 69}}
	for _, c := range []struct{ values, want string }{{"", "ages of 2 samples are not whole numbers"}, {"age", ""}} {
		o.Beside.Values = c.values
		src, err := Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		if _, _, err := importer.Build(src, importer.Options{Note: func(s errtext.Text) {
			said = append(said, s.String())
		}}); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(said, "\n"); !strings.Contains(text, c.want) || c.want == "" &&
			strings.Contains(text, "whole") || c.want != "" && !strings.Contains(text, "--values age") {
			t.Errorf("values %q: %s", c.values, text)
		}
	}
}
