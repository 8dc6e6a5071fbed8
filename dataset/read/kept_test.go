package read

import (
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
)

// An error of a file that is read as the model's file was says so, also about a later row, and its advice works.
func TestKeptFlagsInErrors(t *testing.T) {
	latin, err := ParseEncoding("latin-1")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, trained string
		o             OpenOptions
		later         string
		says          []string
		advised       OpenOptions
	}{
		{
			"thousands", "a;b;label_p;label_q\n1.234,5;2.000;0,5;0,5\n2.500,25;3.100;0,25;0,75\n",
			OpenOptions{CSV: CSVOptions{Thousands: '.'}},
			"a,b\n1,2\n1234.5,2000\n", []string{"row 1", "read with the options of the training file: --thousands .",
				"options that are given override these"}, OpenOptions{CSV: CSVOptions{Decimal: "."}},
		},
		{
			"decimal", "a;b;label_p;label_q\n1,5;2;0,5;0,5\n2;3;0,25;0,75\n", OpenOptions{CSV: CSVOptions{Decimal: ","}},
			"a,b\n1,2\n1234.5,2000\n", []string{"row 1", "--decimal ,", "options that are given override these"},
			OpenOptions{CSV: CSVOptions{Decimal: "."}},
		},
		{
			"encoding", "farbe,a,label_p,label_q\nrot,1,0.5,0.5\ngr\xfcn,2,0.25,0.75\n", OpenOptions{Encoding: latin,
				CSV: CSVOptions{Categories: []string{"farbe"}}},
			"farbe,a\nrot,1\ngrün,2\n", []string{"row 1", `"grÃ¼n" is not a level of this category`,
				"read with the options of the training file: --encoding " + latin, "options that are given override these"},
			OpenOptions{Encoding: "utf-8"},
		},
	} {
		s := modelOf(t, c.trained, c.o)
		read := func(o OpenOptions) error {
			o.NoLabels = true
			src, _, err := OpenForModel(t, "later.csv", c.later, o, s)
			if err == nil {
				err = scanned(src)
			}
			return err
		}
		datasettest.MustContain(t, read(OpenOptions{}), c.says...)
		if err := read(c.advised); err != nil {
			t.Errorf("%s: as advised: %v", c.what, err)
		}
	}
}

// Predictions next to the truth are two ways to read the labels.
func TestPredictionsNextToTruth(t *testing.T) {
	s := modelOf(t, "a,label_x,label_y\n1,0.5,0.5\n2,0.2,0.8\n", OpenOptions{})
	const joined = "a,x,y,label_x,label_y\n1,0.3,0.7,0.5,0.5\n"
	_, _, err := OpenForModel(t, "j.csv", joined, OpenOptions{}, s)
	datasettest.MustBe(t, err, dataset.ErrAmbiguous)
	datasettest.MustContain(t, err, "j.csv", `"x" and "label_x" are both label "x"`, "--label-columns", "--drop")
	for first, want := range map[string]string{"label_x,label_y": "[a]>[x y] [1]>[0.5 0.5]",
		"x,y": "[a]>[x y] [1]>[0.3 0.7]"} {
		columns := []string{first[:len(first)/2], first[len(first)/2+1:]}
		src, _, err := OpenForModel(t, "j.csv", joined, OpenOptions{Labels: LabelOptions{Columns: columns}}, s)
		if err != nil {
			t.Errorf("%s: %v", first, err)
		} else if got := Describe(t, src); got != want {
			t.Errorf("%s: %s, want %s", first, got, want)
		}
	}
	_, err = OpenFile(t, "p.csv", "a,u_x,v_x,v_y\n1,0.5,0.5,0\n",
		OpenOptions{Labels: LabelOptions{Prefixes: []string{"u_", "v_"}}})
	datasettest.MustContain(t, err, `"u_x" and "v_x" are both label "x"`, "--drop")
}
