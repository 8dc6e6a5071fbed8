package read

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/images"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// isImageName reports whether a field is the name of an image file by its ending.
func isImageName(field string) bool {
	ending := strings.ToLower(filepath.Ext(strings.TrimSpace(field)))
	return ending == ".png" || ending == ".jpg" || ending == ".jpeg"
}

// columnOfImages is o with --row-names for the column whose values are names of image files, if no flag and no usual
// name in the header says which column names the images. Several such columns are an error.
func (o *OpenOptions) columnOfImages(names []string, records [][]string, width int) (*OpenOptions, error) {
	if o.CSV.RowNames != "" || slices.ContainsFunc(names, isImageColumn) {
		return o, nil
	}
	var found []int
	for i := range width {
		values := 0
		other := slices.ContainsFunc(records, func(record []string) bool {
			if i >= len(record) || numbers.IsMissing(record[i]) {
				return false
			}
			values++
			return !isImageName(record[i])
		})
		if values > 0 && !other {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 0:
		return o, nil
	case 1:
		with := *o
		with.CSV.RowNames = flagColumn(names, found[0])
		return &with, nil
	}
	return nil, imagesError(names, found)
}

// withImages gives the rows of a CSV file, whose names are those of files in a folder, the pixels
// of these as features.
func withImages(p *pipeline, o *OpenOptions) (*pipeline, error) {
	info := p.info
	if !info.HasRowNames {
		return nil, dataset.Errorf(dataset.ErrAmbiguous,
			"%sno column has the names of the images: call the column %q, or give {row-names}; give {header=no} if the first "+
				"line is a row", dataset.Prefix(info.File), imageColumns[0])
	}
	if _, err := os.Stat(o.CSV.Images); err != nil {
		return nil, err
	}
	info.Features, info.FeatureNames, info.Shape, info.Slow = o.Shape.Size(), nil, o.Shape, true
	if !info.Missing.Drop {
		rows, err := importer.CountRows(p) // so that progress has a percentage
		if err != nil {
			return nil, err
		}
		info.Rows = rows
	}
	return p.after(func() (func(*dataset.Row) error, func(error) error, error) {
		root, err := os.OpenRoot(o.CSV.Images)
		if err != nil {
			return nil, nil, err
		}
		folder := imageFolder{root: root, name: o.CSV.Images}
		var values []float64
		change := func(r *dataset.Row) error {
			if r.LeftOut {
				return nil
			}
			m, err := folder.read(strings.TrimSpace(r.Name), o.Shape)
			if err != nil {
				return &dataset.RowError{File: info.File, Row: r.Number, Line: r.Line, Column: -1,
					Reason: errtext.Sprintf("image %q in %s: %v", r.Name, folder.name, err), Err: err}
			}
			values = values[:0]
			for _, v := range m.Pixels {
				values = append(values, float64(v))
			}
			r.Values, r.Turned = values, m.Turned
			return nil
		}
		return change, func(err error) error { root.Close(); return err }, nil
	}, info), nil
}

// read reads an image of the folder.
func (d *imageFolder) read(name string, shape dataset.Shape) (*images.Image, error) {
	switch {
	case name == "":
		return nil, errtext.Errorf(errtext.WrongRow, "the name is empty%s", dataset.DropHint)
	case numbers.IsMissing(name):
		return nil, errtext.Errorf(errtext.WrongRow, "the name is a missing value%s", dataset.DropHint)
	}
	name, err := d.find(name)
	if err != nil {
		return nil, err
	}
	in, err := d.root.Open(name)
	if err != nil {
		return nil, reasonOf(err)
	}
	defer in.Close()
	return images.ReadSized(in, shape.Channels, shape.Height, shape.Width)
}

// imageFolder is the folder of --images. It is for one goroutine.
type imageFolder struct {
	root  *os.Root
	name  string   // as the user named it
	paths []string // absolute ones, with and without links; nil: not known yet
}

// find returns the name of a file in the folder by which a row names it: relative, with the separators of any system,
// or absolute.
func (d *imageFolder) find(name string) (string, error) {
	if d.stat(name) == nil {
		return name, nil
	}
	slashed := strings.ReplaceAll(name, `\`, "/")
	inside := filepath.FromSlash(slashed)
	if filepath.IsAbs(inside) {
		inside = d.inside(inside)
	}
	if inside != "" && inside != name && d.stat(inside) == nil {
		return inside, nil
	}
	return "", d.explain(slashed, inside)
}

// stat returns why a file of the folder cannot be read; nil: it can.
func (d *imageFolder) stat(name string) error {
	info, err := d.root.Stat(name) // opening a pipe would wait
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	return reasonOf(err)
}

// inside returns the name in the folder of an absolute path; empty: it leads elsewhere.
func (d *imageFolder) inside(path string) string {
	if d.paths == nil {
		if abs, err := filepath.Abs(d.name); err == nil {
			d.paths = append(d.paths, abs)
			if real, err := filepath.EvalSymlinks(abs); err == nil && real != abs {
				d.paths = append(d.paths, real)
			}
		}
	}
	for _, folder := range d.paths {
		if name, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(name) {
			return name
		}
	}
	return ""
}

// explain says why there is no file of a name with slashes, which inside is in the folder, and what to do.
func (d *imageFolder) explain(slashed, inside string) error {
	switch {
	case strings.Contains(slashed, "://"):
		return errors.New("it is a web address, not the name of a file")
	case len(slashed) > 2 && slashed[1] == ':' && slashed[2] == '/' && !filepath.IsAbs(slashed),
		strings.HasPrefix(slashed, "//"):
		return errors.New("it is a path on another machine: write the names as they are in the folder" + d.tail(slashed))
	case inside == "":
		return errtext.Errorf(errtext.WrongData, "it is outside the folder%s; give a folder that contains all images with "+
			"{images}", d.tail(slashed))
	case !filepath.IsLocal(inside):
		return errtext.Errorf(errtext.WrongData, "it leads out of the folder: give a folder that contains all images with "+
			"{images}, and write the names as they are in that folder")
	}
	reason := d.stat(inside)
	if !errors.Is(reason, fs.ErrNotExist) {
		real, err := filepath.EvalSymlinks(filepath.Join(d.name, inside))
		if err == nil {
			real, err = filepath.Abs(real)
		}
		if err == nil && d.inside(real) == "" {
			return errors.New("it is a link to a file outside the folder: copy the file into the folder")
		}
		return reason
	}
	if tail := d.tail(slashed); filepath.IsAbs(slashed) && tail != "" {
		return errors.New("it is not in the folder" + tail + ": write the names as they are in the folder")
	}
	if parent := filepath.Dir(filepath.Clean(d.name)); !filepath.IsAbs(slashed) {
		if info, err := os.Stat(filepath.Join(parent, inside)); err == nil && info.Mode().IsRegular() {
			return errtext.Errorf(errtext.WrongData, "%w; the file is in %s: give {images=%s}", reason, parent, parent)
		}
	}
	return reason
}

// tail tells which end of a path is a file of the folder.
func (d *imageFolder) tail(path string) string {
	for {
		_, rest, ok := strings.Cut(path, "/")
		if !ok || rest == "" {
			return ""
		}
		if path = rest; filepath.IsLocal(path) && d.stat(filepath.FromSlash(path)) == nil {
			return ", which contains " + path
		}
	}
}

// reasonOf returns why a file cannot be opened, without its path.
func reasonOf(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
