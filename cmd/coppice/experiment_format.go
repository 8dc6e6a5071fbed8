package main

import (
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/algorithms/measures"
	tables "github.com/coppice-ldl/coppice/experiment/result"
)

// reportFlags says how the table of an experiment is written.
type reportFlags struct {
	Format string `enum:"table,json" default:"table" placeholder:"F" help:"How the table is written: table, or json, which has each cell."`
	Out    string `placeholder:"FILE" help:"Write the table to FILE instead of stdout."`
}

// write writes the table.
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
	if asJSON || f.Format == "json" {
		return t.Encode(w)
	}
	writeTable(w, t)
	return nil
}

// writeTable writes the means over cells, with their population deviations.
func writeTable(w io.Writer, t *tables.Table) {
	header, right := []string{"dataset", "row", "cells"}, []int{3}
	for i, name := range t.Measures {
		header, right = append(header, titleOf(name)), append(right, i+4)
	}
	table := newTable(w, header, right...)
	for d := range t.Datasets {
		for r := range t.Rows {
			table.AppendRow(rowOf(meansRow(t, d, r)...))
		}
	}
	table.Render()
}

func titleOf(measure string) string {
	for i := range measures.All {
		if measures.All[i].Name == measure {
			return measures.All[i].Title
		}
	}
	return measure
}

// meansRow writes one row of one dataset.
func meansRow(t *tables.Table, dataset, row int) []string {
	var reports []measures.Report
	all := 0
	for i := range t.Cells {
		c := &t.Cells[i]
		if c.Dataset != dataset || c.Row != row {
			continue
		}
		all++
		if c.State == tables.Done {
			var r measures.Report
			copy(r[:], statsOf(c.Values))
			reports = append(reports, r)
		}
	}
	cells := []string{t.Datasets[dataset].Name, t.Rows[row].Name, fmt.Sprintf("%d of %d", len(reports), all)}
	over := measures.OverFolds(reports)
	for i := range t.Measures {
		if len(reports) == 0 {
			cells = append(cells, "-")
			continue
		}
		cells = append(cells, figure(over[i].Mean)+" ± "+figure(over[i].Std))
	}
	return cells
}

func statsOf(values []float64) (list []measures.Stat) {
	for _, v := range values {
		list = append(list, measures.Stat{Mean: v})
	}
	return list
}
