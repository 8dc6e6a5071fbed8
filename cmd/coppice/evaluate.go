package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/coppice-ldl/coppice/algorithms/measures"
	"github.com/coppice-ldl/coppice/dataset"
)

type evaluateCmd struct {
	Model  string `required:"" placeholder:"FILE" help:"Model file."`
	Data   string `required:"" placeholder:"FILE" help:"Data file with labels."`
	PerRow bool   `help:"Give the measures of each row as well, as CSV."`
	Out    string `placeholder:"FILE" help:"Write what --per-row gives to FILE instead."`

	dataFlags
}

// Run implements `coppice evaluate`.
func (c *evaluateCmd) Run(a *app) error {
	if c.Out != "" && !c.PerRow {
		return usagef("--out belongs to --per-row")
	}
	m, err := openModel(c.Model)
	if err != nil {
		return err
	}
	src, checks, err := c.source(m)
	if err != nil {
		return err
	}
	e := &evaluation{ModelDigest: m.file.Digest, Data: c.Data}
	rows, finish, err := c.perRow(a, e)
	if err != nil {
		return err
	}
	progress := newMeter(a.stderr)
	err = m.evaluate(e, src, importOptions(a.ctx, checks, progress), rows)
	progress.clear()
	if err = finish(err); err != nil {
		return err
	}
	return a.print(e, e.text)
}

// source opens the data with the classes of the model, in its order.
func (c *evaluateCmd) source(m *model) (dataset.Source, dataset.Checks, error) {
	o, checks, err := c.options()
	if err != nil {
		return nil, checks, err
	}
	o.Features, _ = m.Shape()
	o.Labels.Classes = m.provenance.LabelNames
	src, err := dataset.Open(c.Data, o)
	if err != nil {
		return nil, checks, err
	}
	if _, labels := m.Shape(); src.Info().Labels != labels {
		return nil, checks, fmt.Errorf("%s: %s; the model predicts %d", c.Data, plural(src.Info().Labels, "label"), labels)
	}
	return src, checks, m.fits(c.Data, src)
}

// evaluation is what `coppice evaluate` prints.
type evaluation struct {
	ModelDigest   string          `json:"model_digest"`
	Data          string          `json:"data"`
	Rows          int             `json:"rows"`
	Measures      measures.Report `json:"measures"`
	MeanPredictor measures.Report `json:"mean_predictor"`
	PerRow        []rowMeasures   `json:"per_row,omitempty"`
	Out           string          `json:"out,omitempty"`
}

// rowMeasures are the measures of one row, of the model and of the mean predictor.
type rowMeasures struct {
	Row           string             `json:"row"`
	Measures      map[string]float64 `json:"measures"`
	MeanPredictor map[string]float64 `json:"mean_predictor"`
}

func (e *evaluation) text(w io.Writer) {
	title := fmt.Sprintf("Measures of %s on %s: mean and deviation over %s", short(e.ModelDigest), e.Data, plural(e.Rows, "row"))
	writeMeasures(w, title, e.Measures, e.MeanPredictor)
	if e.Out != "" {
		fmt.Fprintf(w, "\nmeasures of each row: %s\n", e.Out)
	}
}

// perRow returns what takes each row's measures (nil for none) and what ends it.
func (c *evaluateCmd) perRow(a *app, e *evaluation) (take func(row string, model, mean measures.Row) error, finish func(error) error, err error) {
	switch {
	case !c.PerRow:
		return nil, func(err error) error { return err }, nil
	case a.json && c.Out == "":
		return func(row string, model, mean measures.Row) error {
			e.PerRow = append(e.PerRow, rowMeasures{row, byName(model), byName(mean)})
			return nil
		}, func(err error) error { return err }, nil
	case c.Out == "":
		take, finish = rowWriter(a.stdout)
		return take, func(err error) error {
			if err == nil {
				err = finish(nil)
				fmt.Fprintln(a.stdout)
			}
			return err
		}, nil
	}
	f, err := createFile(c.Out)
	if err != nil {
		return nil, nil, err
	}
	e.Out = c.Out
	take, flush := rowWriter(f)
	return take, func(err error) error {
		defer f.discard()
		if err = flush(err); err != nil {
			return err
		}
		return f.commit()
	}, nil
}

func byName(r measures.Row) map[string]float64 {
	m := make(map[string]float64, len(r))
	for i, v := range r {
		m[measures.All[i].Name] = v
	}
	return m
}

// rowWriter writes rows of measures as CSV: the model's, then the mean
// predictor's with the prefix mean_.
func rowWriter(w io.Writer) (take func(row string, model, mean measures.Row) error, finish func(error) error) {
	buffer := bufio.NewWriter(w)
	out := csv.NewWriter(buffer)
	record := []string{"row"}
	for _, prefix := range []string{"", "mean_"} {
		for _, m := range measures.All {
			record = append(record, prefix+m.Name)
		}
	}
	first := out.Write(record)
	take = func(row string, model, mean measures.Row) error {
		record = append(record[:0], row)
		for _, r := range []measures.Row{model, mean} {
			for _, v := range r {
				record = append(record, strconv.FormatFloat(v, 'g', -1, 64))
			}
		}
		return out.Write(record)
	}
	finish = func(err error) error {
		out.Flush()
		return errors.Join(err, first, out.Error(), buffer.Flush())
	}
	return take, finish
}

// evaluate sums the measures of the model and of the mean predictor over src.
func (m *model) evaluate(e *evaluation, src dataset.Source, o dataset.ImportOptions, take func(string, measures.Row, measures.Row) error) error {
	mean := make([]float32, len(m.provenance.MeanLabel))
	for i, v := range m.provenance.MeanLabel {
		mean[i] = float32(v)
	}
	if _, labels := m.Shape(); len(mean) != labels {
		return fmt.Errorf("the model file has no mean label distribution to compare with")
	}
	model, baseline := make([]float64, measures.Width), make([]float64, measures.Width)
	err := m.predict(src, o, func(p *predicted) error {
		for i := range p.rows.N {
			label := p.rows.Label(i)
			measures.Accumulate(model, label, p.row(i))
			measures.Accumulate(baseline, label, mean)
			if take == nil {
				continue
			}
			if err := take(p.name(i), measures.OfRow(label, p.row(i)), measures.OfRow(label, mean)); err != nil {
				return err
			}
		}
		e.Rows += p.rows.N
		return nil
	})
	e.Measures, e.MeanPredictor = measures.FromSums(model), measures.FromSums(baseline)
	return err
}
