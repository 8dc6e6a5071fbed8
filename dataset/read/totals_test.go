package read

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
)

// built opens a file and reads it as an import does.
func built(t *testing.T, name, content string, o OpenOptions, checks importer.Checks) error {
	t.Helper()
	src, err := openFile(t, name, content, o)
	if err == nil {
		_, _, err = importer.Build(src, importer.Options{Checks: checks})
	}
	return err
}

// A row of sums or means at the end of a table is refused with its line, however it is called, in whatever column that stands and
// whatever else is wrong with it. Without that line the file is read, and so it is with another word.
func TestTotalRowIsNamed(t *testing.T) {
	const named = "name,a,b,label_x,label_y\np,1,2.5,.5,.5\nq,3,4.25,1,0\nr,8,1.5,0,1\n"
	drop := OpenOptions{Missing: dataset.Missing{Drop: true}}
	for _, c := range []struct {
		table, total string
		o            OpenOptions
		checks       importer.Checks
		says         string
	}{
		{named, "Total,12,8.25,1.5,1.5", OpenOptions{}, importer.Checks{}, "sums of the rows above in 4 columns"},
		{named, "Grand total,12,8.25,1.5,1.5", OpenOptions{}, importer.Checks{Normalize: true}, "sums"},
		{named, "TOTAL:,12,8.25,,", OpenOptions{}, importer.Checks{}, "sums of the rows above in 2 columns"},
		{named, "Summe (n = 3),12,8.2,,", OpenOptions{}, importer.Checks{}, "sums"},
		{named, "Σ,12,8.25,,", OpenOptions{}, importer.Checks{}, "sums"},
		{named, "mean,4,2.75,.5,.5", OpenOptions{}, importer.Checks{}, "means of the rows above in 4 columns"},
		{named, "Average,4.0,2.8,.5,.5", OpenOptions{}, importer.Checks{}, "means"},
		{named, "Total,12,,1.5,1.5", OpenOptions{Missing: dataset.Missing{Fill: true}}, importer.Checks{Normalize: true}, "sums"},
		{named, "Total,12,8.25,1.5,1.5\nMean,4,2.75,.5,.5", OpenOptions{}, importer.Checks{}, "sums"},
		{named, "Total,12,8.25,1.5,1.5", OpenOptions{Drop: []string{"name"}}, importer.Checks{Normalize: true}, "sums"},
		{"a,b,label_x,label_y\n1,2,.5,.5\n3,4,1,0\n8,1,0,1\n", "Total,7,1.5,1.5", OpenOptions{}, importer.Checks{}, "sums"},
		{"a,class\n1,p\n3,q\n8,p\n", "12,Total", OpenOptions{Labels: LabelOptions{Kind: dataset.Class}}, importer.Checks{}, "sums of the rows above in 1 column"},
		{"id,a,b,class\n1,2,3,p\n2,4,3,q\n3,6,3,p\n", "Total,12,9,", OpenOptions{Labels: LabelOptions{Kind: dataset.Class}, RowNames: "id"}, importer.Checks{}, "sums"},
		{"id,a,label_x,label_y\nu,2,3,1\nv,4,3,2\nw,6,3,0\n", "Total,,9,3", OpenOptions{Labels: LabelOptions{Kind: dataset.Counts}, RowNames: "id"}, importer.Checks{}, "sums"},
		{"name;a;b;label_x;label_y\np;1;2,5;0,5;0,5\nq;3;4,25;1;0\nr;8;1,5;0;1\n", "Total;12;8,25;1,5;1,5", OpenOptions{}, importer.Checks{}, "sums"},
	} {
		lines := strings.Count(c.table, "\n")
		err := built(t, "a.csv", c.table+c.total+"\n", c.o, c.checks)
		datasettest.MustContain(t, err, fmt.Sprintf("line %d)", lines+1), "begins a row that has the "+c.says, "delete the line")
		if !errors.Is(err, dataset.ErrAmbiguous) {
			t.Errorf("%s: %v is not ErrAmbiguous", c.total, err)
		}
		if err := built(t, "a.csv", c.table, c.o, c.checks); err != nil {
			t.Errorf("without %s: %v", c.total, err)
		}
		found, err := Inspect(datasettest.WriteFile(t, "a.csv", c.table+c.total+"\n"), c.o, importer.Options{})
		if err != nil || !strings.Contains(found.Refused, "begins a row that has") {
			t.Errorf("%s: inspect: %v, refused %q", c.total, err, found.Refused)
		}
		for _, r := range found.Readings {
			if r.Refused == "" {
				t.Errorf("%s: inspect proposes %v", c.total, r.Flags)
			}
		}
	}
	if err := built(t, "a.csv", named+"sample 4,12,8.25,1,0\n", OpenOptions{}, importer.Checks{}); err != nil {
		t.Errorf("another word: %v", err)
	}
	if err := built(t, "a.csv", named+"Total,12,8.25,,\n", drop, importer.Checks{}); err != nil {
		t.Errorf("a missing value leaves it out: %v", err)
	}
	for content, o := range map[string]OpenOptions{ // rows as the others
		named + "Total,5,8.25,1,0\n":                                   {},
		named + "Total,13,9,.5,.5\n":                                   {},
		"Total,12,8.25,1,0\n" + named[25:]:                             {Header: dataset.HeaderNo, Labels: LabelOptions{Columns: []string{"3:4"}}, RowNames: "0"},
		named + "Total,12,8.25,1,0\ns,1,2,1,0\n":                       {},
		"size,a,class\n1,3,good\n2,4,average\n3,2,good\n2,3,average\n": {Labels: LabelOptions{Kind: dataset.Class}},
	} {
		if err := built(t, "a.csv", content, o, importer.Checks{}); err != nil {
			t.Errorf("%q: %v", content, err)
		}
	}
}
