package datasetcmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/dataflags"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/family"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/images"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/patches"
	"github.com/coppice-ldl/coppice/dataset/write"
	"github.com/coppice-ldl/coppice/internal/units"
)

type convertCmd struct {
	Data  string `required:"" placeholder:"FILE" help:"Data file: .mat, .npz, .npy, .csv, .tsv, .libsvm, .arff or .parquet; - for stdin (see --data-format); or a JSON object with the .npy file of each array."`
	Out   string `required:"" placeholder:"FILE.npz" help:"File to write: .npz; - for stdout."`
	Store bool   `seldom:"" help:"Write the arrays uncompressed."`

	dataflags.DataFlags
}

// Help implements kong's HelpProvider.
func (convertCmd) Help() string {
	return `The file has the arrays features and labels, and names if the data has them. Features that are
mostly 0 are the four arrays of a CSR matrix: features_data, features_indices, features_indptr and features_shape. The
output says which flags read the type of the labels, exact numbers, intervals and groups. With these flags, the file has the
same dataset digest as the data.`
}

// converted describes a file that was converted.
type converted struct {
	*written

	Notes []string `json:"notes,omitempty"` // how the data was read
}

// Run implements `coppice dataset convert`.
func (c *convertCmd) Run(a *cli.App) error {
	if f, ok := write.FormatOf(c.Out); !(ok && f == write.NPZ || c.Out == cli.Stdout || cli.IsDirect(c.Out)) {
		return cli.Usagef("{out=%s}: want a name that ends in .npz", c.Out)
	}
	if err := cli.CheckNotInput("--out", c.Out, c.Data, c.Names, c.LabelsFile); err != nil {
		return err
	}
	src, checks, err := c.Open(a, c.Data)
	if err != nil {
		return err
	}
	out, err := a.CreateOutput(c.Out)
	if err != nil {
		return err
	}
	defer out.Discard()
	m := progress.New(a)
	m.Quiet = a.JSON
	how := write.NPZOptions{Store: c.Store || cli.IsDescriptor(c.Out), Lossless: true}
	rows, err := write.WriteNPZ(out, src, m.Reading(a.Ctx, "converting", checks), how)
	m.Clear()
	if err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	r := converted{writtenAs(c.Out, src), m.Notes}
	r.Rows = rows
	return a.PrintBeside(c.Out, r, r.text)
}

type generateCmd struct {
	Kind     string   `enum:"artificial,random,ages,textures,smooth,leaves,interactions,sparse,noisy,ordered" default:"artificial" help:"Kind of dataset. artificial: the set of Geng 2016 with 3 features and 3 labels; random: any size, dense or sparse; ages: images of 32 x 32 pixels that show an age; textures: images of 64 x 64 pixels, each with a map of classes, for dataset patches; smooth, leaves, interactions, sparse, noisy, ordered: datasets for comparing algorithms at any number of samples (docs/reference/data-formats.md)."`
	Out      string   `required:"" placeholder:"FILE" help:"File to write: .csv, .csv.gz, .npz or .parquet; - for stdout. With --kind textures: a folder, in which the folders images and maps are made."`
	Rows     *int     `placeholder:"N" help:"Number of samples (default: 2500; for --kind ages, 2000)."`
	Grid     int      `placeholder:"N" help:"With --kind artificial: a grid of N x N samples instead of random samples, for the colour map of evaluate --figures. Geng 2016 uses 51."`
	Features *int     `placeholder:"N" help:"Number of features for --kind random (default: 100)."`
	Labels   *int     `placeholder:"N" help:"Number of labels for --kind random (default: 10)."`
	Density  *float64 `placeholder:"D" help:"Fraction of feature values that are not 0, for --kind random (default: 1)."`
	Seed     string   `default:"1" help:"Seed."`

	cli.FormatFlag
}

// Run implements `coppice dataset generate`.
func (c *generateCmd) Run(a *cli.App) error {
	seed, err := strconv.ParseUint(c.Seed, 10, 64)
	if err != nil {
		return cli.Usagef("{seed=%s}: want a whole number from 0 to %d", c.Seed, uint64(math.MaxUint64))
	}
	if c.Kind != "random" && (c.Features != nil || c.Labels != nil || c.Density != nil) {
		return cli.Usagef("{features}, {labels} and {density} need {kind=random}: other kinds have a fixed shape")
	}
	switch {
	case c.Grid == 0:
	case c.Kind != "artificial" || c.Rows != nil:
		return cli.Usagef("{grid} needs {kind=artificial}, and excludes {rows}: it gives the number of samples")
	case c.Grid < 2 || c.Grid > dataset.MaxRows/c.Grid:
		return cli.Usagef("{grid=%d}: want a whole number of at least 2, whose square is at most %d", c.Grid, dataset.MaxRows)
	}
	if c.Kind == "textures" {
		return c.textures(a, seed)
	}
	src, err := c.source(seed)
	if err != nil {
		return err
	}
	if err := writeData(a, c.Out, &c.FormatFlag, src); err != nil {
		return err
	}
	r := writtenAs(c.Out, src)
	return a.PrintBeside(c.Out, r, r.text)
}

// written describes a data file that was written.
type written struct {
	Out      string `json:"out"`
	Rows     int    `json:"samples"`
	Features int    `json:"features"`
	Labels   int    `json:"labels"`
	Shape    string `json:"shape,omitempty"`
	Read     string `json:"read,omitempty"` // the flags to read the file
}

func writtenAs(out string, src dataset.Source) *written {
	info := src.Info()
	return &written{Out: out, Rows: info.Rows, Features: info.Features, Labels: info.Labels, Shape: info.Shape.String(),
		Read: strings.Join(write.ReadFlags(&info), " ")}
}

func (r *written) text(w io.Writer) {
	fmt.Fprintf(w, "%s x %s, %s: %s\n", units.Plural(r.Rows, "sample"), units.Plural(r.Features, "feature"),
		units.Plural(r.Labels, "label"), cli.OutputName(r.Out))
	flags := r.Read
	if ending, _ := write.FormatOf(r.Out); r.Shape != "" && ending != write.NPZ {
		flags += " --shape " + r.Shape
	}
	if flags != "" {
		fmt.Fprintf(w, "to read the dataset, give %s\n", strings.TrimSpace(flags))
	}
}

// writeData writes samples to a data file.
func writeData(a *cli.App, path string, f *cli.FormatFlag, src dataset.Source) error {
	format, err := f.SamplesFormatOf(path)
	if err != nil {
		return err
	}
	out, err := a.CreateOutput(path)
	if err != nil {
		return err
	}
	defer out.Discard()
	m := progress.New(a)
	err = write.Write(out, format, src, m.Reading(a.Ctx, "writing", importer.Checks{}),
		write.NPZOptions{Store: cli.IsDescriptor(path)})
	m.Clear()
	if err != nil {
		return err
	}
	return out.Commit()
}

func (c *generateCmd) source(seed uint64) (dataset.Source, error) {
	rows := 2500
	switch {
	case c.Rows != nil:
		rows = *c.Rows
	case c.Kind == "ages":
		rows = generate.AgesRows
	}
	if rows < 1 || rows > dataset.MaxRows {
		return nil, cli.Usagef("{rows=%d}: want a whole number from 1 to %d", rows, dataset.MaxRows)
	}
	switch c.Kind {
	case "artificial":
		if c.Grid > 0 {
			return generate.ArtificialGrid(c.Grid), nil
		}
		return generate.Artificial(rows, seed), nil
	case "ages":
		return generate.Ages(rows, seed), nil
	case "random":
		o := generate.Options{Rows: rows, Features: orDefault(c.Features, 100), Labels: orDefault(c.Labels, 10),
			Density: orDefault(c.Density, 1), Seed: seed}
		src, err := generate.New(o)
		if err != nil {
			return nil, cli.Usage(err)
		}
		return src, nil
	}
	return family.New(c.Kind, rows, seed)
}

// textures writes the images and the maps of the set of textures to a new folder.
func (c *generateCmd) textures(a *cli.App, seed uint64) error {
	if c.Rows != nil || c.Format != "" {
		return cli.Usagef("{rows} and {format} are not allowed with {kind=textures}, which writes %d images",
			patches.TextureImages)
	}
	if err := newFolder(c.Out); err != nil {
		return err
	}
	set := patches.Textures(seed)
	pictures, maps := filepath.Join(c.Out, "images"), filepath.Join(c.Out, "maps")
	_, missing := os.Stat(c.Out)
	if err := writeTextures(a.Ctx, set, pictures, maps); err != nil {
		os.RemoveAll(pictures)
		os.RemoveAll(maps)
		if missing != nil {
			os.Remove(c.Out) // fails if the folder has other files
		}
		return err
	}
	r := struct {
		Images int    `json:"images"`
		Out    string `json:"out"`
	}{set.Len(), c.Out}
	return a.Print(r, func(w io.Writer) {
		fmt.Fprintf(w, "%s, each with a map: %s, %s\n", units.Plural(r.Images, "image"), pictures, maps)
	})
}

// writeTextures writes each image to one folder and its map to another.
func writeTextures(ctx context.Context, set patches.Set, pictures, maps string) error {
	if err := cmp.Or(os.MkdirAll(pictures, 0o777), os.MkdirAll(maps, 0o777)); err != nil {
		return err
	}
	for i := range set.Len() {
		name := set.NameOf(i) + ".png"
		if err := cmp.Or(ctx.Err(), writeImage(filepath.Join(pictures, name), set, i), writeClasses(filepath.Join(maps, name),
			set, i)); err != nil {
			return err
		}
	}
	return nil
}

// newFolder refuses a path that exists, unless it is an empty folder.
func newFolder(path string) error {
	if path == cli.Stdout {
		return cli.Usagef("{out=-}: want a folder for the images, not stdout")
	}
	entries, err := os.ReadDir(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(entries) > 0:
		return fmt.Errorf("%s: the folder is not empty; give the name of a new folder", path)
	}
	return nil
}

func writeImage(path string, set patches.Set, i int) error {
	m, err := set.Image(i)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := images.WriteGrey(&b, patches.Shown(m)); err != nil {
		return err
	}
	return cli.WriteFile(path, b.Bytes())
}

// writeClasses writes the map of an image. Its classes are numbers below 256.
func writeClasses(path string, set patches.Set, i int) error {
	m, err := set.Map(i)
	if err != nil {
		return err
	}
	names, classes := []string{}, make([]uint8, len(m.Classes))
	for i, c := range m.Classes {
		for len(names) <= int(c) {
			names = append(names, strconv.Itoa(len(names)))
		}
		classes[i] = uint8(c)
	}
	p, err := images.NewPalette(names)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := p.Write(&b, m.Height, m.Width, classes); err != nil {
		return err
	}
	return cli.WriteFile(path, b.Bytes())
}

// orDefault returns v, or d if v is nil.
func orDefault[T int | float64](v *T, d T) T {
	if v == nil {
		return d
	}
	return *v
}

type patchesCmd struct {
	Images     string   `required:"" placeholder:"DIR" help:"Folder with PNG and JPEG images."`
	Maps       string   `required:"" placeholder:"DIR" help:"Folder with a map of classes for each image: a PNG file of the same name and size. Its pixels are classes: palette numbers, levels of grey, or colours."`
	Out        string   `required:"" placeholder:"FILE" help:"File to write: .csv, .csv.gz, .npz or .parquet."`
	Patch      int      `default:"9" placeholder:"N" help:"Side of a patch in pixels. The class of a patch is the class of the pixel at its centre."`
	Stride     int      `default:"2" placeholder:"N" help:"Distance in pixels from a patch to the next patch."`
	Channels   int      `enum:"1,3" default:"1" help:"Channels of a pixel: 1 (grey) or 3 (red, green, blue)."`
	Ignore     []string `placeholder:"CLASS" help:"Classes, such as 255 or #ffffff, whose pixels never are the centre of a patch."`
	TestImages int      `placeholder:"N" help:"Put the patches of the last N images, by name, into --test-out."`
	TestOut    string   `placeholder:"FILE" help:"File for the patches of --test-images."`

	cli.FormatFlag
}

// Help implements kong's HelpProvider.
func (patchesCmd) Help() string {
	return `Patches lie inside their images. The group of a sample is the name of its image. Therefore, with --groups group, neither
--folds groups nor --test-images puts patches of one image into both training and test samples. With a model of patches,
coppice predict --image labels whole images.`
}

// Run implements `coppice dataset patches`.
func (c *patchesCmd) Run(a *cli.App) error {
	o := patches.Options{Cut: patches.Cut{Size: c.Patch, Stride: c.Stride}, Ignore: c.Ignore}
	if err := o.Check(); err != nil {
		return cli.Usagef("{patch=%d}, {stride=%d}: %w", c.Patch, c.Stride, err)
	}
	if (c.TestImages > 0) != (c.TestOut != "") || c.TestImages < 0 {
		return cli.Usagef("{test-images=N} and {test-out=FILE} need each other; give both")
	}
	if err := cli.CheckDistinct(cli.OutputFlag{Flag: "--out", Path: c.Out},
		cli.OutputFlag{Flag: "--test-out", Path: c.TestOut}); err != nil {
		return err
	}
	for _, path := range []string{c.Out, c.TestOut} {
		if path == "" {
			continue
		}
		if _, err := c.FormatOf(path); err != nil {
			return err
		}
	}
	set, err := patches.OpenFolder(c.Images, c.Maps, c.Channels)
	if err != nil {
		return err
	}
	if c.TestImages >= set.Len() {
		return cli.Usagef("{test-images=%d}: there are %s, and {out} needs at least one of them", c.TestImages,
			units.Plural(set.Len(), "image"))
	}
	m := progress.New(a)
	o.Progress = func(done, of int) error {
		m.Show(fmt.Sprintf("%3d %%  reading maps: %s of %s", 100*done/of, units.Count(done), units.Count(of)))
		return a.Ctx.Err()
	}
	p, err := patches.New(set, o)
	m.Clear()
	if err != nil {
		return err
	}
	return c.write(a, p)
}

// cutImages is what `coppice dataset patches` prints.
type cutImages struct {
	Images  int      `json:"images"`
	Classes []string `json:"classes"`
	Train   *written `json:"train"`
	Test    *written `json:"test,omitempty"`
}

// write writes the patches of all images, and the patches of the last images to a file of their own.
func (c *patchesCmd) write(a *cli.App, p *patches.Patches) error {
	r := &cutImages{Images: p.Images()}
	put := func(path string, from, to int) (*written, error) {
		src := p.Rows(from, to)
		r.Classes = src.Info().LabelNames
		return writtenAs(path, src), writeData(a, path, &c.FormatFlag, src)
	}
	var err error
	trained := p.Images() - c.TestImages
	if r.Train, err = put(c.Out, 0, trained); err != nil {
		return err
	}
	if c.TestImages > 0 {
		if r.Test, err = put(c.TestOut, trained, p.Images()); err != nil {
			return err
		}
	}
	to := c.Out
	if c.TestOut == cli.Stdout {
		to = cli.Stdout
	}
	return a.PrintBeside(to, r, r.text)
}

func (r *cutImages) text(w io.Writer) {
	fmt.Fprintf(w, "%s, classes %s\n", units.Plural(r.Images, "image"), cli.NameList(r.Classes))
	r.Train.text(w)
	if r.Test != nil {
		r.Test.text(w)
	}
}
