package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/coppice-ldl/coppice/dataset"
)

// blockRows is how many rows of a file are read and predicted at a time.
const blockRows = 1024

type predictCmd struct {
	Model string `required:"" placeholder:"FILE" help:"Model file."`
	Data  string `placeholder:"FILE" help:"Data file, or - for stdin; labels in the file are ignored."`
	Image string `placeholder:"FILE" help:"PNG or JPEG image, instead of --data. A model of patches predicts the class of each pixel."`
	Out   string `required:"" placeholder:"FILE" help:"File for the predictions: .csv, .csv.gz or .npz; - for stdout. With --image: a .png file with a palette of the classes."`

	formatFlag
	threadsFlag
	unseenFlag
	fileFlags
}

// Help implements kong's HelpProvider.
func (predictCmd) Help() string {
	return `Columns are matched with the columns of the model by name, in any order, if both have names. Otherwise they are matched by
position, and the output says so. The output has a column with the probability of each label. A model of classes adds the
most probable class (predicted_class). A model of numeric labels adds the expected number, the median and the mode.

With --image, the samples of the model must be patches (see dataset patches). The class of each pixel is predicted from
the patch around it; beyond its borders the image is mirrored. -o json has the fraction of each class.`
}

// Run implements `coppice predict`.
func (c *predictCmd) Run(a *app) error {
	if err := c.threadsFlag.check(); err != nil {
		return err
	}
	if err := notAnInput("--out", c.Out, c.Model, c.Data, c.Names, c.Image); err != nil {
		return err
	}
	switch {
	case (c.Data == "") == (c.Image == ""):
		return usagef("want a file to predict: give --data FILE or --image FILE")
	case c.Image != "":
		return c.labelImage(a)
	}
	format, err := c.of(c.Out)
	if err != nil {
		return err
	}
	m, err := openModel(c.Model)
	if err != nil {
		return err
	}
	m.threads = c.threadsFlag.count()
	o, _, err := m.reads(&c.fileFlags, nil)
	if err != nil {
		return err
	}
	unseen := c.unseenFlag.count(&o)
	path, err := a.dataFile(c.Data, &o)
	if err != nil {
		return err
	}
	src, matched, err := dataset.OpenFor(path, o, m.schema())
	if err != nil {
		return err
	}
	out, err := a.createOutput(c.Out)
	if err != nil {
		return err
	}
	defer out.discard()
	progress := newMeter(a.stderr)
	var dropped leftOut
	reading := readingFor(a.ctx, "predicting", dataset.Checks{}, progress)
	reading.LeftOut = dropped.add
	rows, err := m.writePredictions(out, format, src, reading)
	progress.clear()
	if err != nil {
		return err
	}
	if err := out.commit(); err != nil {
		return err
	}
	a.tell(src)
	r := struct {
		Rows        int               `json:"samples"`
		Out         string            `json:"out"`
		ModelDigest string            `json:"model_digest"`
		Classes     []string          `json:"labels"`
		Columns     []string          `json:"columns"` // of each row, after its name or number
		Matched     *dataset.Matching `json:"matched"`
		LeftOut     leftOut           `json:"left_out,omitempty"` // rows of the file
		Unseen      *unseenLevels     `json:"unseen,omitempty"`   // with --unseen ignore
		Notes       []string          `json:"notes,omitempty"`    // how the file was read
	}{rows, c.Out, m.file.Digest, m.classes(), m.header()[1:], matched, dropped, unseen, src.Info().Said()}
	if text := dropped.String(); text != "" {
		a.note("%s: %s", src.Info().File, text)
	}
	if text := unseen.String(); text != "" {
		a.note("%s: %s", src.Info().File, text)
	}
	return a.printBeside(c.Out, r, func(w io.Writer) {
		fmt.Fprintf(w, "%s predicted: %s\n", plural(rows, "sample"), outName(c.Out))
		writeMatching(w, matched)
	})
}

// predicted is a block of rows with the model's predictions.
type predicted struct {
	rows   *dataset.Rows
	names  []string // nil where rows have none
	values []float32
	width  int           // of a row
	done   chan struct{} // the values are there
}

// row returns the prediction of row i of the block.
func (p *predicted) row(i int) []float32 { return p.values[i*p.width : (i+1)*p.width] }

// name returns the name of row i of the block, or its number in the file.
func (p *predicted) name(i int) string {
	if p.names != nil {
		return p.names[i]
	}
	return strconv.FormatUint(uint64(p.rows.Row[i]), 10)
}

// predict predicts the rows of src, block by block, and calls f with one after the other.
func (m *model) predict(src dataset.Source, o dataset.ImportOptions, f func(*predicted) error) error {
	p := newPredictor(m, m.width(), max(1, m.threads), f)
	err := dataset.Blocks(src, blockRows, o, p.add)
	if failed := p.end(); failed != nil {
		return failed
	}
	return err
}
