package main

import (
	"io"

	reporting "github.com/coppice-ldl/coppice/experiment/report"
	tables "github.com/coppice-ldl/coppice/experiment/result"
)

// reportFlags say how the report of an experiment is written.
type reportFlags struct {
	Format   string  `enum:"table,md,csv,json,latex,html" default:"table" placeholder:"F" help:"What the report is: table, md, csv, json, latex or html. -o json prints the cells instead."`
	Out      string  `placeholder:"FILE" help:"Write the report to FILE instead of stdout."`
	NoTimes  bool    `help:"Leave times out: reports of two runs of an experiment are equal then."`
	Sample   bool    `help:"Show the sample's deviations over folds, divided by n - 1 (default: the population's)."`
	Level    float64 `default:"0.05" placeholder:"P" help:"Level of tests and of the critical difference."`
	AllTests bool    `help:"Show the tests of every measure (default: of the first; csv and json have all)."`
}

// check refuses a level that is none.
func (f *reportFlags) check() error {
	if !(f.Level >= reporting.LeastLevel && f.Level < 1) {
		return usagef("--level %v: want a number from %v to below 1", f.Level, reporting.LeastLevel)
	}
	return nil
}

// write writes the report, or the cells in JSON.
func (f *reportFlags) write(a *app, t *tables.Table) error {
	if f.Out == "" {
		return f.writeTo(a.stdout, a.json, t)
	}
	out, err := createFile(f.Out)
	if err != nil {
		return err
	}
	defer out.discard()
	if err := f.writeTo(out, a.json, t); err != nil {
		return err
	}
	return out.commit()
}

func (f *reportFlags) writeTo(w io.Writer, asJSON bool, t *tables.Table) error {
	if asJSON {
		return t.Encode(w)
	}
	return reporting.Write(w, t, f.Format, reporting.Options{NoTimes: f.NoTimes, Sample: f.Sample, Level: f.Level, AllTests: f.AllTests})
}
