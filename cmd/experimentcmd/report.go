package experimentcmd

import (
	"cmp"
	"io"
	"path/filepath"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/experiment/figure"
	reporting "github.com/coppice-ldl/coppice/experiment/report"
	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/internal/printable"
)

// reportFlags say how the report of an experiment is written.
type reportFlags struct {
	Format   string  `enum:"table,md,csv,json,latex,html,fragment" default:"table" placeholder:"F" help:"Format of the report: table, md, csv, json, latex, html or fragment (HTML to put into a page). -o json prints the runs instead."`
	Out      string  `placeholder:"FILE" help:"Write the report to FILE instead of stdout."`
	Figures  string  `placeholder:"DIR" help:"Also draw the figures of the report to folder DIR, each as .svg, .png and .pdf. A report in md or latex then includes the figures."`
	NoTimes  bool    `help:"Leave out times, so that the reports of two runs of an experiment are equal."`
	Sample   bool    `help:"Show sample standard deviations over folds, divided by n - 1 (default: population, divided by n)."`
	Level    float64 `default:"0.05" placeholder:"P" help:"Significance level of the tests and of the critical difference."`
	AllTests bool    `help:"Show the tests for every measure (default: for the first measure; csv and json always have all)."`

	notes []string // that the report begins with
	forms forms    // of the report command only
}

// forms are further flags of the report command.
type forms struct {
	Against   string `placeholder:"METHOD" help:"Compare all methods with this method, not with the best: marks, tests, and tables of wins, ties and losses."`
	Transpose bool   `help:"Write tables of measures with a row for each dataset, and a column for each method."`
	Bare      bool   `help:"With --format latex: write only the tables of measures, for \\input. Each has a label, tab:NAME:MEASURE."`
}

// check refuses, before anything is run, a level that is none, a folder for figures that cannot be one, and
// a file that cannot be written or is one of the inputs.
func (f *reportFlags) check(inputs ...string) error {
	if err := cmp.Or(results.CheckFigures("--figures", f.Figures), cli.CheckNotInput("--out", f.Out, inputs...),
		cli.CheckWritable(f.Out)); err != nil {
		return err
	}
	if f.forms.Bare && f.Format != "latex" {
		return cli.Usagef("{bare} is for {format=latex}")
	}
	if !(f.Level >= reporting.LeastLevel && f.Level < 1) {
		return cli.Usagef("{level=%v}: want a number of at least %v and below 1", f.Level, reporting.LeastLevel)
	}
	return nil
}

// write writes the report, or the runs in JSON, and the figures.
func (f *reportFlags) write(a *cli.App, t *tables.Table) error {
	if err := f.drawFigures(a, t); err != nil {
		return err
	}
	if f.Out == "" {
		if a.Output == cli.JSONL {
			return a.PrintResult(t, nil)
		}
		out := a.Data // a report of text has nothing in it that a terminal obeys
		if a.JSON || f.Format == "json" {
			out = printable.NewJSONWriter(out)
		}
		return f.writeTo(out, a.JSON, t)
	}
	out, err := cli.Create(f.Out)
	if err != nil {
		return err
	}
	defer out.Discard()
	if err := f.writeTo(out, a.JSON || a.Output == cli.JSONL, t); err != nil {
		return err
	}
	return out.Commit()
}

func (f *reportFlags) writeTo(w io.Writer, asJSON bool, t *tables.Table) error {
	if asJSON {
		return t.Encode(w)
	}
	return reporting.Write(w, t, f.Format, f.options())
}

func (f *reportFlags) options() reporting.Options {
	return reporting.Options{NoTimes: f.NoTimes, Sample: f.Sample, Level: f.Level, AllTests: f.AllTests,
		Against: f.forms.Against, Transpose: f.forms.Transpose, Bare: f.forms.Bare, Pictures: f.pictures(), Notes: f.notes}
}

// pictures is the folder of the figures, as seen from the report.
func (f *reportFlags) pictures() string {
	if f.Figures == "" || f.Out == "" {
		return f.Figures
	}
	dir, err := filepath.Abs(f.Figures)
	if err != nil {
		return f.Figures
	}
	from, err := filepath.Abs(filepath.Dir(f.Out))
	if err != nil {
		return f.Figures
	}
	if path, err := filepath.Rel(from, dir); err == nil {
		dir = path
	}
	return filepath.ToSlash(dir)
}

// drawFigures draws the figures of the report.
func (f *reportFlags) drawFigures(a *cli.App, t *tables.Table) error {
	if f.Figures == "" {
		return nil
	}
	figures, err := reporting.Figures(t, f.options())
	if err != nil {
		return err
	}
	var all []figure.Named
	for i := range figures {
		drawn, err := figures[i].Draw()
		if err != nil {
			return err
		}
		all = append(all, figure.Named{Name: figures[i].Name, Figure: drawn})
	}
	if len(all) == 0 {
		a.Note("%s: there is nothing to draw; run the experiment with --record curve,predictions to draw learning curves "+
			"and predictions", f.Figures)
		return nil
	}
	return results.WriteFigures(a, f.Figures, all)
}
