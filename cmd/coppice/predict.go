package main

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"github.com/coppice-ldl/coppice/dataset"
)

// blockRows is how many rows of a file are read and predicted at a time.
const blockRows = 1024

type predictCmd struct {
	Model string `required:"" placeholder:"FILE" help:"Model file."`
	Data  string `required:"" placeholder:"FILE" help:"Data file, or - for stdin; labels in it are passed over."`
	Out   string `required:"" placeholder:"FILE" help:"CSV file to write: row, then one column for each class."`

	fileFlags
}

// Run implements `coppice predict`.
func (c *predictCmd) Run(a *app) error {
	m, err := openModel(c.Model)
	if err != nil {
		return err
	}
	o, err := c.options()
	if err != nil {
		return err
	}
	o.NoLabels = true
	if err := m.likeTraining(&o, &c.fileFlags); err != nil {
		return err
	}
	path, err := a.dataFile(c.Data, &o)
	if err != nil {
		return err
	}
	o.Features, _ = m.Shape()
	src, err := dataset.Open(path, o)
	if err != nil {
		return err
	}
	a.tell(src)
	if err := m.fits(c.Data, src); err != nil {
		return err
	}
	out, err := createFile(c.Out)
	if err != nil {
		return err
	}
	defer out.discard()
	progress := newMeter(a.stderr)
	var dropped leftOut
	reading := importOptions(a.ctx, dataset.Checks{}, progress)
	reading.LeftOut = dropped.add
	rows, err := m.writePredictions(out, src, reading)
	progress.clear()
	if err != nil {
		return err
	}
	if err := out.commit(); err != nil {
		return err
	}
	r := struct {
		Rows        int      `json:"rows"`
		Out         string   `json:"out"`
		ModelDigest string   `json:"model_digest"`
		Classes     []string `json:"classes"`
		LeftOut     leftOut  `json:"left_out,omitempty"` // rows of the file
	}{rows, c.Out, m.file.Digest, m.classes(), dropped}
	if text := dropped.String(); text != "" {
		a.note("%s: %s", src.Info().File, text)
	}
	return a.print(r, func(w io.Writer) { fmt.Fprintf(w, "%s predicted: %s\n", plural(rows, "row"), c.Out) })
}

// fits reports a file with other features than the model reads.
func (m *model) fits(path string, src dataset.Source) error {
	if features, _ := m.Shape(); src.Info().Features != features {
		return fmt.Errorf("%s: %s; the model reads %d", path, plural(src.Info().Features, "feature"), features)
	}
	return nil
}

// writePredictions writes the header and a line for each row, and returns the
// number of rows.
func (m *model) writePredictions(w io.Writer, src dataset.Source, o dataset.ImportOptions) (rows int, err error) {
	buffer := bufio.NewWriterSize(w, 1<<16)
	out := csv.NewWriter(buffer)
	if err := out.Write(append([]string{"row"}, m.classes()...)); err != nil {
		return 0, err
	}
	var record []string
	err = m.predict(src, o, func(p *predicted) error {
		for i := range p.rows.N {
			record = append(record[:0], p.name(i))
			for _, v := range p.row(i) {
				record = append(record, strconv.FormatFloat(float64(v), 'g', -1, 32))
			}
			if err := out.Write(record); err != nil {
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

// predicted is a block of rows with the model's predictions.
type predicted struct {
	rows   *dataset.Rows
	names  []string // nil where rows have none
	values []float32
	labels int
}

// row returns the prediction of row i of the block.
func (p *predicted) row(i int) []float32 { return p.values[i*p.labels : (i+1)*p.labels] }

// name returns the name of row i of the block, or its number in the file.
func (p *predicted) name(i int) string {
	if p.names != nil {
		return p.names[i]
	}
	return strconv.FormatUint(uint64(p.rows.Row[i]), 10)
}

// predict predicts the rows of src, block by block.
func (m *model) predict(src dataset.Source, o dataset.ImportOptions, f func(*predicted) error) error {
	p := predicted{}
	_, p.labels = m.Shape()
	scratch := m.NewScratch()
	p.values = make([]float32, blockRows*p.labels)
	refs := make([]dataset.RowRef, blockRows)
	for i := range refs {
		refs[i].Pos = uint32(i)
	}
	return dataset.Blocks(src, blockRows, o, func(rows *dataset.Rows, names []string) error {
		p.rows, p.names = rows, names
		m.Predict(p.values[:rows.N*p.labels], refs[:rows.N], func(uint32) *dataset.Rows { return rows }, scratch)
		return f(&p)
	})
}
