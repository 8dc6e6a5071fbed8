package read

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/matfile/mattest"
	"github.com/google/go-cmp/cmp"
)

// Aged is how the files of these tests are read.
func Aged() OpenOptions {
	return OpenOptions{
		Labels: LabelOptions{Kind: dataset.Age, Sigma: 2, Low: 0, High: 9},
		Beside: BesideOptions{Values: "age", Intervals: []string{"from", "to"}, Groups: "who"},
	}
}

const AgedCSV = "x,who,age,from,to\n1,ann,3,2,4\n2,bob,5.5,5,6\n3,ann,9,9,9\n4,cy,0,0,1\n"

// agedFiles are one set of rows in the three kinds of files that have such columns.
func agedFiles() map[string]string {
	f := &mattest.File{}
	f.AddDoubles("features", 4, 1, 1, 2, 3, 4)
	f.AddDoubles("age", 1, 4, 3, 5.5, 9, 0)
	f.AddDoubles("from", 4, 1, 2, 5, 9, 0)
	f.AddDoubles("to", 4, 1, 4, 6, 9, 1)
	f.AddCells("who", "ann", "bob", "ann", "cy")
	return map[string]string{
		"a.csv": AgedCSV,
		"a.mat": string(f.Bytes()),
		"a.npz": string(NpzBytes(
			"features", NpyBytes("<f8", false, "(4, 1)", []float64{1, 2, 3, 4}), "age", NpyBytes("<f8", false, "(4,)",
				[]float64{3, 5.5, 9, 0}),
			"from", NpyBytes("<f4", false, "(4,)", []float32{2, 5, 9, 0}), "to", NpyBytes("<i8", false, "(4, 1)",
				[]int64{4, 6, 9, 1}),
			"who", NpyBytes("|S3", false, "(4,)", []byte("annbobanncy\x00")))),
	}
}

// TestBeside: exact numbers, intervals and groups come from every kind of file into shards
// and the list of groups, by Build and by Import.
func TestBeside(t *testing.T) {
	var first string
	for name, content := range agedFiles() {
		src, err := OpenFile(t, name, content, Aged())
		if err != nil {
			t.Fatal(err)
		}
		var groups []uint16
		m, shards, err := importer.Build(src, importer.Options{Groups: func(g []uint16) { groups = slices.Clone(g) }})
		if err != nil {
			t.Fatal(err)
		}
		if m.LabelType.Scale.True != dataset.TrueValue || !m.HasValues || !m.HasIntervals || m.Features != 1 {
			t.Errorf("%s: %+v", name, m)
		}
		if !slices.Equal(m.Groups.Names, []string{"ann", "bob", "cy"}) || !slices.Equal(groups, []uint16{0, 1, 0, 2}) {
			t.Errorf("%s: groups %v of %v", name, groups, m.Groups.Names)
		}
		values, from, to := []float64{3, 5.5, 9, 0}, []float64{2, 5, 9, 0}, []float64{4, 6, 9, 1}
		for _, r := range shards {
			for i, row := range r.Row {
				if low, high := m.LabelType.Scale.Interval(r, i); m.LabelType.Scale.Number(r, i) != values[row] ||
					low != from[row] || high != to[row] {
					t.Errorf("%s: row %d is %v, %v to %v", name, row, r.Value[i], low, high)
				}
			}
		}
		dir := t.TempDir()
		imported, err := importer.Import(src, dir, importer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(m, imported); d != "" {
			t.Errorf("%s: Import: %s", name, d)
		}
		if b, err := os.ReadFile(filepath.Join(dir, m.Groups.Digest)); err != nil ||
			!bytes.Equal(b, dataset.EncodeFolds(groups)) {
			t.Errorf("%s: the list of groups: %v", name, err)
		}
		if first == "" {
			first = m.Digest()
		}
		if m.Digest() != first || imported.Check() != nil {
			t.Errorf("%s: digest %s, another file's %s; %v", name, m.Digest(), first, imported.Check())
		}
		stored := datasettest.Collect(t, datasettest.StoredSource(m, shards, nil))
		if stored[1].Value != 5.5 || stored[3].Interval != [2]float64{0, 1} {
			t.Errorf("%s: stored rows %+v", name, stored)
		}
	}
}

// TestBesideRefuses: each fault is named with its file and row.
func TestBesideRefuses(t *testing.T) {
	distributions := func(o *OpenOptions) { o.Labels, o.Beside = LabelOptions{}, BesideOptions{} }
	for name, c := range map[string]struct {
		old, new string
		change   func(o *OpenOptions)
		says     []string
	}{
		"turned": {",9,9,9", ",9,9,8", nil,
			[]string{"row 2", "the interval begins at 9, which is above its end, 8"}},
		"outside": {",5,6", ",5.6,6", nil, []string{"row 1", "the exact number 5.5 is outside the sample's " +
			"interval, 5.6 to 6"}},
		"no number":   {",5,6", ",five,6", nil, []string{"row 1", "line 3", `"from"`, "five"}},
		"infinite":    {",5,6", ",5,1e999", nil, []string{"row 1"}},
		"missing end": {",5,6", ",5,", nil, []string{"row 1", "line 3", `"to"`, "--missing drop"}},
		"missing group": {"bob", "NA", nil, []string{"row 1 (counted from 0): the group of the sample is missing; " +
			"--missing drop leaves such samples out"}},
		"long group": {"bob", strings.Repeat("b", 101), nil, []string{"row 1", "101 bytes"}},
		"no column": {"x", "x", func(o *OpenOptions) {
			o.Beside.Groups = "person"
		}, []string{"a.csv", "--groups", `no column "person"`, "x, who, age"}},
		"one end": {"x", "x", func(o *OpenOptions) {
			o.Beside.Intervals = []string{"from"}
		}, []string{"want two columns"}},
		"twice":            {"x", "x", func(o *OpenOptions) { o.Beside.Groups = "to" }, []string{"used twice"}},
		"beyond the scale": {",5.5,5,6", ",10,5,60", nil, []string{"row 1", "the number 10 is outside the range 0 to 9"}},
		"values beyond the scale": {AgedCSV, "x,v,label_p,label_q\n1,0,1,0\n2,2,0,1\n", func(o *OpenOptions) {
			distributions(o)
			o.Labels.Ordered, o.Labels.High, o.Beside.Values = true, 1, "v"
		}, []string{"row 1", "the exact number 2 is outside the range 0 to 1"}},
		"a range of others": {AgedCSV, "x,label_p,label_q\n1,1,0\n", func(o *OpenOptions) {
			distributions(o)
			o.Labels.Ordered, o.Labels.High = true, 5
		}, []string{"a.csv", "2 labels found; the range 0:5 has 6 numbers"}},
		"values without a scale": {AgedCSV, "x,v,label_p,label_q\n1,0,1,0\n", func(o *OpenOptions) {
			distributions(o)
			o.Beside.Values = "v"
		}, []string{"exact numbers and intervals need numeric labels"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := Aged()
			if c.change != nil {
				c.change(&o)
			}
			src, err := OpenFile(t, "a.csv", strings.Replace(AgedCSV, c.old, c.new, 1), o)
			if err == nil {
				_, _, err = importer.Build(src, importer.Options{})
			}
			datasettest.MustContain(t, err, c.says...)
		})
	}
	for file, name := range map[string]string{"a.mat": "variable", "a.npz": "array"} {
		o := Aged()
		o.Beside.Groups = "person"
		_, err := OpenFile(t, file, agedFiles()[file], o)
		datasettest.MustContain(t, err, file, name+` "person"`, "--groups", "who")
	}
	for text, says := range map[string]string{
		"3,NA,2": "row 1 (counted from 0): the lower end of the sample's interval is missing",
		"3,2,NA": "the upper end of the sample's interval is missing",
		"NA,2,3": "the exact number of the sample is missing",
	} {
		o := OpenOptions{
			Labels:  LabelOptions{Kind: dataset.Counts, Columns: []string{"p", "q"}, Ordered: true, Low: 3, High: 4},
			Beside:  BesideOptions{Values: "v", Intervals: []string{"from", "to"}},
			Missing: dataset.Missing{Fill: true},
		}
		src, err := OpenFile(t, "b.csv", "x,p,q,v,from,to\n1,1,2,3,3,4\n1,1,2,"+text+"\n", o)
		if err == nil {
			_, _, err = importer.Build(src, importer.Options{})
		}
		datasettest.MustContain(t, err, says)
	}
	_, err := OpenFile(t, "a.libsvm", "3 1:2\n", Aged())
	datasettest.MustContain(t, err, "a.libsvm", "--values can only be used with CSV, ARFF, Parquet, .mat and .npz files")
}

// TestBesideDropped: rows without a group or a number are left out, and groups follow.
func TestBesideDropped(t *testing.T) {
	o := Aged()
	o.Missing.Drop = true
	src, err := OpenFile(t, "a.csv", AgedCSV+"5,,4,4,4\n6,dee,4,NA,4\n7,cy,NA,1,2\n8,bob,8,8,9\n", o)
	if err != nil {
		t.Fatal(err)
	}
	var groups []uint16
	m, _, err := importer.Build(src, importer.Options{Groups: func(g []uint16) { groups = slices.Clone(g) }})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(m.LeftOutRows(), []int{4, 5, 6}) || !slices.Equal(groups, []uint16{0, 1, 0, 2, 1}) ||
		len(m.Groups.Names) != 3 {
		t.Errorf("left out %v, groups %v of %v", m.LeftOutRows(), groups, m.Groups.Names)
	}
}

// TestBesideIsKnown: for a model, the columns beside features and labels are no features.
func TestBesideIsKnown(t *testing.T) {
	src, err := OpenFile(t, "a.csv", AgedCSV, Aged())
	if err != nil {
		t.Fatal(err)
	}
	info := src.Info()
	s := &dataset.Schema{Features: 1, Labels: 10, FeatureNames: info.FeatureNames, LabelNames: info.LabelNames,
		LabelColumns: info.LabelColumns}
	path := datasettest.WriteFile(t, "b.csv", AgedCSV)
	got, _, err := OpenFor(path, OpenOptions{NoLabels: true}, s)
	if err != nil {
		t.Fatal(err)
	}
	if rows := datasettest.Collect(t, got); got.Info().Features != 1 || rows[2].Values[0] != 3 {
		t.Errorf("%+v", got.Info())
	}
}

// TestSame: two manifests of one digest are told apart by what the digest does not cover.
func TestSame(t *testing.T) {
	build := func(o OpenOptions, content string) *dataset.Manifest {
		src, err := OpenFile(t, "a.csv", content, o)
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := importer.Build(src, importer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	one := "x,who,label_0,label_1\n1,ann,1,0\n2,bob,0,1\n"
	plain := build(OpenOptions{Drop: []string{"who"}}, one)
	scale := build(OpenOptions{Drop: []string{"who"}, Labels: LabelOptions{Ordered: true, High: 1}}, one)
	grouped := build(OpenOptions{Beside: BesideOptions{Groups: "who"}}, one)
	other := build(OpenOptions{Beside: BesideOptions{Groups: "who"}}, strings.Replace(one, "bob", "ann", 1))
	if plain.Digest() != scale.Digest() || plain.Digest() != grouped.Digest() {
		t.Error("types of labels or groups are part of the digest")
	}
	datasettest.MustContain(t, scale.SameLabels(plain),
		"its labels are distributions, the labels of the new dataset are numeric labels from 0 to 1")
	datasettest.MustContain(t, grouped.SameGroups(plain),
		"its samples have no groups, the samples of the new dataset have 2 groups")
	datasettest.MustContain(t, other.SameGroups(grouped), "2 groups", "1 group")
	for _, m := range []*dataset.Manifest{plain, scale, grouped} {
		if err := m.Same(m); err != nil {
			t.Error(err)
		}
		b, _ := json.Marshal(m)
		back := new(dataset.Manifest)
		if err := json.Unmarshal(b, back); err != nil || back.Same(m) != nil || back.Check() != nil {
			t.Errorf("%s: %v, %v", b, err, back.Check())
		}
	}
}
