package read_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/inspect"
	"github.com/coppice-ldl/coppice/dataset/matfile/mattest"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/dataset/read"
)

// TestTwoWaysToReadIdentities: what is open is refused, and the advice of the refusal works.
func TestTwoWaysToReadIdentities(t *testing.T) {
	for _, c := range []struct {
		texts    []string
		says     []string
		one, two []string // as the advice says, for one and for two classes
	}{
		{
			[]string{"7", "8", "007"},
			[]string{`"007", and "7" in row 0, are one class as numbers but two as texts (the leading zeros may be part of the name)`, "write both as 7 for one class", "(s7, s007)", "row 2", "line 4"},
			[]string{"7", "8", "7"},
			[]string{"s7", "8", "s007"},
		},
		{
			[]string{"12", "unknown", "12.0"},
			[]string{`"12.0", and "12" in row 0`, `"unknown" in row 1 is a text`, "write both as 12 for one"},
			[]string{"12", "unknown", "12"},
			[]string{"s12", "unknown", "s12.0"},
		},
	} {
		_, _, err := read.ClassesOf(t, "a.csv", read.Column("class", c.texts...), read.OpenOptions{})
		datasettest.MustContain(t, err, append(c.says, "a.csv")...)
		datasettest.MustBe(t, err, dataset.ErrAmbiguous)
		for n, texts := range map[int][]string{2: c.one, 3: c.two} {
			if names, _, err := read.ClassesOf(t, "a.csv", read.Column("class", texts...), read.OpenOptions{}); err != nil ||
				len(names) != n {
				t.Errorf("%q: %q, %v", texts, names, err)
			}
		}
		// Groups are read in the same way.
		src, err := read.OpenBytes(t, "a.csv", read.Grouped(c.texts...),
			read.OpenOptions{Beside: read.BesideOptions{Groups: "person"}})
		if err == nil {
			_, _, err = importer.Build(src, importer.Options{})
		}
		datasettest.MustBe(t, err, dataset.ErrAmbiguous)
		datasettest.MustContain(t, err, "one group")
		// An inspection does not refuse the file.
		f, err := inspect.Inspect(datasettest.WriteFile(t, "a.csv", string(read.Column("class", c.texts...))),
			read.OpenOptions{Labels: read.LabelOptions{Kind: dataset.Class}}, importer.Options{})
		if err != nil || !strings.Contains(strings.Join(f.Notes, "\n"), c.says[0]) {
			t.Errorf("inspect: %+v, %v", f, err)
		}
		f, err = inspect.Inspect(datasettest.WriteFile(t, "a.csv", string(read.Grouped(c.texts...))),
			read.OpenOptions{Beside: read.BesideOptions{Groups: "person"}}, importer.Options{})
		if err != nil || !strings.Contains(strings.Join(f.Warnings, "\n"), "one group") {
			t.Errorf("inspect: %+v, %v", f, err)
		}
	}
}

// TestFloatsAsIdentities: a float so large that it may stand for several whole numbers is refused, in arrays and in
// text, and below that it is not.
func TestFloatsAsIdentities(t *testing.T) {
	x := read.NpyBytes("<f8", false, "(2, 1)", []float64{1, 2})
	labels := read.NpyBytes("<f8", false, "(2, 2)", []float64{.5, .5, .5, .5})
	array := func(descr string, data any) map[string][]byte {
		a := read.NpyBytes(descr, false, "(2,)", data)
		return map[string][]byte{"a.npz": read.NpzBytes("features", x, "class", a), "b.npz": read.NpzBytes("features", x,
			"labels", labels, "person", a)}
	}
	matFile := func(add func(f *mattest.File, name string)) map[string][]byte {
		f, g := &mattest.File{}, &mattest.File{}
		f.AddDoubles("features", 2, 1, 1, 2)
		g.AddDoubles("features", 2, 1, 1, 2)
		g.AddDoubles("labels", 2, 2, .5, .5, .5, .5)
		add(f, "class")
		add(g, "person")
		return map[string][]byte{"a.mat": f.Bytes(), "b.mat": g.Bytes()}
	}
	for i, c := range []struct {
		files map[string][]byte
		ok    bool
	}{
		{array("<f8", []float64{0x1p53, 1}), false},
		{array("<f8", []float64{0x1p53 - 1, 1}), true},
		{array("<f4", []float32{0x1p24, 1}), false},
		{array("<f4", []float32{0x1p24 - 1, 1}), true},
		{array("<f2", []uint16{0x6800, 0x3c00}), false}, // 2048
		{array("<f2", []uint16{0x67ff, 0x3c00}), true},  // 2047
		{matFile(func(f *mattest.File, name string) { f.AddDoubles(name, 2, 1, -0x1p53, 1) }), false},
		{matFile(func(f *mattest.File, name string) { f.AddDoubles(name, 2, 1, 1-0x1p53, 1) }), true},
		{matFile(func(f *mattest.File, name string) { f.AddSingles(name, 2, 1, 0x1p24, 1) }), false},
		{matFile(func(f *mattest.File, name string) { f.AddSingles(name, 2, 1, 0x1p24-1, 1) }), true},
		{map[string][]byte{"a.csv": read.Column("class", "9.007199254740992e+15", "1"),
			"b.csv": read.Grouped("9007199254740993.0", "1"), "a.svm": []byte("1e16 1:1\n1 1:2\n")}, false},
		{map[string][]byte{"a.csv": read.Column("class", "9.007199254740991e+15", "1"),
			"b.csv": read.Grouped("9007199254740991.0", "1"), "a.svm": []byte("1e15 1:1\n1 1:2\n")}, true},
	} {
		for name, b := range c.files {
			var err error
			if name[0] == 'a' {
				_, _, err = read.ClassesOf(t, name, b, read.OpenOptions{})
			} else {
				_, _, err = read.GroupsOf(t, name, b)
			}
			if c.ok != (err == nil) || !c.ok && !errors.Is(err, dataset.ErrAmbiguous) {
				t.Errorf("case %d, %s: %v", i, name, err)
			}
			if !c.ok {
				datasettest.MustContain(t, err, name, "write whole numbers")
			}
			o := read.OpenOptions{Labels: read.LabelOptions{Kind: dataset.Class}}
			if name[0] == 'b' {
				o = read.OpenOptions{Beside: read.BesideOptions{Groups: "person"}}
			}
			if f, err := inspect.Inspect(datasettest.WriteFile(t, name, string(b)), o, importer.Options{}); err != nil ||
				!c.ok && !strings.Contains(fmt.Sprint(f.Notes, f.Warnings), "write whole numbers") {
				t.Errorf("case %d, %s: inspect says %+v, %v", i, name, f, err)
			}
		}
	}
}

// Names of classes that are the classes give the order of the labels; a class stays what it is.
func TestNamesOrderClasses(t *testing.T) {
	const texts, numbers = "x,kind\n1,cat\n2,dog\n3,cat\n", "x,kind\n1,0\n2,1\n3,0\n"
	for _, c := range []struct{ content, names, want string }{
		{texts, `["dog", "cat"]`, "[x]>[dog cat] [1]>[0 1] [2]>[1 0] [3]>[0 1]"},
		{texts, `["cat", "dog"]`, "[x]>[cat dog] [1]>[1 0] [2]>[0 1] [3]>[1 0]"},
		{numbers, `["1", "0"]`, "[x]>[1 0] [1]>[0 1] [2]>[1 0] [3]>[0 1]"},
		{numbers, `["dog", "cat"]`, "[x]>[dog cat] [1]>[1 0] [2]>[0 1] [3]>[1 0]"},
		{texts, `["hen", "cow"]`, ""},
		{texts, `["cat", "hen"]`, ""},
		{texts, `["cat", "cat"]`, ""},
		{numbers, `["1", "2"]`, ""},
		{numbers, `["1", "one"]`, ""},
	} {
		o := read.OpenOptions{Labels: read.LabelOptions{Kind: dataset.Class, Columns: []string{"kind"}},
			NamesFile: datasettest.WriteFile(t, "n.json", `{"labels": `+c.names+`}`)}
		src, err := read.OpenFile(t, "a.csv", c.content, o)
		if c.want == "" {
			datasettest.MustBe(t, err, dataset.ErrAmbiguous)
			datasettest.MustContain(t, err, "n.json", "a.csv", "list exactly these")
			if _, err := inspect.Inspect(datasettest.WriteFile(t, "a.csv", c.content), o, importer.Options{}); err != nil {
				t.Errorf("%s: inspect: %v", c.names, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.names, err)
		} else if got := read.Describe(t, src); got != c.want {
			t.Errorf("%s: %s, want %s", c.names, got, c.want)
		}
	}
	names := datasettest.WriteFile(t, "n.json", `{"labels": ["dog", "cat"]}`)
	src, _, err := read.OpenForModel(t, "a.csv", numbers,
		read.OpenOptions{Labels: read.LabelOptions{Kind: dataset.Class, Columns: []string{"kind"}}, NamesFile: names},
		&dataset.Schema{Features: 1, FeatureNames: []string{"x"}, Labels: 2, LabelNames: []string{"dog", "cat"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := read.Describe(t, src), "[x]>[dog cat] [1]>[1 0] [2]>[0 1] [3]>[1 0]"; got != want {
		t.Errorf("for a model of named numbers: %s, want %s", got, want)
	}
	scale := read.OpenOptions{Labels: read.LabelOptions{Kind: dataset.Age, Sigma: 1, High: 1, Columns: []string{"kind"}},
		NamesFile: datasettest.WriteFile(t, "n.json", `{"labels": ["1", "0"]}`)}
	_, err = read.OpenFile(t, "a.csv", numbers, scale)
	datasettest.MustBe(t, err, dataset.ErrAmbiguous)
}

// Two arrays of one name are refused if they are read; another array may be there twice.
func TestArraysOfOneName(t *testing.T) {
	for _, name := range []string{"features", "labels", "label_names", "person"} {
		f := &mattest.File{}
		for range 2 {
			if name == "label_names" || name == "person" {
				f.AddCells(name, "x", "y", "z")
			} else {
				f.AddDoubles(name, 3, 2, 0.5, 0, 1, 0.5, 1, 0)
			}
		}
		path := datasettest.WriteFile(t, "a.mat", string(read.GoodMAT(f)))
		o := read.OpenOptions{Beside: read.BesideOptions{Groups: "person"}}
		_, err := read.Open(path, o)
		datasettest.MustBe(t, err, dataset.ErrAmbiguous)
		datasettest.MustContain(t, err, "a.mat", `two variables are called "`+name+`"`)
		if found, err := inspect.Inspect(path, o, importer.Options{}); err != nil || found.Refused == "" &&
			len(found.Notes) == 0 {
			t.Errorf("inspect: %+v, %v", found, err)
		}
	}
	f := &mattest.File{}
	f.AddDoubles("other", 1, 1, 8)
	src, err := read.OpenBytes(t, "a.mat", read.GoodMAT(f), read.OpenOptions{})
	if err != nil || len(datasettest.Collect(t, src)) != 3 {
		t.Errorf("%v", err)
	}
	var b bytes.Buffer
	a := npy.NewArchive(&b)
	for _, name := range []string{"features", "labels", "features"} {
		w, err := a.Doubles(name, 2, 2)
		if err = errors.Join(err, w.Write([]float64{0.5, 0.5, 1, 0}), w.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	a.Close()
	_, err = read.OpenBytes(t, "a.npz", b.Bytes(), read.OpenOptions{})
	datasettest.MustBe(t, err, dataset.ErrAmbiguous)
	datasettest.MustContain(t, err, "a.npz", `two arrays are called "features"`)
}
