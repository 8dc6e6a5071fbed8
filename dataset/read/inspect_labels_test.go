package read_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/inspect"
	"github.com/coppice-ldl/coppice/dataset/matfile/mattest"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// Advice about columns of a file works if it is followed: a column without a value, and a text whose name begins as
// labels do.
func TestAdviceOfColumns(t *testing.T) {
	for _, c := range []struct {
		content string
		o       read.OpenOptions
		checks  importer.Checks
		says    string
		drop    string // empty: nothing to try
	}{
		{"a,b,empty,label_x,label_y\n1,2,,.5,.5\n2,3,NA,.25,.75\n", read.OpenOptions{}, importer.Checks{},
			"the column has no values; --drop empty leaves it out", "empty"},
		{"a,label_x,label_y,label_source\n1,.5,.5,web\n2,.25,.75,paper\n", read.OpenOptions{}, importer.Checks{},
			"--drop label_source leaves the column out if it is not a label, --label-columns lists the labels", "label_source"},
	} {
		built := func(o read.OpenOptions, checks importer.Checks) error {
			src, err := read.OpenFile(t, "a.csv", c.content, o)
			if err == nil {
				_, _, err = importer.Build(src, importer.Options{Checks: checks})
			}
			return err
		}
		err := built(c.o, c.checks)
		datasettest.MustContain(t, err, c.says)
		if err != nil && (strings.Contains(err.Error(), "--normalize") || strings.Contains(err.Error(), "--labels class") ||
			strings.Contains(err.Error(), "--missing")) {
			t.Errorf("wrong advice: %v", err)
		}
		if c.drop == "" {
			continue
		}
		c.o.Drop = []string{c.drop}
		if err := built(c.o, c.checks); err != nil {
			t.Errorf("--drop %s: %v", c.drop, err)
		}
	}
}

// TestRoundedFeatures: values that differ and are one float32 are counted, and the advice helps.
func TestRoundedFeatures(t *testing.T) {
	file := func(value func(i int) string) string {
		var b strings.Builder
		b.WriteString("a,epoch,label_x,label_y\n")
		for i := range 60 {
			fmt.Fprintf(&b, "%d,%s,.5,.5\n", i*7%11, value(i))
		}
		return b.String()
	}
	for _, c := range []struct {
		what  string
		value func(i int) string
		says  string // "": nothing
	}{
		{"Unix times", func(i int) string {
			return fmt.Sprint(1700000000 + i*17%60)
		},
			`60 different values of feature "epoch", from 1700000000 to 1700000059, are rounded to 1 number in float32; subtract an offset, such as 1700000000, from the values`},
		{"and a 0", func(i int) string {
			return fmt.Sprint((1700000000 + i) * min(i, 1))
		}, `60 different values of feature "epoch", from 0 to 1700000059, are rounded to 2 numbers in float32`},
		{"Julian days", func(i int) string {
			return fmt.Sprintf("2459000.%02d", i)
		},
			`60 different values of feature "epoch", from 2459000 to 2459000.59, are rounded to 3 numbers in float32; subtract an offset, such as 2459000`},
		{"64-bit ids", func(i int) string {
			return fmt.Sprint(uint64(1)<<62 + uint64(i)*1e6)
		}, "are rounded to 1 number in float32; subtract an offset"},
		{"two numbers", func(i int) string { return fmt.Sprint(16777216 + i%2) }, "2 different values"},
		{"small numbers", func(i int) string { return fmt.Sprintf("%v", float64(i)/7) }, ""},
		{"large, far apart", func(i int) string { return fmt.Sprint(1e9 + float64(i)*1e7) }, ""},
		{"rounding", func(i int) string { return []string{"0.3", "0.30000000000000004"}[i%2] }, ""},
		{"exact", func(i int) string { return fmt.Sprint(16777216 + 2*i) }, ""},
		{"constant", func(i int) string { return "1700000000" }, ""},
		{"p-values of a screen", func(i int) string {
			return fmt.Sprintf("%de-%d", i+1, 50+i%7)
		},
			`59 different values of feature "epoch", from 7e-56 to 5.7e-49, are rounded to 1 number in float32; write the feature in another unit`},
		{"one of them", func(i int) string {
			return []string{"0.5", "-1e-50", "0"}[i%3]
		}, `3 different values of feature "epoch", from -1e-50 to 0.5, are rounded to 2 numbers in float32`},
		{"among larger ones", func(i int) string {
			return fmt.Sprintf("1e-%d", i+1)
		}, `values of feature "epoch", from 1e-60 to 0.1, are rounded to`},
		{"almost 0", func(i int) string {
			return fmt.Sprintf("1.%de-44", i)
		}, `different values of feature "epoch", from 1e-44 to 1.9e-44, are rounded to`},
		{"near 0, told apart", func(i int) string { return fmt.Sprintf("%de-40", i) }, ""},
	} {
		content := file(c.value)
		_, said, err := read.Imported(t, "a.csv", content, read.OpenOptions{}, importer.Checks{})
		if err != nil {
			t.Fatal(err)
		}
		src, err := read.OpenFile(t, "a.csv", content, read.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var onDisk []string
		if _, err := importer.Import(src, t.TempDir(), importer.Options{Warn: func(s errtext.Text) {
			onDisk = append(onDisk, s.String())
		}}); err != nil {
			t.Fatal(err)
		}
		f, err := inspect.Inspect(datasettest.WriteFile(t, "a.csv", content), read.OpenOptions{}, importer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for who, lines := range map[string][]string{"build": said, "import": onDisk, "inspect": f.Warnings} {
			all := strings.Join(lines, "\n")
			if c.says == "" && strings.Contains(all, "in float32") || !strings.Contains(all, c.says) {
				t.Errorf("%s, %s: said %q, want %q", c.what, who, all, c.says)
			}
		}
	}
	// As advised.
	_, said, err := read.Imported(t, "a.csv", file(func(i int) string {
		return fmt.Sprint(i * 17 % 60)
	}), read.OpenOptions{}, importer.Checks{})
	if all := strings.Join(said, "\n"); err != nil || strings.Contains(all, "in float32") {
		t.Errorf("%q, %v", all, err)
	}
	_, said, err = read.Imported(t, "a.csv", file(func(i int) string {
		return fmt.Sprintf("%de%d", i+1, 6-i%7)
	}), read.OpenOptions{}, importer.Checks{})
	if all := strings.Join(said, "\n"); err != nil || strings.Contains(all, "in float32") {
		t.Errorf("multiplied by 1e56: %q, %v", all, err)
	}
	var svm strings.Builder
	for i := range 60 {
		fmt.Fprintf(&svm, "0.5,0.5 1:%d 3:%d\n", i%7, 1700000000+i)
	}
	_, said, err = read.Imported(t, "a.svm", svm.String(), read.OpenOptions{}, importer.Checks{})
	if all := strings.Join(said, "\n"); err != nil ||
		!strings.Contains(all, "60 different values of feature 2, from 1700000000 to 1700000059, are rounded to 1 number") {
		t.Errorf("%q, %v", all, err)
	}
}

// TestTargetIsSaid: a note says where the labels are read from, in files of every kind and in what inspect says of
// them.
func TestTargetIsSaid(t *testing.T) {
	features := read.NpyBytes("<f8", false, "(3, 2)", []float64{1, 2, 3, 4, 5, 6})
	degrees := read.NpyBytes("<f8", false, "(3, 2)", []float64{.5, .5, .25, .75, 1, 0})
	classes := read.NpyBytes("<i8", false, "(3,)", []int64{1, 2, 1})
	npz := read.NpzBytes("features", features, "labels", degrees, "class", classes, "truth", degrees)
	mat := read.GoodMAT(&mattest.File{})
	class, age := read.LabelOptions{Kind: dataset.Class}, read.LabelOptions{Kind: dataset.Age, Sigma: 2, Low: 0, High: 69}
	for _, c := range []struct {
		file string
		b    []byte
		o    read.OpenOptions
		says string
	}{
		{"a.npz", npz, read.OpenOptions{}, `2 labels are read from "labels"`},
		{"a.npz", npz, read.OpenOptions{Arrays: read.ArrayOptions{LabelsVariable: "truth"}},
			`2 labels are read from "truth"`},
		{"a.npz", npz, read.OpenOptions{Labels: class}, `the class is read from "class"`},
		{"a.npz", read.NpzBytes("features", features, "labels", classes), read.OpenOptions{Labels: class},
			`the class is read from "labels"`},
		{"a.mat", mat, read.OpenOptions{}, `2 labels are read from "labels"`},
		{"a.mat", mat, read.OpenOptions{Labels: age}, `the age is read from "age"`},
		{"a.mat", mat, read.OpenOptions{Labels: class, Arrays: read.ArrayOptions{LabelsVariable: "age"}},
			`the class is read from "age"`},
		{"a.svm", []byte(".5,.5 1:2 2:3\n.25,.75 1:1\n1,0 1:1\n"), read.OpenOptions{},
			"2 labels are read from the first field of each line"},
		{"a.svm", []byte("7 1:2 2:3\n8 1:1\n7 1:1\n"), read.OpenOptions{Labels: class},
			"the class is read from the first field of each line"},
		{"a.csv", []byte("x,class\n1,a\n2,b\n3,a\n"), read.OpenOptions{Labels: class},
			`the class is read from column 1, "class"`},
	} {
		src, err := read.OpenBytes(t, c.file, c.b, c.o)
		if err != nil || !slices.Contains(errtext.Strings(src.Info().Notes), c.says) {
			t.Errorf("%s: %v, want %q", c.file, err, c.says)
			continue
		}
		f, err := inspect.Inspect(datasettest.WriteFile(t, c.file, string(c.b)), c.o, importer.Options{})
		if err != nil || !slices.Contains(f.Notes, c.says) {
			t.Errorf("%s: inspect notes %q, %v", c.file, f.Notes, err)
		}
		var notes []string
		if _, _, err := importer.Build(src, importer.Options{Note: func(s errtext.Text) {
			notes = append(notes, s.String())
		}}); err != nil || !strings.Contains(strings.Join(notes, "\n")+"\n", ": "+c.says+"\n") {
			t.Errorf("%s: an import notes %q, %v", c.file, notes, err)
		}
	}
	path := datasettest.WriteFile(t, "set_features.npy", string(features))
	if err := os.WriteFile(strings.Replace(path, "features", "labels", 1), degrees, 0o600); err != nil {
		t.Fatal(err)
	}
	if src, err := read.Open(path, read.OpenOptions{}); err != nil ||
		!slices.Contains(src.Info().Notes, `2 labels are read from "set_labels.npy"`) {
		t.Errorf("%v", err)
	}
}

// TestOneLabel: one column of degrees would be 1 in every row, with and without Normalize; the advice of the refusal
// works.
func TestOneLabel(t *testing.T) {
	for _, c := range []struct {
		name, content string
		o             read.OpenOptions
		says          string
		better        string // content as the advice says
		labels        dataset.LabelKind
	}{
		{"a.csv", "x1,x2,label_p\n1,2,0.3\n2,3,0.9\n3,1,0.5\n", read.OpenOptions{},
			`found only one label, "p"; the labels of a sample sum to 1, so a single label would always be 1; add the other class's probability, which is 1 minus this one`, "x1,x2,label_p,label_q\n1,2,0.3,.7\n2,3,0.9,.1\n3,1,0.5,.5\n", dataset.Distributions},
		{"a.csv", "x1,x2,label_p\n1,2,0\n2,3,1\n", read.OpenOptions{},
			"the values are whole numbers and may be class numbers: --labels class reads them as classes", "", dataset.Class},
		{"a.csv", "x1,x2,label_p\n1,2,5\n2,3,7\n", read.OpenOptions{Labels: read.LabelOptions{Kind: dataset.Counts}},
			"--labels class", "", dataset.Class},
		{"a.svm", "1 1:1\n-1 1:2\n", read.OpenOptions{}, "--labels class", "", dataset.Class},
		{"a.svm", "1.5 1:1\n2.5 1:2\n", read.OpenOptions{}, "--labels age", "", dataset.Age},
	} {
		for _, normalize := range []bool{false, true} {
			_, _, err := read.Imported(t, c.name, c.content, c.o, importer.Checks{Normalize: normalize})
			datasettest.MustContain(t, err, c.name, c.says)
			if err != nil && strings.Contains(err.Error(), "--normalize") {
				t.Errorf("%v advises --normalize", err)
			}
		}
		f, err := inspect.Inspect(datasettest.WriteFile(t, c.name, c.content), c.o, importer.Options{})
		if said := fmt.Sprint(f.Warnings); err != nil || !strings.Contains(said, c.says) ||
			strings.Contains(said, "--normalize") {
			t.Errorf("inspect: %q, %v", said, err)
		}
		better := c.better
		if better == "" {
			better = c.content
		}
		o := read.OpenOptions{Labels: read.LabelOptions{Kind: c.labels, Sigma: 1, Low: 0, High: 9}}
		if m, _, err := read.Imported(t, c.name, better, o, importer.Checks{}); err != nil || m.Labels < 2 {
			t.Errorf("%s: as advised: %v, %v", c.content, m, err)
		}
	}
	if _, _, err := read.Imported(t, "a.csv", "x,label_p\n1,1\n2,1\n", read.OpenOptions{}, importer.Checks{}); err != nil {
		t.Errorf("a distribution over one label: %v", err)
	}
}

// TestLibsvmNumbersOfClasses: labels of a libsvm file that are whole numbers may be classes, and normalising them is
// nonsense.
func TestLibsvmNumbersOfClasses(t *testing.T) {
	for _, content := range []string{"1,3 1:0.5 2:1\n2,4 1:0.1 3:2\n", "1,0 1:1\n1,3 1:0.5 2:1\n",
		"1,0 1:1\n1,3,4 1:0.5\n"} {
		_, _, err := read.Imported(t, "a.svm", content, read.OpenOptions{}, importer.Checks{})
		datasettest.MustContain(t, err, "a.svm", "these labels are whole numbers and may be class numbers",
			"--labels class reads one class for each sample", "write the probability of every class", "--labels counts")
		if err != nil && strings.Contains(err.Error(), "--normalize") {
			t.Errorf("%v advises --normalize", err)
		}
		_, _, err = read.Imported(t, "a.svm", content, read.OpenOptions{Labels: read.LabelOptions{Kind: dataset.Class}},
			importer.Checks{})
		datasettest.MustContain(t, err, "several labels", "write the probability of every class")
	}
	f, err := inspect.Inspect(datasettest.WriteFile(t, "a.svm", "1,3 1:0.5 2:1\n2,4 1:0.1 3:2\n"), read.OpenOptions{},
		importer.Options{})
	if said := fmt.Sprint(f.Warnings); err != nil || !strings.Contains(said, "--labels class") ||
		strings.Contains(said, "--normalize") {
		t.Errorf("inspect: %q, %v", said, err)
	}
	if m, _, err := read.Imported(t, "a.svm", "0.5,0,0.5,0 1:0.5 2:1\n0,0.5,0,0.5 1:0.1 3:2\n", read.OpenOptions{},
		importer.Checks{}); err != nil || m.Labels != 4 {
		t.Errorf("as advised: %v, %v", m, err)
	}
	_, _, err = read.Imported(t, "a.svm", "0.5,0.4 1:1\n", read.OpenOptions{}, importer.Checks{})
	datasettest.MustContain(t, err, "--normalize")
}

// TestRangeAgainstNames: names that contradict the range are refused, and what the error advises reads the file.
func TestRangeAgainstNames(t *testing.T) {
	for _, c := range []struct {
		names []string
		says  []string
		ways  int
	}{
		{[]string{"label_5", "label_6", "label_7"}, []string{"called 5 to 7", "--range 1:3", "--range 5:7"}, 1},
		{[]string{"label_2", "label_0", "label_1"}, []string{"--range 0:2"}, 1},
	} {
		path, o := datasettest.WriteFile(t, "x.csv", read.OneHot(c.names...)),
			read.OpenOptions{Labels: read.LabelOptions{Ordered: true, Low: 1, High: 3}}
		_, err := read.Open(path, o)
		var ways *dataset.WaysError
		if !errors.Is(err, dataset.ErrAmbiguous) || !errors.As(err, &ways) || len(ways.Ways) != c.ways {
			t.Errorf("%q: %v", c.names, err)
			continue
		}
		datasettest.MustContain(t, err, c.says...)
		for _, w := range ways.Ways {
			with, _, err := inspect.Apply(w, o, importer.Options{})
			if err == nil {
				_, err = read.Open(path, with)
			}
			if err != nil {
				t.Errorf("%q, %+v: %v", c.names, w, err)
			}
		}
		found, err := inspect.Inspect(path, o, importer.Options{})
		if err != nil || found.Refused == "" || !slices.ContainsFunc(found.Readings, func(r inspect.TriedReading) bool {
			return r.Refused == ""
		}) {
			t.Errorf("%q: inspected as %+v, %v", c.names, found, err)
		}
	}
}

// TestMissingImagesAndVotes: a row is missing if it has no name of an image, or if its counts or degrees are all 0.
// Such rows are refused with an advice, left out by --missing drop with their counts, and told by Inspect.
func TestMissingImagesAndVotes(t *testing.T) {
	const file = "Usage,Image name,neutral,happiness,contempt,unknown\nTraining,dark.png,4,0,2,0\nTraining,,0,0,0,10\nTraining,light.png,0,0,0,10\nTraining,NA,1,1,0,0\nTest,light.png,0,8,0,0\n"
	votes := read.OpenOptions{
		CSV: read.CSVOptions{Images: read.Pictures(t), RowNames: "Image name"}, Shape: dataset.Shape{Channels: 1, Height: 2,
			Width: 2}, Labels: read.LabelOptions{Kind: dataset.Counts, Columns: []string{"neutral:contempt"}},
	}
	path := datasettest.WriteFile(t, "a.csv", file)
	src, err := read.Open(path, votes)
	if err == nil {
		_, _, err = importer.Build(src, importer.Options{})
	}
	datasettest.MustContain(t, err, "row 1", "; --missing drop leaves such samples out")
	dropped := votes
	dropped.Missing.Drop = true
	if src, err = read.Open(path, dropped); err != nil {
		t.Fatal(err)
	}
	var warned []string
	m, shards, err := importer.Build(src, importer.Options{Warn: func(line errtext.Text) {
		warned = append(warned, line.String())
	}})
	if err != nil || m.Rows != 2 || !slices.Equal(m.LeftOutRows(), []int{1, 2, 3}) ||
		!slices.Equal(m.LabelNames, []string{"neutral", "happiness", "contempt"}) {
		t.Fatalf("%+v, %v", m, err)
	}
	var got []float32
	for _, s := range shards {
		got = append(got, s.D...)
	}
	slices.Sort(got)
	if want := []float32{0, 0, 0, 1. / 3, 2. / 3, 1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if text := strings.Join(warned, "\n"); !strings.Contains(text,
		"3 of 5 samples have missing values and are left out (2 without the name of an image, 1 whose labels are all 0); "+
			"other samples keep") {
		t.Errorf("%s", text)
	}
	for _, o := range []read.OpenOptions{votes, dropped} {
		found, err := inspect.Inspect(path, o, importer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(found.Warnings, "\n")
		for _, part := range []string{"found 2 samples with missing values: 2 missing image names; --missing drop leaves",
			"found 1 sample whose labels are all 0, the first in row 2; such samples have no label distribution; --missing drop"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s lacks %q", text, part)
			}
		}
	}
	_, err = read.Open(datasettest.WriteFile(t, "b.csv", "x,label_a,label_b\n1,0,0\n2,1,0\n"),
		read.OpenOptions{Labels: read.LabelOptions{Kind: dataset.Counts}})
	if err == nil {
		src, _ = read.OpenFile(t, "b.csv", "x,label_a,label_b\n1,0,0\n2,1,0\n",
			read.OpenOptions{Labels: read.LabelOptions{Kind: dataset.Counts}})
		_, _, err = importer.Build(src, importer.Options{})
	}
	datasettest.MustContain(t, err, "row 0", "the counts sum to 0", "--missing drop")
	src, err = read.OpenFile(t, "c.csv", "x,label_a,label_b\n1,0,0\n2,1,0\n",
		read.OpenOptions{Missing: dataset.Missing{Drop: true}})
	if err != nil {
		t.Fatal(err)
	}
	if m, _, err = importer.Build(src, importer.Options{}); err != nil || m.Rows != 1 {
		t.Errorf("degrees: %v", err)
	}
}

// Words that are read as missing values are listed with their rows, and equal groups are a note as equal classes are.
func TestMissingWordsAreNoted(t *testing.T) {
	csv := "x,y,class,person\n"
	svm := ""
	for i := range 20 {
		csv += fmt.Sprintf("none,%d,%s,1\n", i%3, []string{"a", "b"}[i%2])
		svm += fmt.Sprintf("%d 1:none 2:N/A\n", i%2)
	}
	csv += "N/A,N/A,a,1.0\n,nan,b,1\n1,2,?,1\n1,2,a,null\n3,4,b,2\n"
	svm += "0 1:nan 2:1\n"
	for _, c := range []struct {
		file, text string
		o          read.OpenOptions
		want       []string
	}{
		{"a.csv", csv, read.OpenOptions{Missing: dataset.Missing{Fill: true}, Drop: []string{"class"},
			Beside: read.BesideOptions{}, NoLabels: true}, []string{`"N/A" (1 sample)`, `"none" (20 samples)`,
			`"null" (1 sample)`}},
		{"b.csv", csv, read.OpenOptions{Missing: dataset.Missing{Drop: true}, Labels: read.LabelOptions{Kind: dataset.Class},
			Beside: read.BesideOptions{Groups: "person"}}, []string{`"?" (1 sample)`, `"N/A" (1 sample)`, `"none" (20 samples)`,
			`"null" (1 sample)`}},
		{"a.svm", svm, read.OpenOptions{Missing: dataset.Missing{Fill: true}, Labels: read.LabelOptions{Kind: dataset.Class}},
			[]string{`"N/A" (20 samples)`, `"none" (20 samples)`}},
	} {
		var notes, warnings []string
		src, err := read.OpenBytes(t, c.file, []byte(c.text), c.o)
		if err == nil {
			_, _, err = importer.Build(src, importer.Options{Note: func(s errtext.Text) {
				notes = append(notes, s.String())
			}, Warn: func(s errtext.Text) { warnings = append(warnings, s.String()) }})
		}
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		var words []string
		for _, note := range notes {
			if text, ok := strings.CutSuffix(note, " is read as missing"); ok {
				words = append(words, text[strings.LastIndex(text, ": ")+2:])
			}
		}
		if !slices.Equal(words, c.want) {
			t.Errorf("%s: %q, want %q", c.file, words, c.want)
		}
		f, err := inspect.Inspect(datasettest.WriteFile(t, c.file, c.text), c.o, importer.Options{})
		if err != nil || !strings.Contains(strings.Join(f.Notes, "\n"), c.want[0]+" is read as missing") {
			t.Errorf("%s: inspect notes %q, %v", c.file, f.Notes, err)
		}
	}
	var notes, warnings []string
	src, err := read.OpenBytes(t, "a.csv", read.Grouped("1", "1.0", "2"),
		read.OpenOptions{Beside: read.BesideOptions{Groups: "person"}})
	if err == nil {
		_, _, err = importer.Build(src, importer.Options{Note: func(s errtext.Text) {
			notes = append(notes, s.String())
		}, Warn: func(s errtext.Text) { warnings = append(warnings, s.String()) }})
	}
	const equal = `equal numbers are read as one group, such as "1" and "1.0"`
	if err != nil || !strings.Contains(strings.Join(notes, "\n"), equal) ||
		strings.Contains(strings.Join(warnings, "\n"), equal) {
		t.Errorf("notes %q, warnings %q, %v", notes, warnings, err)
	}
}

// TestBesideInspected: inspect counts the rows that an import refuses, and says what labels
// would be.
func TestBesideInspected(t *testing.T) {
	path := datasettest.WriteFile(t, "a.csv", strings.Replace(strings.Replace(read.AgedCSV, ",9,9,9", ",9,9,8", 1), ",5,6",
		",5.6,6", 1))
	found, err := inspect.Inspect(path, read.Aged(), importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if found.LabelsAre != "numeric labels from 0 to 9, with exact numbers" {
		t.Errorf("labels are %s", found.LabelsAre)
	}
	if i := slices.IndexFunc(found.Warnings, func(w string) bool {
		return strings.Contains(w, "found 2 samples with an invalid exact number, interval, group or weight, such as ") &&
			strings.Contains(w, "row 1")
	}); i < 0 {
		t.Errorf("%q", found.Warnings)
	}
}
