package modelcmd

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/dataflags"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/images"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/dataset/write"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/predict"
)

// PredictCmd is `coppice predict`.
type PredictCmd struct {
	Model string `required:"" placeholder:"FILE" help:"Model file."`
	Data  string `placeholder:"FILE" help:"Data file, or a JSON object with the .npy file of each array, or - for stdin; labels in the file are ignored."`
	Image string `placeholder:"FILE" help:"PNG or JPEG image, instead of --data. A model of patches predicts the class of each pixel."`
	Out   string `required:"" placeholder:"FILE" help:"File for the predictions: .csv, .csv.gz, .npz or .parquet; - for stdout. With --image: a .png file with a palette of the classes."`

	intervalFlags
	cli.FormatFlag
	cli.ThreadsFlag
	dataflags.UnseenFlag
	dataflags.FileFlags
}

// Help implements kong's HelpProvider.
func (PredictCmd) Help() string {
	return `Columns are matched with the columns of the model by name, in any order, if both have names. Otherwise they are matched by
position, and the output says so. The output has a column with the probability of each label. A model of classes adds the
most probable class (predicted_class). A model of numeric labels adds the expected number, the median and the mode.
With --interval, there are two more columns for each label: NAME_low and NAME_high.

With --image, the samples of the model must be patches (see dataset patches). The class of each pixel is predicted from
the patch around it; beyond its borders the image is mirrored. -o json has the fraction of each class.`
}

// Run implements `coppice predict`.
func (c *PredictCmd) Run(a *cli.App) error {
	if err := c.ThreadsFlag.Check(); err != nil {
		return err
	}
	if err := cli.CheckNotInput("--out", c.Out, c.Model, c.Data, c.Names, c.Image, c.Calibrate); err != nil {
		return err
	}
	if err := c.intervalFlags.check(a, c.Image); err != nil {
		return err
	}
	switch {
	case (c.Data == "") == (c.Image == ""):
		return cli.Usagef("want a file to predict: give {data=FILE} or {image=FILE}")
	case c.Image != "":
		return c.labelImage(a)
	}
	format, err := c.SamplesFormatOf(c.Out)
	if err != nil {
		return err
	}
	m, err := predict.Open(c.Model)
	if err != nil {
		return err
	}
	m.Threads, m.Store = c.ThreadsFlag.Number(), cli.IsDescriptor(c.Out)
	with, err := c.calibrate(a, m, c.FileFlags, c.UnseenFlag)
	if err != nil {
		return err
	}
	o, _, err := optionsFor(m, &c.FileFlags, nil)
	if err != nil {
		return err
	}
	unseen := c.UnseenFlag.Count(&o)
	path, err := dataflags.File(a, c.Data, &o)
	if err != nil {
		return err
	}
	src, matched, err := read.OpenFor(path, o, m.Schema())
	if err != nil {
		return cli.BadData(err)
	}
	out, err := a.CreateOutput(c.Out)
	if err != nil {
		return err
	}
	out = cli.Compressed(out, format)
	defer out.Discard()
	progress := progress.New(a)
	var dropped dataflags.LeftOut
	reading := progress.Reading(a.Ctx, "predicting", importer.Checks{})
	reading.LeftOut = dropped.Add
	put := m.WriteCSV
	switch format {
	case write.NPZ:
		put = m.WriteNPZ
	case write.Parquet:
		put = m.WriteParquet
	}
	rows, err := put(out, src, reading)
	progress.Clear()
	if err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	dataflags.Tell(a, src)
	r := &predicted{Rows: rows, Out: c.Out, ModelDigest: m.File.Digest, Classes: m.Labels(), Columns: m.Header()[1:],
		Intervals: with, Matched: matched, LeftOut: dropped, Unseen: unseen, Notes: errtext.Strings(src.Info().Said())}
	if text := dropped.String(); text != "" {
		a.Note("%s: %s", src.Info().File, text)
	}
	if text := unseen.String(); text != "" {
		a.Note("%s: %s", src.Info().File, text)
	}
	return a.PrintBeside(c.Out, r, r.text)
}

// predicted is what `coppice predict` prints.
type predicted struct {
	Rows        int               `json:"samples"`
	Out         string            `json:"out"`
	ModelDigest string            `json:"model_digest"`
	Classes     []string          `json:"labels"`
	Columns     []string          `json:"columns"` // of each sample, after its name or number
	Intervals   *intervals        `json:"intervals,omitempty"`
	Matched     *read.Matching    `json:"matched"`
	LeftOut     dataflags.LeftOut `json:"left_out,omitempty"` // rows of the file
	Unseen      *dataflags.Unseen `json:"unseen,omitempty"`   // with --unseen ignore
	Notes       []string          `json:"notes,omitempty"`    // how the file was read
}

func (r *predicted) text(w io.Writer) {
	fmt.Fprintf(w, "%s predicted: %s\n", units.Plural(r.Rows, "sample"), cli.OutputName(r.Out))
	r.Intervals.text(w)
	writeMatching(w, r.Matched)
}

// imageMap is what `coppice predict --image` prints.
type imageMap struct {
	Out         string       `json:"out"`
	ModelDigest string       `json:"model_digest"`
	Width       int          `json:"width"`
	Height      int          `json:"height"`
	Classes     []classShare `json:"classes"`
}

// classShare is the fraction of an image with a class.
type classShare struct {
	Class  string  `json:"class"`
	Pixels int     `json:"pixels"`
	Share  float64 `json:"fraction"`
}

// labelImage predicts the class of each pixel of an image.
func (c *PredictCmd) labelImage(a *cli.App) error {
	if strings.ToLower(filepath.Ext(c.Out)) != ".png" {
		return cli.Usagef("{out=%s}: with {image}, the output is a PNG file, so the name must end in .png", c.Out)
	}
	given := c.Given()
	if c.Format != "" {
		given = append(given, dataset.Flag{Name: "--format"})
	}
	if len(given) > 0 {
		return cli.Usagef("%s needs {data} and is not allowed with {image}", cli.FlagText(given[0].Name))
	}
	m, err := predict.Open(c.Model)
	if err != nil {
		return err
	}
	if m.Output() == algorithms.Number {
		return errtext.Errorf(errtext.WrongRequest, "%s: the model predicts numbers, but {image} needs a model of classes",
			c.Model)
	}
	m.Threads = c.ThreadsFlag.Number()
	src, img, err := m.Patches(c.Image)
	if err != nil {
		return err
	}
	if img.Turned {
		a.Note("%s: the image was rotated as its EXIF orientation says; the map of classes matches the rotated image",
			c.Image)
	}
	palette, err := images.NewPalette(m.Labels())
	if err != nil {
		return fmt.Errorf("%s: %w", c.Model, err)
	}
	progress := progress.New(a)
	var classes []uint8
	err = m.PredictAll(src, progress.Reading(a.Ctx, "predicting", importer.Checks{}), func(p *predict.Block) error {
		for i := range p.Rows.N {
			classes = append(classes, uint8(dataset.Greatest(p.Row(i))))
		}
		return nil
	})
	progress.Clear()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := palette.Write(&b, img.Height, img.Width, classes); err != nil {
		return err
	}
	if err := cli.WriteFile(c.Out, b.Bytes()); err != nil {
		return err
	}
	r := &imageMap{Out: c.Out, ModelDigest: m.File.Digest, Width: img.Width, Height: img.Height,
		Classes: shares(m.Labels(), classes)}
	return a.Print(r, r.text)
}

// shares counts the pixels of each class.
func shares(names []string, classes []uint8) []classShare {
	list := make([]classShare, len(names))
	for i, name := range names {
		list[i].Class = name
	}
	for _, c := range classes {
		list[c].Pixels++
	}
	for i := range list {
		list[i].Share = float64(list[i].Pixels) / float64(len(classes))
	}
	return list
}

func (r *imageMap) text(w io.Writer) {
	fmt.Fprintf(w, "%s written, with the classes of %s x %s pixels (width x height)\n", r.Out, units.Count(r.Width),
		units.Count(r.Height))
	cli.WriteTable(w, []string{"class", "pixels", "fraction"}, r.Classes, func(c classShare) []string {
		return []string{c.Class, units.Count(c.Pixels), fmt.Sprintf("%.4f", c.Share)}
	}, 2, 3)
}
