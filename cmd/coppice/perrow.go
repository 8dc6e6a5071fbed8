package main

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"io"
	"slices"
	"strconv"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
)

// rowSink takes the measures of each row.
type rowSink interface {
	take(row string, model, mean []float64) error // by the names of rowNames
	end() error
	discard() // does nothing after end
}

// perRow returns where the measures of each row of src go: nowhere, into the JSON
// value, or to stdout or a file.
func (c *evaluateCmd) perRow(a *app, e *evaluation, src dataset.Source) (rowSink, error) {
	switch {
	case !c.PerSample:
		return noRows{}, nil
	case c.Out != "":
		return c.perRowFile(a, e, src)
	case a.json:
		return &jsonRows{e: e}, nil
	}
	return newCSVRows(a.stdout, tableFollows{stdoutFile{a.stdout}}, rowColumns(e.plan)), nil
}

func (c *evaluateCmd) perRowFile(a *app, e *evaluation, src dataset.Source) (rowSink, error) {
	format, err := c.of(c.Out)
	if err != nil {
		return nil, err
	}
	out, err := a.createOutput(c.Out)
	if err != nil {
		return nil, err
	}
	e.Out = c.Out
	switch format {
	case dataset.NPZ:
		r, err := newNPZRows(out, src, rowColumns(e.plan))
		if err != nil {
			out.discard()
			return nil, err
		}
		return r, nil
	case dataset.CSVGZ:
		z := gzip.NewWriter(out)
		return newCSVRows(z, zipped{out, z}, rowColumns(e.plan)), nil
	}
	return newCSVRows(out, out, rowColumns(e.plan)), nil
}

// zipped is an output behind gzip.
type zipped struct {
	output
	zip *gzip.Writer
}

func (z zipped) commit() error {
	if err := z.zip.Close(); err != nil {
		return err
	}
	return z.output.commit()
}

// tableFollows ends the rows with an empty line.
type tableFollows struct{ output }

func (t tableFollows) commit() error {
	_, err := io.WriteString(t.output, "\n")
	return err
}

type noRows struct{}

func (noRows) take(string, []float64, []float64) error { return nil }
func (noRows) end() error                              { return nil }
func (noRows) discard()                                {}

type jsonRows struct {
	noRows
	e *evaluation
}

func (r *jsonRows) take(row string, model, mean []float64) error {
	names := rowNames(r.e.plan)
	r.e.PerSample = append(r.e.PerSample, rowMeasures{row, byName(names, model), byName(names, mean)})
	return nil
}

func byName(names []string, values []float64) map[string]float64 {
	m := make(map[string]float64, len(values))
	for i, v := range values {
		m[names[i]] = v
	}
	return m
}

// rowNames lists the measures of a row of distributions: the ten, and the others where the plan has them.
func rowNames(p *measures.Plan) (names []string) {
	all := measures.All
	if p.More {
		all = slices.Concat(all, measures.More)
	}
	for _, m := range all {
		names = append(names, m.Name)
	}
	return names
}

// rowValues puts the measures of a row, by rowNames, into dst, and returns it.
func rowValues(dst []float64, p *measures.Plan, label, predicted []float32) []float64 {
	ten := measures.ClippedRow(label, predicted, p.Clip)
	dst = append(dst[:0], ten[:]...)
	if p.More {
		more := measures.MoreOfRow(label, predicted, p.Clip)
		dst = append(dst, more[:]...)
	}
	return dst
}

// rowColumns names what is written of each row: the model's measures, then the mean
// predictor's with the prefix mean_.
func rowColumns(p *measures.Plan) []string {
	names := rowNames(p)
	columns := slices.Clone(names)
	for _, name := range names {
		columns = append(columns, "mean_"+name)
	}
	return columns
}

// csvRows writes a line for each row.
type csvRows struct {
	buffer *bufio.Writer
	out    *csv.Writer
	record []string
	file   output
}

func newCSVRows(w io.Writer, end output, columns []string) *csvRows {
	buffer := bufio.NewWriter(w)
	r := &csvRows{buffer: buffer, out: csv.NewWriter(buffer), file: end}
	r.out.Write(append([]string{"row"}, columns...)) // an error comes again at end
	return r
}

func (r *csvRows) take(row string, model, mean []float64) error {
	r.record = append(r.record[:0], row)
	for _, of := range [][]float64{model, mean} {
		for _, v := range of {
			r.record = append(r.record, strconv.FormatFloat(v, 'g', -1, 64))
		}
	}
	return r.out.Write(r.record)
}

func (r *csvRows) end() error {
	r.out.Flush()
	if err := cmp.Or(r.out.Error(), r.buffer.Flush()); err != nil {
		return err
	}
	return r.file.commit()
}

func (r *csvRows) discard() { r.file.discard() }

// npzRows writes the arrays "measures" (float64, a row for each row), "measure_names"
// of its columns, "rows" (int64, numbers in the file) and, where rows have names,
// "row_names".
type npzRows struct {
	archive    *npy.Archive
	out        *npy.Writer[float64]
	src        dataset.Source
	columns    []string
	rows, done int
	file       output
}

func newNPZRows(file output, src dataset.Source, columns []string) (*npzRows, error) {
	rows, err := dataset.CountRows(src)
	if err != nil {
		return nil, err
	}
	r := &npzRows{archive: npy.NewArchive(file), src: src, columns: columns, rows: rows, file: file}
	r.out, err = r.archive.Doubles("measures", rows, len(columns))
	return r, err
}

func (r *npzRows) take(_ string, model, mean []float64) error {
	r.done++
	return cmp.Or(r.out.Write(model), r.out.Write(mean))
}

func (r *npzRows) end() error {
	err := cmp.Or(r.out.Flush(), sameRows(r.done, r.rows), r.archive.List("measure_names", r.columns))
	if err == nil {
		err = writeRows(r.archive, r.src, r.rows)
	}
	if err = cmp.Or(err, r.archive.Close()); err != nil {
		return err
	}
	return r.file.commit()
}

func (r *npzRows) discard() { r.file.discard() }
