package read

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
)

// A file without a header, for a model of a file with one, is refused with what to do, whatever its first line has;
// with the names of the columns in a first line it is read.
func TestHeaderlessFileOfModel(t *testing.T) {
	numbers, words, mixed, degrees := "", "", "", ""
	for i := range 12 {
		class, color, size := []string{"a", "b", "c"}[i%3], []string{"red", "blue"}[i%2], []string{"s", "m"}[i/2%2]
		numbers += fmt.Sprintf("%d,%d,%s\n", i*7%5, i*3%11, class)
		words += fmt.Sprintf("%s,%s,%s\n", color, size, class)
		mixed += fmt.Sprintf("%s,%d,%s\n", color, i*7%5, class)
		degrees += fmt.Sprintf("%d,.25,.75\n", i)
	}
	class := OpenOptions{Labels: LabelOptions{Kind: dataset.Class}}
	for what, c := range map[string]struct {
		header, rows string
		o            OpenOptions
		train        OpenOptions
		first        string // other first row, with a class that is unknown
	}{
		"numbers": {"x,w,class\n", numbers, class, class, "1,2,q\n"},
		"words": {"color,size,class\n", words, class,
			OpenOptions{Labels: class.Labels, CSV: CSVOptions{Categories: []string{"color", "size"}}}, "red,m,q\n"},
		"mixed": {"color,x,species\n", mixed, class,
			OpenOptions{Labels: LabelOptions{Kind: dataset.Class, Columns: []string{"species"}},
				CSV: CSVOptions{Categories: []string{"color"}}}, "red,2,q\n"},
		"degrees": {"x,label_p,label_q\n", degrees, OpenOptions{}, OpenOptions{}, "2,.5,.5\n"},
	} {
		src, err := OpenFile(t, "a.csv", c.header+c.rows, c.train)
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := importer.Build(src, importer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := &dataset.Schema{Features: m.Features, Labels: m.Labels, FeatureNames: m.FeatureNames, LabelNames: m.LabelNames,
			LabelColumns: m.LabelColumns, Reading: m.Reading}
		for _, rows := range []string{c.rows, c.first + c.rows} {
			for _, predict := range []bool{false, true} {
				o := c.o
				o.NoLabels = predict
				read := func(content string, o OpenOptions) error {
					src, _, err := OpenFor(datasettest.WriteFile(t, "b.csv", content), o, s)
					if err == nil {
						_, err = datasettest.TryCollect(src)
					}
					return err
				}
				err := read(rows, o)
				if err == nil {
					t.Errorf("%s without a header is read", what)
				}
				names := strings.Split(strings.TrimSpace(c.header), ",")
				o = c.o
				o.NoLabels = predict
				if err := read(c.header+c.rows, o); err != nil {
					t.Errorf("%s with its header: %v", what, err)
				}
				if err := read(strings.Replace(c.header, names[0], "other", 1)+c.rows, o); err == nil ||
					strings.Contains(err.Error(), "--header no") || strings.Contains(err.Error(), "first line") {
					t.Errorf("%s with another name: %v", what, err)
				}
			}
		}
	}
}
