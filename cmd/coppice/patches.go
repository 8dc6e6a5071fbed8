package main

import (
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/dataset/patches"
)

type patchesCmd struct {
	Images     string   `required:"" placeholder:"DIR" help:"Folder with PNG and JPEG images."`
	Maps       string   `required:"" placeholder:"DIR" help:"Folder with a map of classes for each image: a PNG file of the same name and size. Its pixels are classes: palette numbers, levels of grey, or colours."`
	Out        string   `required:"" placeholder:"FILE" help:"File to write: .csv, .csv.gz or .npz."`
	Patch      int      `default:"9" placeholder:"N" help:"Side of a patch in pixels. The class of a patch is the class of the pixel at its centre."`
	Stride     int      `default:"2" placeholder:"N" help:"Distance in pixels from a patch to the next patch."`
	Channels   int      `enum:"1,3" default:"1" help:"Channels of a pixel: 1 (grey) or 3 (red, green, blue)."`
	Ignore     []string `placeholder:"CLASS" help:"Classes, such as 255 or #ffffff, whose pixels never are the centre of a patch."`
	TestImages int      `placeholder:"N" help:"Put the patches of the last N images, by name, into --test-out."`
	TestOut    string   `placeholder:"FILE" help:"File for the patches of --test-images."`

	formatFlag
}

// Help implements kong's HelpProvider.
func (patchesCmd) Help() string {
	return `Patches lie inside their images. The group of a sample is the name of its image. Therefore, with --groups group, neither
--folds groups nor --test-images puts patches of one image into both training and test samples. With a model of patches,
coppice predict --image labels whole images.`
}

// Run implements `coppice dataset patches`.
func (c *patchesCmd) Run(a *app) error {
	o := patches.Options{Cut: patches.Cut{Size: c.Patch, Stride: c.Stride}, Ignore: c.Ignore}
	if err := o.Check(); err != nil {
		return usageError{err}
	}
	if (c.TestImages > 0) != (c.TestOut != "") || c.TestImages < 0 {
		return usagef("--test-images N and --test-out FILE need each other; give both")
	}
	if err := apart(outputFlag{"--out", c.Out}, outputFlag{"--test-out", c.TestOut}); err != nil {
		return err
	}
	for _, path := range []string{c.Out, c.TestOut} {
		if path == "" {
			continue
		}
		if _, err := c.of(path); err != nil {
			return err
		}
	}
	set, err := patches.OpenFolder(c.Images, c.Maps, c.Channels)
	if err != nil {
		return err
	}
	if c.TestImages >= set.Len() {
		return usagef("--test-images %d: there are %s, and --out needs at least one of them", c.TestImages, plural(set.Len(), "image"))
	}
	m := newMeter(a.stderr)
	o.Progress = func(done, of int) error {
		m.show(fmt.Sprintf("%3d %%  reading maps: %s of %s", 100*done/of, count(done), count(of)))
		return a.ctx.Err()
	}
	p, err := patches.New(set, o)
	m.clear()
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

// write writes the rows of all images, or those of the last ones apart.
func (c *patchesCmd) write(a *app, p *patches.Patches) error {
	r := &cutImages{Images: p.Images()}
	put := func(path string, from, to int) (*written, error) {
		src := p.Rows(from, to)
		r.Classes = src.Info().LabelNames
		return writtenAs(path, src), writeData(a, path, &c.formatFlag, src)
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
	if c.TestOut == stdoutName {
		to = stdoutName
	}
	return a.printBeside(to, r, r.text)
}

func (r *cutImages) text(w io.Writer) {
	fmt.Fprintf(w, "%s, classes %s\n", plural(r.Images, "image"), nameList(r.Classes))
	r.Train.text(w)
	if r.Test != nil {
		r.Test.text(w)
	}
}
