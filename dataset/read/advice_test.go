package read

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// Advice about columns of a file works if it is followed: a total among the labels, a column without a value, percent signs, and a
// text whose name begins as labels do.
func TestAdviceOfColumns(t *testing.T) {
	const totals = "a,label_x,label_y,label_total\n1,3,4,7\n2,1,1,2\n3,2,3,5\n"
	for _, c := range []struct {
		content string
		o       OpenOptions
		checks  importer.Checks
		says    string
		drop    string // empty: nothing to try
	}{
		{totals, OpenOptions{}, importer.Checks{}, `label "total" is the sum of the other labels in this sample and seems to be a total: --drop label_total leaves it out`, "label_total"},
		{strings.ReplaceAll(totals, "total", "count"), OpenOptions{}, importer.Checks{}, "--drop label_count leaves", "label_count"},
		{totals, OpenOptions{Labels: LabelOptions{Columns: []string{"1:3"}}}, importer.Checks{}, "list all other label columns in --label-columns", ""},
		{"a,b,empty,label_x,label_y\n1,2,,.5,.5\n2,3,NA,.25,.75\n", OpenOptions{}, importer.Checks{}, "the column has no values; --drop empty leaves it out", "empty"},
		{"a,b,label_x,label_y\n1,42%,.5,.5\n2,13%,.25,.75\n", OpenOptions{}, importer.Checks{}, `"42%" is not a number, because it has a percent sign (%); write 42`, "b"},
		{"a,b,label_x,label_y\n1,4,50%,50%\n2,3,25%,75%\n", OpenOptions{}, importer.Checks{}, `"50%" is not a number, because it has a percent sign (%); write 50`, ""},
		{"a,label_x,label_y,label_source\n1,.5,.5,web\n2,.25,.75,paper\n", OpenOptions{}, importer.Checks{}, "--drop label_source leaves the column out if it is not a label, --label-columns lists the labels", "label_source"},
	} {
		built := func(o OpenOptions, checks importer.Checks) error {
			src, err := openFile(t, "a.csv", c.content, o)
			if err == nil {
				_, _, err = importer.Build(src, importer.Options{Checks: checks})
			}
			return err
		}
		err := built(c.o, c.checks)
		datasettest.MustContain(t, err, c.says)
		if err != nil && (strings.Contains(err.Error(), "--normalize") || strings.Contains(err.Error(), "--labels class") || strings.Contains(err.Error(), "--missing")) {
			t.Errorf("wrong advice: %v", err)
		}
		if c.drop == "" {
			continue
		}
		c.o.Drop = []string{c.drop}
		if err := built(c.o, importer.Checks{Normalize: strings.HasPrefix(c.content, "a,label_x,label_y,label_total") || c.drop == "label_count"}); err != nil {
			t.Errorf("--drop %s: %v", c.drop, err)
		}
	}
	for _, content := range []string{totals, "a,label_x,label_y,label_z\n1,3,4,7\n2,1,1,3\n"} {
		src, err := openFile(t, "a.csv", content, OpenOptions{Labels: LabelOptions{Kind: dataset.Counts}})
		if err != nil {
			t.Fatal(err)
		}
		var warned []string
		if _, _, err := importer.Build(src, importer.Options{Warn: func(s errtext.Text) { warned = append(warned, s.String()) }}); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []dataset.LabelKind{dataset.Counts, dataset.Distributions} {
			found, err := Inspect(datasettest.WriteFile(t, "a.csv", content), OpenOptions{Labels: LabelOptions{Kind: kind}}, importer.Options{})
			if err != nil {
				t.Fatal(err)
			}
			all := strings.Join(found.Warnings, "\n")
			if said := strings.Contains(all, "is the sum of the other labels in every sample"); said != (content == totals) || said && strings.Contains(all, "--normalize") {
				t.Errorf("%q as %q: warnings %s", content, kind, all)
			}
		}
		if said := strings.Contains(strings.Join(warned, "\n"), "is the sum of the other labels in every sample"); said != (content == totals) {
			t.Errorf("%q: warned %q", content, warned)
		}
	}
}
