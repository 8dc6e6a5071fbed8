package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"io"
	"strconv"

	"github.com/coppice-ldl/coppice/algorithms/measures"
)

// rowSink takes the measures of each row.
type rowSink interface {
	take(row string, model, mean measures.Row) error
	end() error
	discard() // does nothing after end
}

// perRow returns where the measures of each row go: nowhere, into the JSON value,
// or as CSV to stdout or a file.
func (c *evaluateCmd) perRow(a *app, e *evaluation) (rowSink, error) {
	switch {
	case !c.PerRow:
		return noRows{}, nil
	case c.Out != "":
		f, err := createFile(c.Out)
		if err != nil {
			return nil, err
		}
		e.Out = c.Out
		return newCSVRows(f, f), nil
	case a.json:
		return &jsonRows{e: e}, nil
	}
	return newCSVRows(a.stdout, nil), nil
}

type noRows struct{}

func (noRows) take(string, measures.Row, measures.Row) error { return nil }
func (noRows) end() error                                    { return nil }
func (noRows) discard()                                      {}

type jsonRows struct {
	noRows
	e *evaluation
}

func (r *jsonRows) take(row string, model, mean measures.Row) error {
	r.e.PerRow = append(r.e.PerRow, rowMeasures{row, byName(model), byName(mean)})
	return nil
}

func byName(r measures.Row) map[string]float64 {
	m := make(map[string]float64, len(r))
	for i, v := range r {
		m[measures.All[i].Name] = v
	}
	return m
}

// csvRows writes a line for each row: the model's measures, then the mean
// predictor's with the prefix mean_.
type csvRows struct {
	buffer *bufio.Writer
	out    *csv.Writer
	record []string
	file   *outFile // nil for stdout
}

func newCSVRows(w io.Writer, file *outFile) *csvRows {
	buffer := bufio.NewWriter(w)
	r := &csvRows{buffer: buffer, out: csv.NewWriter(buffer), record: []string{"row"}, file: file}
	for _, prefix := range []string{"", "mean_"} {
		for _, m := range measures.All {
			r.record = append(r.record, prefix+m.Name)
		}
	}
	r.out.Write(r.record) // an error comes again at end
	return r
}

func (r *csvRows) take(row string, model, mean measures.Row) error {
	r.record = append(r.record[:0], row)
	for _, of := range []measures.Row{model, mean} {
		for _, v := range of {
			r.record = append(r.record, strconv.FormatFloat(v, 'g', -1, 64))
		}
	}
	return r.out.Write(r.record)
}

func (r *csvRows) end() error {
	r.out.Flush()
	if r.file != nil {
		if err := errors.Join(r.out.Error(), r.buffer.Flush()); err != nil {
			return err
		}
		return r.file.commit()
	}
	r.buffer.WriteByte('\n') // the table follows
	return errors.Join(r.out.Error(), r.buffer.Flush())
}

func (r *csvRows) discard() {
	if r.file != nil {
		r.file.discard()
	}
}
