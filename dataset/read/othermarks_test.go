package read

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
)

// inspect lists the columns of a file whose numbers have several marks, and only advice that works.
func TestNumbersWithSeveralMarks(t *testing.T) {
	const none, thousands = "x,z,label_a,label_b\n\"1,5\",0.5,0.5,0.5\n7.25,2.5,0.25,0.75\n", "a,b,label_a,label_b\n\"1,234\",2,0.5,0.5\n\"2,500\",3,0.25,0.75\n"
	_, _, err := imported(t, "n.csv", none, OpenOptions{}, importer.Checks{})
	datasettest.MustContain(t, err, `"1,5" is not a number; --decimal , reads 1.5, but then "0.5" (line 2, column 1) is not a number: write all numbers of the file with the same separators`)
	f, err := Inspect(datasettest.WriteFile(t, "n.csv", none), OpenOptions{}, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Columns) != 4 || f.Rows != 2 || !strings.Contains(f.Refused, "write all numbers of the file with the same separators") || len(f.Readings) == 0 {
		t.Errorf("%+v", f)
	}
	for _, r := range f.Readings {
		if r.Refused == "" {
			t.Errorf("can be read: %+v", r)
		}
	}
	_, _, err = imported(t, "t.csv", thousands, OpenOptions{}, importer.Checks{})
	datasettest.MustContain(t, err, `"1,234" is not a number; --thousands , reads 1234`)
	if strings.Contains(err.Error(), "--decimal") {
		t.Errorf("%v", err)
	}
	if _, _, err := imported(t, "t.csv", thousands, OpenOptions{Thousands: ','}, importer.Checks{}); err != nil {
		t.Errorf("as advised: %v", err)
	}
	f, err = Inspect(datasettest.WriteFile(t, "t.csv", thousands), OpenOptions{}, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, r := range f.Readings {
		if r.Refused == "" {
			read++
			if !strings.Contains(r.What, "--thousands , reads 1234") || strings.Contains(r.What, "--decimal") {
				t.Errorf("%q", r.What)
			}
		}
	}
	if read == 0 || len(f.Columns) != 4 {
		t.Errorf("%+v", f)
	}
	// Without another number either mark may be meant.
	_, _, err = imported(t, "w.csv", "a,class\n\"1,234\",x\n\"2,500\",y\n", OpenOptions{Labels: LabelOptions{Kind: dataset.Class}}, importer.Checks{})
	datasettest.MustBe(t, err, dataset.ErrAmbiguous)
	datasettest.MustContain(t, err, "--decimal , reads 1.234", "--thousands , reads 1234")
}
