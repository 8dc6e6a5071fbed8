package dataset

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset/images"
)

// imageColumns are the names, in order of preference, of the column of a CSV file that names the
// images.
var imageColumns = []string{"image", "file", "filename", "row_name", "name"}

// imageFiles is a Source whose features are the pixels of image files that a CSV file names.
type imageFiles struct {
	Source
	info   Info
	folder string
}

// checkImages refuses options that do not go with images.
func (o *OpenOptions) checkImages() error {
	channels := o.Shape.Channels
	switch {
	case o.Images == "":
		return nil
	case o.Shape == Shape{}:
		return optionErrorf("images need a size: give --shape, such as 1x32x32 (grey) or 3x32x32 (red, green, blue)")
	case channels != images.Grey && channels != images.RGB:
		return optionErrorf("images have 1 channel (grey) or 3 (red, green, blue); --shape %v says %d", o.Shape, channels)
	case len(o.FeatureColumns)+len(o.Drop) > 0:
		return optionErrorf("the features are the pixels of images: --feature-columns and --drop do not go with --images")
	}
	return nil
}

// withImages gives the rows of a CSV file, whose names are those of files in a folder, the pixels
// of these as features.
func withImages(src Source, o *OpenOptions) (Source, error) {
	if o.Images == "" {
		return src, nil
	}
	s := &imageFiles{Source: src, info: src.Info(), folder: o.Images}
	if !s.info.HasRowNames {
		return nil, fmt.Errorf("%sno column names the images: call it %q, or name it with --row-names", prefix(s.info.File), imageColumns[0])
	}
	if _, err := os.Stat(o.Images); err != nil {
		return nil, err
	}
	s.info.Features, s.info.FeatureNames, s.info.Shape, s.info.slow = o.Shape.Size(), nil, o.Shape, true
	if s.info.Missing.Drop {
		return s, nil
	}
	rows, err := CountRows(src) // so that progress has a percentage
	s.info.Rows = rows
	return s, err
}

// Info implements Source.
func (s *imageFiles) Info() Info { return s.info }

// Scan implements Source.
func (s *imageFiles) Scan(f func(*Row) error) error {
	root, err := os.OpenRoot(s.folder)
	if err != nil {
		return err
	}
	defer root.Close()
	var row Row
	var values []float64
	return s.Source.Scan(func(r *Row) error {
		if r.LeftOut {
			return f(r)
		}
		m, err := s.read(root, strings.TrimSpace(r.Name))
		if err != nil {
			return &RowError{File: s.info.File, Row: r.Number, Line: r.line, Column: -1, Reason: fmt.Sprintf("image %q in %s: %v", r.Name, s.folder, err), Err: err}
		}
		values = values[:0]
		for _, v := range m.Pixels {
			values = append(values, float64(v))
		}
		row = *r
		row.Values = values
		return f(&row)
	})
}

// read reads an image of the folder.
func (s *imageFiles) read(root *os.Root, name string) (*images.Image, error) {
	if name == "" {
		return nil, errors.New("the name is empty")
	}
	info, err := root.Stat(name) // opening a pipe would wait
	if err != nil {
		return nil, reasonOf(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no file")
	}
	in, err := root.Open(name)
	if err != nil {
		return nil, reasonOf(err)
	}
	defer in.Close()
	shape := s.info.Shape
	return images.ReadSized(in, shape.Channels, shape.Height, shape.Width)
}

// reasonOf returns why a file cannot be opened, without its path.
func reasonOf(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// chooseImages takes no column as a feature: the row names are the names of images.
func (c *csvColumns) chooseImages(names []string, given string) error {
	if given != "" {
		return c.chooseRowName(names, given)
	}
	for _, wanted := range imageColumns {
		if i := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, wanted) }); i >= 0 && !c.used[i] {
			c.rowName, c.used[i] = i, true
			return nil
		}
	}
	return c.chooseRowName(names, "")
}
