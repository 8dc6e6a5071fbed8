package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
)

type inspectCmd struct {
	File string `arg:"" placeholder:"FILE" help:"Data file, or - for stdin."`

	dataFlags
}

// Help implements kong's HelpProvider.
func (inspectCmd) Help() string {
	return `It reads the file from beginning to end and imports nothing. It shows shape, names, ranges, label sums and missing values,
and warns of features that number the rows, have one value, or are a label or follow from one (correlation above 0.999 in
magnitude). An import prints the same warnings.`
}

// Run implements `coppice dataset inspect`.
func (c *inspectCmd) Run(a *app) error {
	if c.Missing != "" {
		return usagef("--missing: inspect counts missing values, whatever an import makes of them")
	}
	o, checks, err := c.options()
	if err != nil {
		return err
	}
	path, err := a.dataFile(c.File, &o)
	if err != nil {
		return err
	}
	m := newMeter(a.stderr)
	found, err := dataset.Inspect(path, o, importOptions(a.ctx, checks, m))
	m.clear()
	if err != nil {
		return err
	}
	return a.print(found, func(w io.Writer) { writeInspection(w, found) })
}

// maxColumnsShown is how many features or labels the text lists; JSON has all.
const maxColumnsShown = 30

func writeInspection(w io.Writer, f *dataset.Inspection) {
	lines := [][2]string{
		{"file", f.File},
		{"rows", count(f.Rows)},
		{"features", count(f.Features)},
		{"labels", count(f.Labels)},
		{"labels are", f.LabelsAre},
		{"row names", yesNo(f.RowNames)},
		{"missing", missingLine(f)},
	}
	if s := f.LabelSums; s != nil {
		lines = append(lines, [2]string{"label sums", fmt.Sprintf("%.6g to %.6g", s.Least, s.Most)})
	}
	for _, note := range f.Notes {
		lines = append(lines, [2]string{"note", note})
	}
	pairs(w, lines)
	writeColumns(w, "feature", f.FeatureColumns)
	writeColumns(w, "label", f.LabelColumns)
	if len(f.Warnings) > 0 {
		fmt.Fprintln(w)
	}
	for _, warning := range f.Warnings {
		fmt.Fprintf(w, "warning: %s\n", warning)
	}
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func missingLine(f *dataset.Inspection) string {
	if f.Missing.Rows == 0 {
		return "none"
	}
	var parts []string
	if n := f.Missing.Values; n > 0 {
		parts = append(parts, plural(n, "feature"))
	}
	if n := f.Missing.Labels; n > 0 {
		parts = append(parts, plural(n, "label"))
	}
	return fmt.Sprintf("%s in %s", strings.Join(parts, " and "), plural(f.Missing.Rows, "row"))
}

// writeColumns writes a table of the first columns.
func writeColumns(w io.Writer, what string, columns []dataset.ColumnSummary) {
	if len(columns) == 0 {
		return
	}
	fmt.Fprintln(w)
	t := newTable(w, []string{what, "name", "least", "greatest", "zeros", "missing"}, 1, 3, 4, 5, 6)
	for i, c := range columns[:min(maxColumnsShown, len(columns))] {
		t.AppendRow(rowOf(strconv.Itoa(i), c.Name, limit(c.Least), limit(c.Most), count(c.Zeros), count(c.Missing)))
	}
	t.Render()
	if n := len(columns) - maxColumnsShown; n > 0 {
		fmt.Fprintf(w, "and %s more; -o json lists all\n", count(n))
	}
}

func limit(v *float64) string {
	if v == nil {
		return "-"
	}
	return strconv.FormatFloat(*v, 'g', 6, 64)
}
