package dataset

import (
	"archive/zip"
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/coppice-ldl/coppice/dataset/npy"
)

// array is one array of a .npz or .npy file, which can be opened many times.
type array struct {
	name string // for messages
	open func() (io.ReadCloser, error)
	// random opens the bytes for random access, and returns their number.
	random func() (in io.ReaderAt, size int64, err error)
	seeks  io.ReaderAt // what random gave
}

// header reads just the array's header.
func (a *array) header() (*npy.Header, error) {
	r, err := a.begin()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return &r.Header, nil
}

type openArray struct {
	*npy.Reader
	io.Closer
	name string
}

func (a *array) begin() (*openArray, error) {
	in, err := a.open()
	if err != nil {
		return nil, err
	}
	r, err := npy.NewReader(bufio.NewReaderSize(in, 1<<16))
	if err != nil {
		in.Close()
		return nil, arrayError(a.name, err)
	}
	return &openArray{r, in, a.name}, nil
}

// text reads the next element of an array of strings.
func (r *openArray) text() (string, error) {
	s, err := r.ReadText()
	return s, arrayError(r.name, err)
}

func (r *openArray) read(dst []float64) error { return arrayError(r.name, r.ReadFloats(dst)) }

func arrayError(name string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, npy.ErrType) {
		return kindErrorf(ErrFormat, "%q: %w", name, err)
	}
	known := errors.Is(err, npy.ErrFormat) || errors.Is(err, npy.ErrTruncated)
	if known || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, zip.ErrFormat) || errors.Is(err, zip.ErrChecksum) {
		return fmt.Errorf("%q: %w: %w", name, err, ErrFormat)
	}
	return fmt.Errorf("%q: %w", name, err)
}

// openNPZ opens an archive of arrays; nothing stays open between scans.
func openNPZ(path string, o *OpenOptions) (Source, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		if errors.Is(err, zip.ErrFormat) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("%w: %w", err, ErrFormat)
		}
		return nil, fmt.Errorf("%s: %w", o.shown(path), err)
	}
	defer z.Close()
	entries := map[string]*array{}
	for _, e := range z.File {
		name := strings.TrimSuffix(e.Name, ".npy")
		a := &array{name: name, open: func() (io.ReadCloser, error) { return openEntry(path, e.Name) }}
		a.random = func() (io.ReaderAt, int64, error) { return a.unpack(int64(e.UncompressedSize64)) }
		entries[name] = a
	}
	return newArraySource(o.shown(path), o, entries)
}

// openEntry opens one entry of an archive.
func openEntry(path, name string) (io.ReadCloser, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	r, err := z.Open(name)
	if err != nil {
		z.Close()
		return nil, err
	}
	return &closers{r, []io.Closer{r, z}}, nil
}

// closers is a Reader that closes several things, in order.
type closers struct {
	io.Reader
	all []io.Closer
}

// Close closes everything.
func (c *closers) Close() (err error) {
	for _, one := range c.all {
		err = errors.Join(err, one.Close())
	}
	return err
}

// openNPY opens a .npy file of features and the .npy file of its labels.
func openNPY(path string, o *OpenOptions) (Source, error) {
	entries := map[string]*array{"features": fileArray(path)}
	if !o.NoLabels {
		labels, err := labelsFile(path, o.LabelsFile)
		if err != nil {
			return nil, err
		}
		entries[o.labelVariables()[0]] = fileArray(labels)
	}
	return newArraySource(o.shown(path), o, entries)
}

func fileArray(path string) *array {
	return &array{
		name:   filepath.Base(path),
		open:   func() (io.ReadCloser, error) { return os.Open(path) },
		random: func() (io.ReaderAt, int64, error) { return openRandom(path) },
	}
}

// labelsFile finds the labels that belong to a file of features.
func labelsFile(path, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	folder, base := filepath.Split(path)
	i := strings.LastIndex(base, "features")
	if i < 0 {
		return "", fmt.Errorf("%s: a .npy file needs a second one with the labels: name it, or call the two "+
			"NAME_features.npy and NAME_labels.npy: %w", path, ErrNoLabels)
	}
	return folder + base[:i] + "labels" + base[i+len("features"):], nil
}
