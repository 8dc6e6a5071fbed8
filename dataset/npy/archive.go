package npy

import (
	"archive/zip"
	"compress/flate"
	"io"
)

// Archive writes a .npz file: arrays with names, one after the other.
type Archive struct {
	zip    *zip.Writer
	method uint16
}

// NewArchive begins an archive.
func NewArchive(w io.Writer) *Archive { return &Archive{zip.NewWriter(w), zip.Deflate} }

// PackLess makes the arrays that follow at least an eighth of what they unpack to.
func (a *Archive) PackLess() {
	a.zip.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.HuffmanOnly) })
}

// Store makes the arrays that follow uncompressed.
func (a *Archive) Store() { a.method = zip.Store }

// create begins an array.
func (a *Archive) create(name string) (io.Writer, error) {
	return a.zip.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: a.method})
}

// Floats begins a float32 array; flush it before the next array.
func (a *Archive) Floats(name string, shape ...int) (*Writer[float32], error) {
	return numbers[float32](a, name, shape)
}

// Doubles begins a float64 array; flush it before the next array.
func (a *Archive) Doubles(name string, shape ...int) (*Writer[float64], error) {
	return numbers[float64](a, name, shape)
}

// Ints begins an int64 array; flush it before the next array.
func (a *Archive) Ints(name string, shape ...int) (*Writer[int64], error) {
	return numbers[int64](a, name, shape)
}

func numbers[T float32 | float64 | int64](a *Archive, name string, shape []int) (*Writer[T], error) {
	w, err := a.create(name)
	if err != nil {
		return nil, err
	}
	return NewWriter[T](w, shape...)
}

// Strings writes an array of strings; see WriteStrings.
func (a *Archive) Strings(name string, n int, each func(func(string) error) error) error {
	w, err := a.create(name)
	if err != nil {
		return err
	}
	return WriteStrings(w, n, each)
}

// List writes an array of strings.
func (a *Archive) List(name string, list []string) error {
	return a.Strings(name, len(list), func(f func(string) error) error {
		for _, s := range list {
			if err := f(s); err != nil {
				return err
			}
		}
		return nil
	})
}

// Close ends the archive; w stays open.
func (a *Archive) Close() error { return a.zip.Close() }
