// Package predict predicts with a model file. It reads files with the schema of the model, predicts on several threads,
// and writes predictions as CSV or as an archive of NumPy arrays.
package predict

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/images"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/dataset/parquet"
	"github.com/coppice-ldl/coppice/dataset/patches"
	"github.com/coppice-ldl/coppice/dataset/write"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// Mean returns what the baseline predicts for every sample: the mean label distribution, or the median for a model of
// numbers.
func (m *Model) Mean() ([]float32, error) {
	if m.Output() == algorithms.Number {
		if m.Provenance.Median == nil {
			return nil,
				errors.New("the model file has no median of the training labels, so there is no baseline to compare with")
		}
		return []float32{float32(*m.Provenance.Median)}, nil
	}
	mean := make([]float32, len(m.Provenance.MeanLabel))
	for i, v := range m.Provenance.MeanLabel {
		mean[i] = float32(v)
	}
	if _, labels := m.Shape(); len(mean) != labels {
		return nil, errors.New("the model file has no mean label distribution, so there is no baseline to compare with")
	}
	return mean, nil
}

// Model is a decoded model file.
type Model struct {
	algorithms.Model
	File       *modelfile.File
	Provenance *pipeline.Provenance
	Threads    int        // to predict on; 0 means 1
	Store      bool       // true if predictions in a .npz file are not compressed
	Intervals  *Intervals // that files of predictions have, too; nil: they have none
}

// decodeProvenance decodes the provenance of a model file, which names the job that made the model.
func decodeProvenance(text []byte) (*pipeline.Provenance, error) {
	p := new(pipeline.Provenance)
	if len(text) > 0 {
		if err := json.Unmarshal(text, p); err != nil {
			return nil, fmt.Errorf("%w: provenance: %w", modelfile.ErrCorrupt, err)
		}
	}
	if p.Job == nil {
		return nil, fmt.Errorf("%w: the file does not say which job made the model", modelfile.ErrCorrupt)
	}
	return p, nil
}

// Labels returns the names of the labels that the model predicts.
func (m *Model) Labels() []string {
	_, labels := m.Shape()
	if len(m.Provenance.LabelNames) == labels {
		return m.Provenance.LabelNames
	}
	return defaultLabels(labels)
}

// Output returns what the model predicts.
func (m *Model) Output() algorithms.Output { return registry.Output(m.File.Algorithm) }

// outputWidth returns the number of values that the model predicts for a sample.
func (m *Model) outputWidth() int {
	_, labels := m.Shape()
	return m.Output().Width(labels)
}

// Schema describes the files that the model reads.
func (m *Model) Schema() *dataset.Schema {
	s := &dataset.Schema{
		FeatureNames: m.Provenance.FeatureNames, LabelNames: m.Provenance.LabelNames, LabelColumns: m.Provenance.LabelColumns,
		Shape: m.Provenance.Shape, Reading: m.Provenance.Reading, Fill: m.Provenance.Fill,
		Bounds: m.Provenance.Job.Bounds,
	}
	s.Features, s.Labels = m.Shape()
	return s
}

// TypeOf returns the type of the labels of a file for this model. It is the type that the model was trained on. For
// plain distributions, it is the type that the flags say. Exact numbers of the file are used.
func (m *Model) TypeOf(info dataset.Info) (dataset.LabelType, error) {
	t := m.Provenance.LabelType
	if (t.Bounds == nil) != (info.LabelType.Bounds == nil) {
		_, labels := m.Shape()
		return t, errtext.Errorf(errtext.WrongRequest, "%s: the labels are read as %s, but the model was trained on %s: "+
			"leave {labels} out", info.File, info.LabelType.String(labels), t.String(labels))
	}
	if t.Scale == nil && !t.Classes && t.Bounds == nil {
		t = info.LabelType
	}
	if t.Scale == nil {
		return t, nil
	}
	s := *t.Scale
	switch {
	case info.HasValues:
		s.True = dataset.TrueValue
	case s.True == dataset.TrueValue:
		return t, errtext.Errorf(errtext.WrongRequest, "%s: the model was trained on samples with exact numbers, and its "+
			"errors are measured from such numbers: name their column with {values}", info.File)
	}
	t.Scale = &s
	return t, nil
}

// Patches reads an image as samples of a model: a patch for each pixel.
func (m *Model) Patches(path string) (dataset.Source, *images.Image, error) {
	shape := m.Provenance.Shape
	side, err := patches.CheckModel(shape)
	if err != nil {
		return nil, nil, err
	}
	img, err := patches.OpenImage(path, shape.Channels)
	if err != nil {
		return nil, nil, err
	}
	src, err := patches.Whole(img, side)
	return src, img, err
}

// TargetBounds returns the bounds of the targets that the model predicts, a pair for each label; nil: it predicts none.
func (m *Model) TargetBounds() (*dataset.Bounds, error) {
	b := m.Provenance.LabelType.Bounds
	if b == nil {
		return nil, nil
	}
	if _, labels := m.Shape(); len(b.Low) != labels || len(b.High) != labels {
		return nil, fmt.Errorf("%w: the file does not have the bounds of the targets", modelfile.ErrCorrupt)
	}
	return b, b.Check(len(b.Low), nil)
}

// InUnits returns the model that predicts targets in their units, if it predicts targets.
func (m *Model) InUnits() (algorithms.Model, error) {
	bounds, err := m.TargetBounds()
	if bounds == nil || err != nil {
		return m.Model, err
	}
	return &ofTargets{m.Model, bounds}, nil
}

// NewConformal returns a Conformal without samples. t is the type of the labels of the calibration samples.
func (m *Model) NewConformal(t dataset.LabelType) (*Conformal, error) {
	if t.Classes {
		return nil, errtext.Errorf(errtext.WrongRequest, "the model predicts classes: an interval of a class would have to "+
			"contain 0 or 1, not a probability; {interval} needs a model of distributions, numbers or targets")
	}
	c := &Conformal{scale: t.Scale, number: m.Output() == algorithms.Number}
	add := func(name string, low, high float64) {
		c.names = append(c.names, name)
		c.low, c.high = append(c.low, float64(roundDown(low))), append(c.high, float64(roundUp(high)))
	}
	bounds, err := m.TargetBounds()
	if err != nil {
		return nil, err
	}
	if !c.number {
		for i, name := range m.Labels() {
			if bounds != nil {
				add(name, bounds.Low[i], bounds.High[i])
			} else {
				add(name, 0, 1)
			}
		}
	}
	if s := t.Scale; s != nil {
		_, labels := m.Shape()
		name, high := "expected", float64(s.Low+labels-1)
		if c.number {
			name = "number"
		}
		if s.True == dataset.TrueValue { // the last number of the scale goes up to the next one
			high++
		}
		add(name, float64(s.Low), high)
	}
	c.scores = make([][]float64, len(c.names))
	return c, nil
}

// PredictAll predicts the samples of src, and calls f with one block after the other.
func (m *Model) PredictAll(src dataset.Source, o importer.Options, f func(*Block) error) error {
	by, err := m.InUnits()
	if err != nil {
		return err
	}
	p := newPredictor(by, m.outputWidth(), max(1, m.Threads), f)
	err = importer.Blocks(src, blockRows, o, p.add)
	if failed := p.end(); failed != nil {
		return failed
	}
	return err
}

// WriteCSV writes a header and a line for each sample, and returns the number of samples.
func (m *Model) WriteCSV(w io.Writer, src dataset.Source, o importer.Options) (rows int, err error) {
	buffer := bufio.NewWriterSize(w, 1<<16)
	out := csv.NewWriter(buffer)
	if err := out.Write(m.Header()); err != nil {
		return 0, err
	}
	var record []string
	var ends []float32
	derived := m.derives()
	err = m.PredictAll(src, o, func(p *Block) error {
		for i := range p.Rows.N {
			record = append(record[:0], p.Name(i))
			for _, v := range p.Row(i) {
				record = append(record, valueText(v))
			}
			record = derived.fields(record, p.Row(i))
			if m.Intervals != nil {
				ends = m.Intervals.Of(ends[:0], p.Row(i))
				for _, v := range ends {
					record = append(record, valueText(v))
				}
			}
			if err := out.Write(record); err != nil {
				return err
			}
		}
		rows += p.Rows.N
		return nil
	})
	if err != nil {
		return 0, err
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return 0, err
	}
	return rows, buffer.Flush()
}

// WriteParquet writes the columns of WriteCSV: predictions as float32, and the numbers of rows that have no names as
// int64.
func (m *Model) WriteParquet(w io.Writer, src dataset.Source, o importer.Options) (rows int, err error) {
	names, derived, width := m.Header(), m.derives(), m.outputWidth()
	columns := make([]parquet.WriteColumn, len(names))
	for i, name := range names {
		columns[i] = parquet.WriteColumn{Name: name, Kind: parquet.Float}
	}
	if columns[0].Kind = parquet.Int; src.Info().HasRowNames {
		columns[0].Kind = parquet.Text
	}
	for i := range derived.columns() {
		if columns[1+width+i].Kind = parquet.Double; derived.of.Classes {
			columns[1+width+i].Kind = parquet.Text
		}
	}
	out := parquet.NewWriter(w, columns)
	var ends []float32
	err = m.PredictAll(src, o, func(p *Block) error {
		for i := range p.Rows.N {
			at := 1
			if p.Names != nil {
				out.Text(0, p.Names[i])
			} else {
				out.Int(0, int64(p.Rows.Row[i]))
			}
			number := func(v float64) { out.Number(at, v); at++ }
			for _, v := range p.Row(i) {
				number(float64(v))
			}
			switch {
			case derived.of.Classes:
				out.Text(at, derived.labels[dataset.Greatest(p.Row(i))])
				at++
			case derived.of.Scale != nil:
				var numbers [3]float64
				for _, v := range derived.numbers(numbers[:0], p.Row(i)) {
					number(v)
				}
			}
			if m.Intervals != nil {
				ends = m.Intervals.Of(ends[:0], p.Row(i))
				for _, v := range ends {
					number(float64(v))
				}
			}
			if err := out.Row(); err != nil {
				return err
			}
		}
		rows += p.Rows.N
		return nil
	})
	if err != nil {
		return 0, err
	}
	return rows, out.Close()
}

// WriteNPZ writes the arrays "predictions" (float32, samples x labels or samples x 1), "label_names", the arrays of
// derivedArrays and intervalArrays, "rows" (int64, row numbers in the file) and, if samples have names, "row_names".
func (m *Model) WriteNPZ(w io.Writer, src dataset.Source, o importer.Options) (rows int, err error) {
	if rows, err = importer.CountRows(src); err != nil {
		return 0, err
	}
	z := npy.NewArchive(w)
	if m.Store {
		z.Store()
	}
	width, derived, intervals := m.outputWidth(), derivedArrays{derivation: m.derives()}, intervalArrays{of: m.Intervals}
	out, err := z.Floats("predictions", rows, width)
	if err != nil {
		return 0, err
	}
	done := 0
	err = m.PredictAll(src, o, func(p *Block) error {
		done += p.Rows.N
		for i := range p.Rows.N {
			derived.add(p.Row(i))
			intervals.add(p.Row(i))
		}
		return out.Write(p.values[:p.Rows.N*width])
	})
	if err == nil {
		err = cmp.Or(out.Flush(), z.List("label_names", m.Labels()), derived.write(z), intervals.write(z, width))
	}
	if err == nil {
		err = WriteRows(z, src, done, rows)
	}
	return rows, cmp.Or(err, z.Close())
}

// derives says what is derived from the predictions of the model.
func (m *Model) derives() *derivation {
	d := &derivation{labels: m.Labels()}
	if m.Output() != algorithms.Number {
		d.of = m.Provenance.LabelType
	}
	return d
}

// Header returns the columns of a CSV file of predictions: the row, its prediction, the derived values, and the ends of
// intervals.
func (m *Model) Header() []string {
	others, names := append([]string{"row"}, m.derives().columns()...), []string{"number"}
	if m.Output() != algorithms.Number {
		names = columnNames(m.Labels(), others)
	}
	all := slices.Concat(others[:1], names, others[1:])
	if m.Intervals != nil {
		all = append(all, m.Intervals.columns(names, all)...)
	}
	return all
}

// Open reads a model file.
func Open(path string) (*Model, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := Decode(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// Decode decodes the bytes of a model file.
func Decode(b []byte) (*Model, error) {
	file, m, err := registry.Model(b)
	if err != nil {
		return nil, err
	}
	p, err := decodeProvenance(file.Provenance)
	if err != nil {
		return nil, err
	}
	return &Model{Model: m, File: file, Provenance: p}, nil
}

// defaultLabels returns names for labels without names.
func defaultLabels(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "label_" + strconv.Itoa(i)
	}
	return names
}

// WriteHeldOut writes the true and the predicted distribution of each sample. w compresses if the format says so.
func WriteHeldOut(w io.Writer, f write.Format, s *predictions.Set) error {
	names := s.LabelNames
	if len(names) == 0 {
		names = defaultLabels(s.Labels)
	}
	if f == write.NPZ {
		return heldOutNPZ(w, s, names)
	}
	return heldOutCSV(w, s, names)
}

// heldOutCSV writes a header and a line for each sample.
func heldOutCSV(w io.Writer, s *predictions.Set, names []string) error {
	buffer := bufio.NewWriterSize(w, 1<<16)
	out, all := csv.NewWriter(buffer), heldOutColumns(s, names)
	var record []string
	for _, c := range all {
		record = append(record, c.names...)
	}
	if err := out.Write(record); err != nil {
		return err
	}
	for i := range s.Row {
		record = record[:0]
		for _, c := range all {
			record = c.add(record, i)
		}
		if err := out.Write(record); err != nil {
			return err
		}
	}
	out.Flush()
	return cmp.Or(out.Error(), buffer.Flush())
}

// columns are columns of a CSV file.
type columns struct {
	names []string
	add   func(record []string, i int) []string // appends the values of sample i
}

// heldOutColumns lists the columns row, name and fold, if samples have names and folds. Then come true_ and
// predicted_ columns for each label (or the predicted number), the true class or number, and what is derived from the
// prediction.
func heldOutColumns(s *predictions.Set, labels []string) (all []columns) {
	put := func(there bool, names []string, add func(record []string, i int) []string) {
		if there {
			all = append(all, columns{names, add})
		}
	}
	distinct := columnNames(labels, []string{"class", "number"}) // labels of these names would have the same columns
	ofLabels := func(prefix string) (names []string) {
		for _, name := range distinct {
			names = append(names, prefix+name)
		}
		return names
	}
	texts := func(record []string, values []float32) []string {
		for _, v := range values {
			record = append(record, valueText(v))
		}
		return record
	}
	predicted, derived := ofLabels("predicted_"), heldOutDerivation(s, labels)
	if s.Number {
		predicted = []string{"number"}
	}
	put(true, []string{"row"}, func(r []string, i int) []string {
		return append(r, strconv.FormatUint(uint64(s.Row[i]), 10))
	})
	put(len(s.Names) > 0, []string{"name"}, func(r []string, i int) []string { return append(r, s.Names[i]) })
	put(len(s.Fold) > 0, []string{"fold"}, func(r []string, i int) []string {
		return append(r, strconv.Itoa(int(s.Fold[i])))
	})
	put(true, ofLabels("true_"), func(r []string, i int) []string { return texts(r, s.TruthOf(i)) })
	put(true, predicted, func(r []string, i int) []string { return texts(r, s.PredictedOf(i)) })
	put(s.Type.Classes, []string{"true_class"}, func(r []string, i int) []string {
		return append(r, labels[dataset.Greatest(s.TruthOf(i))])
	})
	put(len(s.True) > 0, []string{"true_number"}, func(r []string, i int) []string {
		return append(r, units.InFull(s.True[i]))
	})
	put(true, derived.columns(), func(r []string, i int) []string { return derived.fields(r, s.PredictedOf(i)) })
	return all
}

// heldOutDerivation says what is derived from the predictions of a set.
func heldOutDerivation(s *predictions.Set, names []string) *derivation {
	if s.Number {
		return &derivation{}
	}
	return &derivation{of: s.Type, labels: names}
}

// heldOutNPZ writes the arrays "rows" and "folds" (int64), "labels" and "predictions" (float32, samples x labels), the
// arrays of heldOutTruth, "label_names" and "row_names".
func heldOutNPZ(w io.Writer, s *predictions.Set, names []string) error {
	z := npy.NewArchive(w)
	err := writeInts(z, "rows", s.Row)
	if err == nil && len(s.Fold) > 0 {
		err = writeInts(z, "folds", s.Fold)
	}
	err = cmp.Or(err,
		writeFloats(z, "labels", s.Truth, s.Labels), writeFloats(z, "predictions", s.Predicted, s.Width()),
		heldOutTruth(z, s, names),
		z.List("label_names", names),
	)
	if err == nil && len(s.Names) > 0 {
		err = z.List("row_names", s.Names)
	}
	return cmp.Or(err, z.Close())
}

// heldOutTruth writes the true classes (true_class, int64) or the true numbers (true_number, float32), and what is
// derived from the predictions.
func heldOutTruth(z *npy.Archive, s *predictions.Set, names []string) error {
	derived := derivedArrays{derivation: heldOutDerivation(s, names)}
	var classes []int32
	var numbers []float32
	for i := range s.Row {
		derived.add(s.PredictedOf(i))
		if s.Type.Classes {
			classes = append(classes, int32(dataset.Greatest(s.TruthOf(i))))
		}
		if len(s.True) > 0 {
			numbers = append(numbers, float32(s.True[i]))
		}
	}
	var err error
	if s.Type.Classes {
		err = writeInts(z, "true_class", classes)
	}
	if err == nil && numbers != nil {
		err = writeFloats(z, "true_number", numbers, 1)
	}
	return cmp.Or(err, derived.write(z))
}
