package main

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/npy"
)

// writePredictions writes the predictions of all rows, and returns their number.
func (m *model) writePredictions(w io.Writer, f dataset.Format, src dataset.Source, o dataset.ImportOptions) (rows int, err error) {
	switch f {
	case dataset.NPZ:
		return m.predictNPZ(w, src, o)
	case dataset.CSVGZ:
		z := gzip.NewWriter(w)
		rows, err = m.predictCSV(z, src, o)
		return rows, cmp.Or(err, z.Close())
	}
	return m.predictCSV(w, src, o)
}

// predictCSV writes a header and a line for each row.
func (m *model) predictCSV(w io.Writer, src dataset.Source, o dataset.ImportOptions) (rows int, err error) {
	buffer := bufio.NewWriterSize(w, 1<<16)
	out := csv.NewWriter(buffer)
	if err := out.Write(m.header()); err != nil {
		return 0, err
	}
	var record []string
	derived := m.derivation()
	err = m.predict(src, o, func(p *predicted) error {
		for i := range p.rows.N {
			record = append(record[:0], p.name(i))
			for _, v := range p.row(i) {
				record = append(record, valueText(v))
			}
			if err := out.Write(derived.fields(record, p.row(i))); err != nil {
				return err
			}
		}
		rows += p.rows.N
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

// predictNPZ writes the arrays "predictions" (float32, rows x labels or x 1), "label_names",
// what is read off the predictions (see derivedArrays),
// "rows" (int64, numbers in the file) and, where rows have names, "row_names".
func (m *model) predictNPZ(w io.Writer, src dataset.Source, o dataset.ImportOptions) (rows int, err error) {
	if rows, err = dataset.CountRows(src); err != nil {
		return 0, err
	}
	z := npy.NewArchive(w)
	width, derived := m.width(), derivedArrays{derivation: m.derivation()}
	out, err := z.Floats("predictions", rows, width)
	if err != nil {
		return 0, err
	}
	done := 0
	err = m.predict(src, o, func(p *predicted) error {
		done += p.rows.N
		for i := range p.rows.N {
			derived.add(p.row(i))
		}
		return out.Write(p.values[:p.rows.N*width])
	})
	if err == nil {
		err = cmp.Or(out.Flush(), sameRows(done, rows), z.List("label_names", m.classes()), derived.write(z))
	}
	if err == nil {
		err = writeRows(z, src, rows)
	}
	return rows, cmp.Or(err, z.Close())
}

// writeRows writes which rows of the file there are, and their names where they have some.
func writeRows(z *npy.Archive, src dataset.Source, rows int) error {
	if err := dataset.WriteRowNumbers(z, src, rows); err != nil || !src.Info().HasRowNames {
		return err
	}
	return dataset.WriteRowNames(z, src, rows)
}

// sameRows refuses a file that had another number of rows when it was counted.
func sameRows(done, counted int) error {
	if done != counted {
		return fmt.Errorf("%s, then %s: %w", plural(counted, "sample"), plural(done, "sample"), dataset.ErrChanged)
	}
	return nil
}
