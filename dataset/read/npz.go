package read

import (
	"archive/zip"
	"bufio"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
)

// array is one array of a .npz or .npy file, which can be opened many times.
type array struct {
	name string // for messages
	open func() (in io.ReadCloser, size int64, err error)
	// random opens the bytes for random access, and returns their number.
	random func() (in io.ReaderAt, size int64, err error)
	seeks  io.ReaderAt // what random gave, and how many bytes
	size   int64
	most   int64 // bytes that it may unpack to; 0: it is not packed
	wanted contents
}

// contents is what an array is read as, for messages.
type contents uint8

const (
	asNumbers contents = iota
	asTexts
	asEither
)

// typeError adds to an error about the type of the elements what makes others of them.
func (a *array) typeError(err error) error {
	other := (*npy.TypeError)(nil)
	if !errors.As(err, &other) {
		return err
	}
	var ways []string
	if a.wanted != asTexts && other.Numbers != "" {
		ways = append(ways, other.Numbers+" converts it to numbers")
	}
	if a.wanted != asNumbers && other.Texts != "" {
		ways = append(ways, other.Texts+" converts it to texts")
	}
	if len(ways) == 0 {
		ways = []string{"save numbers as float64 and texts as str"}
	}
	return dataset.Errorf(other, "array elements of type %s cannot be read; in NumPy, for an array x, %s", other.Type, strings.Join(ways, " and "))
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

// begin opens the array at its first element, which has all the elements that its header says.
func (a *array) begin() (*openArray, error) {
	in, size, err := a.open()
	if err != nil {
		return nil, err
	}
	r, err := npy.NewReader(bufio.NewReaderSize(in, 1<<16))
	if err == nil {
		err = a.checkSize(&r.Header, size)
	}
	if err != nil {
		in.Close()
		return nil, arrayError(a.name, a.typeError(err))
	}
	return &openArray{r, in, a.name}, nil
}

// unpackedAdvice says how to write arrays that take more bytes than a packed file may have.
const unpackedAdvice = "write the file with numpy.savez, which does not compress, or write mostly-zero data as .libsvm"

// checkSize compares the bytes of an array with its bound and with its header.
func (a *array) checkSize(h *npy.Header, size int64) error {
	if a.most > 0 && (size < 0 || size > a.most) {
		return expansionError("the array", unpackedAdvice)
	}
	if want, ok := h.Elements(); !ok || int64(h.Size) > 0 && want > (size-h.Bytes)/int64(h.Size) {
		return fmt.Errorf("an array of shape %v with %d bytes for each element does not fit in the %d bytes of the file: %w", h.Shape, h.Size, max(0, size-h.Bytes), npy.ErrTruncated)
	}
	return nil
}

// text reads the next element of an array of strings.
func (r *openArray) text() (string, error) {
	s, err := r.ReadText()
	return s, inexactError(arrayError(r.name, err))
}

func (r *openArray) read(dst []float64) error { return arrayError(r.name, r.ReadFloats(dst)) }

func arrayError(name string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, npy.ErrType) {
		return dataset.Errorf(dataset.ErrFormat, "%q: %w", name, err)
	}
	known := errors.Is(err, npy.ErrFormat) || errors.Is(err, npy.ErrTruncated)
	if known || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, zip.ErrFormat) || errors.Is(err, zip.ErrChecksum) {
		return fmt.Errorf("%q: %w: %w", name, err, dataset.ErrFormat)
	}
	return fmt.Errorf("%q: %w", name, err)
}

// openNPZ opens an archive of arrays; nothing stays open between scans.
func openNPZ(path string, o *OpenOptions) (dataset.Source, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		if errors.Is(err, zip.ErrFormat) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("%w: %w", err, dataset.ErrFormat)
		}
		return nil, fmt.Errorf("%s: %w", o.Called, err)
	}
	defer z.Close()
	if n := len(z.File); n > maxArrays {
		return nil, dataset.Errorf(dataset.ErrFormat, "%s: the archive has %s arrays, at most %s are allowed; write only the arrays of the dataset, with numpy.savez",
			o.Called, units.Count(n), units.Count(maxArrays))
	}
	entries := map[string]*array{}
	for i, e := range z.File {
		name := strings.TrimSuffix(e.Name, ".npy")
		if entries[name] != nil {
			return nil, dataset.Errorf(dataset.ErrAmbiguous, "%s: two arrays are called %q: write the file with only one of them", o.Called, name)
		}
		a := &array{name: name, most: o.size.unpacked(), open: func() (io.ReadCloser, int64, error) { return openEntry(path, i, e.Name) }}
		a.random = a.unpack
		entries[name] = a
	}
	return newArraySource(o.Called, o, entries)
}

// openEntry opens entry i of an archive. It does not look the name up, for which package zip would
// sort all names.
func openEntry(path string, i int, name string) (in io.ReadCloser, size int64, err error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, 0, err
	}
	if i >= len(z.File) || z.File[i].Name != name {
		z.Close()
		return nil, 0, dataset.ErrChanged
	}
	r, err := z.File[i].Open()
	if err != nil {
		z.Close()
		return nil, 0, err
	}
	return &closers{r, []io.Closer{r, z}}, int64(z.File[i].UncompressedSize64), nil
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
func openNPY(path string, o *OpenOptions) (dataset.Source, error) {
	entries := map[string]*array{"features": fileArray(filepath.Base(path), path)}
	if !o.NoLabels {
		labels, err := labelsFile(path, o.LabelsFile)
		if err != nil {
			return nil, err
		}
		entries[o.labelVariables()[0]] = fileArray(filepath.Base(labels), labels)
	}
	return newArraySource(o.Called, o, entries)
}

// openNamed opens the arrays of a JSON object as openNPZ opens the arrays of an archive.
func openNamed(text string, o *OpenOptions) (dataset.Source, error) {
	arrays, err := parseNamedArrays(text)
	if err != nil {
		return nil, err
	}
	entries := make(map[string]*array, len(arrays))
	for _, a := range arrays {
		entries[a.name] = fileArray(a.name, a.path)
	}
	return newArraySource(o.Called, o, entries)
}

// fileArray is the array of a .npy file. Its bytes are read at their offsets: on macOS all descriptors that
// opening /dev/fd/N gives have one offset.
func fileArray(name, path string) *array {
	return &array{
		name: name,
		open: func() (io.ReadCloser, int64, error) {
			f, size, err := openSized(path)
			if err != nil {
				return nil, 0, err
			}
			return &closers{io.NewSectionReader(f, 0, size), []io.Closer{f}}, size, nil
		},
		random: func() (io.ReaderAt, int64, error) { return openSized(path) }, // closed by the garbage collector
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
		return "", errtext.Errorf(errtext.WrongData, "%s: a .npy file of features needs a second file with the labels: give it with {labels-file}, or name the two files "+
			"NAME_features.npy and NAME_labels.npy: %w", path, dataset.ErrNoLabels)
	}
	return folder + base[:i] + "labels" + base[i+len("features"):], nil
}
