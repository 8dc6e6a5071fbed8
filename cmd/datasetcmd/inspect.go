package datasetcmd

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/gldbfgs"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/dataflags"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/inspect"
	"github.com/coppice-ldl/coppice/internal/shellword"
	"github.com/coppice-ldl/coppice/internal/units"
)

type inspectCmd struct {
	File string `arg:"" placeholder:"FILE" help:"Data file, or - for stdin."`

	dataflags.DataFlags
}

// Help implements kong's HelpProvider.
func (inspectCmd) Help() string {
	return `The command reads the whole file and imports nothing. It shows shape, names, ranges, label sums and missing values. It
warns of a feature whose different values become equal when they are rounded to float32. An import prints the same warning.

For a CSV file it also shows what each column seems to be, and lists the ways to read the file, each with a command to
paste. A file with several readings is described, too. train, dataset import, predict and evaluate refuse such a file until
a flag chooses a reading.`
}

// Run implements `coppice dataset inspect`.
func (c *inspectCmd) Run(a *cli.App) error {
	if c.Missing != "" {
		return cli.Usagef("--missing: inspect counts missing values and does not use this flag; leave it out")
	}
	o, checks, err := c.Options()
	if err != nil {
		return err
	}
	path, err := dataflags.File(a, c.File, &o)
	if err != nil {
		return err
	}
	m := progress.New(a)
	found, err := inspect.Inspect(path, o, m.Reading(a.Ctx, "reading data", checks))
	m.Clear()
	if err != nil {
		return err
	}
	given := c.Given()
	for i := range found.Readings {
		if r := &found.Readings[i]; r.Refused == "" {
			r.Commands = readingCommands(c.File, given, r.Flags)
		}
	}
	return a.Print(found, func(w io.Writer) { writeInspection(w, found) })
}

// readingCommands lists the commands that read a file with the given flags and the flags of a reading.
func readingCommands(file string, given, chosen []dataset.Flag) []string {
	line := "--data " + shellword.Quote(file)
	given = slices.DeleteFunc(slices.Clone(given), func(g dataset.Flag) bool {
		return slices.ContainsFunc(chosen, func(c dataset.Flag) bool { return c.Name == g.Name })
	})
	trains := "" // an algorithm that can learn the labels
	for _, f := range slices.Concat(given, chosen) {
		if f.Name == "--labels" && f.Value == string(dataset.Bounded) {
			trains = " --algorithm " + gldbfgs.Name
		}
		line += " " + f.Name
		if f.Value != "" {
			line += " " + shellword.Quote(f.Value)
		}
	}
	commands := []string{"coppice train --local " + line + trains, "coppice dataset import " + line}
	if file == dataflags.Stdin {
		for i := range commands {
			commands[i] += " < FILE"
		}
	}
	return commands
}

// maxColumnsShown is the number of features or labels that the text lists. JSON has all.
const maxColumnsShown = 30

func writeInspection(w io.Writer, f *inspect.Inspection) {
	rowNames := "no"
	if f.RowNames {
		rowNames = "yes"
	}
	lines := [][2]string{
		{"file", f.File},
		{"samples", units.Count(f.Rows)},
		{"features", units.Count(f.Features)},
		{"labels", units.Count(f.Labels)},
		{"labels are", f.LabelsAre},
		{"row names", rowNames},
		{"missing", missingLine(f)},
	}
	if s := f.LabelSums; s != nil {
		lines = append(lines, [2]string{"label sums", fmt.Sprintf("%.6g to %.6g", s.Least, s.Most)})
	}
	if f.Encoding != "" {
		lines = append(lines, [2]string{"encoding", f.Encoding})
	}
	for _, note := range f.Notes {
		lines = append(lines, [2]string{"note", note})
	}
	cli.WritePairs(w, lines)
	if f.Refused != "" { // what helps comes first
		writeReadings(w, f.Readings)
		if len(f.Readings) == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "cannot be read without other flags: %s\n", f.Refused)
		writeProfiles(w, f.Columns)
	} else {
		writeProfiles(w, f.Columns)
		writeColumns(w, "feature", f.FeatureColumns)
		writeColumns(w, "label", f.LabelColumns)
		writeReadings(w, f.Readings)
	}
	if len(f.Warnings) > 0 {
		fmt.Fprintln(w)
	}
	for _, warning := range f.Warnings {
		fmt.Fprintf(w, "warning: %s\n", warning)
	}
}

func missingLine(f *inspect.Inspection) string {
	if f.Missing.Rows == 0 {
		return "none"
	}
	var parts []string
	if n := f.Missing.Values; n > 0 {
		parts = append(parts, units.Plural(n, "feature"))
	}
	if n := f.Missing.Labels; n > 0 {
		parts = append(parts, units.Plural(n, "label"))
	}
	if n := f.Missing.Images; n > 0 {
		parts = append(parts, units.Plural(n, "image name"))
	}
	return fmt.Sprintf("%s in %s", strings.Join(parts, " and "), units.Plural(f.Missing.Rows, "sample"))
}

// writeProfiles writes a table of what the first columns of a CSV file seem to be.
func writeProfiles(w io.Writer, columns []inspect.ColumnProfile) {
	if len(columns) == 0 {
		return
	}
	fmt.Fprintln(w)
	cli.WriteTable(w, []string{"column", "name", "seems to be", "missing", "distinct", "marks", "examples", "flags"},
		columns[:min(maxColumnsShown, len(columns))], func(c inspect.ColumnProfile) []string {
			var marks []string
			if c.Decimals != "" {
				marks = append(marks, c.Decimals+" decimals")
			}
			if c.Between != "" {
				marks = append(marks, c.Between+" thousands")
			}
			return []string{strconv.Itoa(c.Column), c.Name, string(c.Role), units.Count(c.Missing), units.Count(c.Distinct),
				strings.Join(marks, ", "), strings.Join(c.Examples, " | "), c.Hint}
		}, 1, 4, 5)
	if n := len(columns) - maxColumnsShown; n > 0 {
		fmt.Fprintf(w, "and %s more; -o json lists all\n", units.Count(n))
	}
}

// writeReadings writes the ways to read a file, each with its commands. Ways that work come first.
func writeReadings(w io.Writer, readings []inspect.TriedReading) {
	readings = slices.Clone(readings)
	slices.SortStableFunc(readings, func(a, b inspect.TriedReading) int {
		return cmp.Compare(min(len(a.Refused), 1), min(len(b.Refused), 1))
	})
	for i, r := range readings {
		if i == 0 {
			fmt.Fprintln(w)
		}
		if r.Refused != "" {
			fmt.Fprintf(w, "cannot be read: %s: %s\n", cmp.Or(r.What, "without other flags"), r.Refused)
			continue
		}
		fmt.Fprintf(w, "can be read: %s (%s, %s, %s)\n", cmp.Or(r.What, "without other flags"),
			units.Plural(r.Rows, "sample"), units.Plural(r.Features, "feature"), units.Plural(r.Labels, "label"))
		for _, command := range r.Commands {
			fmt.Fprintf(w, "  %s\n", command)
		}
	}
}

// writeColumns writes a table of the first columns.
func writeColumns(w io.Writer, what string, columns []inspect.ColumnSummary) {
	if len(columns) == 0 {
		return
	}
	fmt.Fprintln(w)
	t := cli.NewTable(w, []string{what, "name", "least", "greatest", "zeros", "missing"}, 1, 3, 4, 5, 6)
	for i, c := range columns[:min(maxColumnsShown, len(columns))] {
		t.AppendRow(cli.Row(strconv.Itoa(i), c.Name, limit(c.Least), limit(c.Most), units.Count(c.Zeros),
			units.Count(c.Missing)))
	}
	t.Render()
	if n := len(columns) - maxColumnsShown; n > 0 {
		fmt.Fprintf(w, "and %s more; -o json lists all\n", units.Count(n))
	}
}

func limit(v *float64) string {
	if v == nil {
		return "-"
	}
	const digits, whole = 6, 1e5
	if math.Abs(*v) >= whole { // in full, so that 1000000 and 1000001 differ
		return units.InFull(*v)
	}
	return strconv.FormatFloat(*v, 'g', digits, 64)
}
