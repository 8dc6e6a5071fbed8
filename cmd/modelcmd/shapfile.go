package modelcmd

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"slices"
	"strconv"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/dataset/write"
	"github.com/coppice-ldl/coppice/job/explain"
	"github.com/coppice-ldl/coppice/job/predict"
)

// shapSink writes the SHAP values of samples to a file, block after block.
type shapSink struct {
	file     cli.Output
	x        *explain.Explainer
	src      dataset.Source
	features []string
	labels   []string

	// A .npz file has the arrays values (float64, samples×features×labels), base_values (float64, labels), data (float32,
	// samples×features), predictions (float32, samples×labels), feature_names, label_names, rows (int64, row numbers in
	// the file) and, if samples have names, row_names.
	archive     *npy.Archive
	values      *npy.Writer[float64]
	predictions []float32
	rows, done  int

	// A CSV file has a line for each sample and label: row, label, base_value, and the value of each feature.
	buffer *bufio.Writer
	csv    *csv.Writer
}

// newSHAPSink begins the file of --out.
func newSHAPSink(a *cli.App, path string, f *cli.FormatFlag, m *predict.Model, x *explain.Explainer,
	src dataset.Source) (*shapSink, error) {
	format, err := f.FormatOf(path)
	if err != nil {
		return nil, err
	}
	out, err := a.CreateOutput(path)
	if err != nil {
		return nil, err
	}
	s := &shapSink{file: cli.Compressed(out, format), x: x, src: src, features: explain.FeatureNames(m),
		labels: m.Labels()}
	if format != write.NPZ {
		s.buffer = bufio.NewWriterSize(s.file, 1<<16)
		s.csv = csv.NewWriter(s.buffer)
		header := []string{"row", "label", "base_value"}
		for _, name := range s.features {
			header = append(header, "shap_"+name)
		}
		s.csv.Write(header) // end returns its error
		return s, nil
	}
	s.archive = npy.NewArchive(s.file)
	if cli.IsDescriptor(path) {
		s.archive.Store()
	}
	if s.rows, err = importer.CountRows(src); err == nil {
		s.values, err = s.archive.Doubles("values", s.rows, x.Features, x.Labels)
	}
	if err != nil {
		s.file.Discard()
	}
	return s, err
}

// take writes a block.
func (s *shapSink) take(b *explain.Explained) error {
	if s.csv == nil {
		s.predictions = append(s.predictions, b.Predictions...)
		s.done += b.Rows.N
		return s.values.Write(b.Values)
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	width := s.x.Features * s.x.Labels
	var record []string
	for i := range b.Rows.N {
		values := b.Values[i*width:][:width]
		for c, label := range s.labels {
			record = append(record[:0], b.Name(i), label, number(s.x.Base[c]))
			for f := range s.features {
				record = append(record, number(values[f*s.x.Labels+c]))
			}
			if err := s.csv.Write(record); err != nil {
				return err
			}
		}
	}
	return nil
}

// end completes the file. It reads the samples of an archive again, for the array data.
func (s *shapSink) end(o importer.Options) error {
	if s.csv != nil {
		s.csv.Flush()
		if err := cmp.Or(s.csv.Error(), s.buffer.Flush()); err != nil {
			return err
		}
		return s.file.Commit()
	}
	z := s.archive
	err := cmp.Or(s.values.Flush(), writeArray(z.Doubles, "base_values", s.x.Base, len(s.labels)))
	if err != nil {
		return err
	}
	data, err := z.Floats("data", s.rows, s.x.Features)
	if err != nil {
		return err
	}
	o.LeftOut = nil // they are counted
	again := 0
	err = importer.Blocks(s.src, 256, o, func(rows *dataset.Rows, names []string) error {
		b := explain.Explained{Block: &explain.Block{Rows: rows, Names: names}}
		for i := range rows.N {
			if err := data.Write(b.Features(i)); err != nil {
				return err
			}
		}
		again += rows.N
		return nil
	})
	if err == nil {
		err = cmp.Or(data.Flush(), writeArray(z.Floats, "predictions", s.predictions, s.rows, len(s.labels)),
			z.List("feature_names", s.features), z.List("label_names", s.labels))
	}
	if err == nil {
		err = predict.WriteRows(z, s.src, min(s.done, again), s.rows)
	}
	if err = cmp.Or(err, z.Close()); err != nil {
		return err
	}
	return s.file.Commit()
}

// writeArray writes an array to an archive.
func writeArray[T float32 | float64](begin func(string, ...int) (*npy.Writer[T], error), name string, values []T,
	shape ...int) error {
	out, err := begin(name, slices.Clone(shape)...)
	if err != nil {
		return err
	}
	return cmp.Or(out.Write(values), out.Flush())
}
