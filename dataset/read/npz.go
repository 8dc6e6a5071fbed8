package read

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
)

// openNPZ opens an archive of arrays; nothing stays open between scans.
func openNPZ(path string, o *OpenOptions) (dataset.Source, error) {
	if IsNamedArrays(path) {
		return openNamed(path, o)
	}
	z, err := zip.OpenReader(path)
	if err != nil {
		if errors.Is(err, zip.ErrFormat) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("%w: %w", err, dataset.ErrFormat)
		}
		return nil, fmt.Errorf("%s: %w", o.Called, err)
	}
	defer z.Close()
	if n := len(z.File); n > maxArrays {
		return nil, dataset.Errorf(dataset.ErrFormat, "%s: the archive has %s arrays, at most %s are allowed; write only "+
			"the arrays of the dataset, with numpy.savez",
			o.Called, units.Count(n), units.Count(maxArrays))
	}
	entries := map[string]*array{}
	for i, e := range z.File {
		name := strings.TrimSuffix(e.Name, ".npy")
		if entries[name] != nil {
			return nil, dataset.Errorf(dataset.ErrAmbiguous,
				"%s: two arrays are called %q: write the file with only one of them", o.Called, name)
		}
		a := &array{name: name, most: o.set.size.unpacked(), open: func() (io.ReadCloser, int64, error) {
			return openEntry(path, i, e.Name)
		}}
		a.random = a.unpack
		entries[name] = a
	}
	return newArraySource(o.Called, o, numpyArrays(entries))
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

// openNPY opens a .npy file of features and the .npy file of its labels.
func openNPY(path string, o *OpenOptions) (dataset.Source, error) {
	entries := map[string]*array{"features": fileArray(filepath.Base(path), path)}
	if !o.NoLabels {
		labels, err := labelsFile(path, o.Arrays.LabelsFile)
		if err != nil {
			return nil, err
		}
		entries[o.labelVariables()[0]] = fileArray(filepath.Base(labels), labels)
	}
	return newArraySource(o.Called, o, numpyArrays(entries))
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
	return newArraySource(o.Called, o, numpyArrays(entries))
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
		return "", errtext.Errorf(errtext.WrongData, "%s: a .npy file of features needs a second file with the labels: "+
			"give it with {labels-file}, or name the two files "+
			"NAME_features.npy and NAME_labels.npy: %w", path, dataset.ErrNoLabels)
	}
	return folder + base[:i] + "labels" + base[i+len("features"):], nil
}

// namedArray is a .npy file and the name of its array.
type namedArray struct{ name, path string }

// FilesOf returns the files that Open reads for a text: the .npy files of a JSON object, the files of a folder or of a
// pattern, or the text, which is a path. It returns none if Open returns an error.
func FilesOf(text string) (files []string) {
	if !IsNamedArrays(text) {
		files, err := filesOf(text)
		if err != nil && !errors.As(err, new(*fs.PathError)) {
			return nil
		}
		return files
	}
	arrays, err := parseNamedArrays(text)
	if err != nil {
		return nil
	}
	for _, a := range arrays {
		files = append(files, a.path)
	}
	return files
}

// parseNamedArrays parses a JSON object of names and paths, such as {"features": "X.npy", "labels": "D.npy"}.
func parseNamedArrays(text string) ([]namedArray, error) {
	if !utf8.ValidString(text) {
		return nil, dataset.OptionErrorf("%s: the JSON object is not UTF-8", NamedArrays)
	}
	d := json.NewDecoder(strings.NewReader(text))
	arrays, err := decodeNamedArrays(d)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("text follows the end of the JSON object")
		}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil,
			dataset.OptionErrorf(
				`%s: %v; want a JSON object with the .npy file of each array, such as {"features": "X.npy", "labels": "D.npy"}`,
				NamedArrays, err)
	}
	return arrays, nil
}

// decodeNamedArrays decodes the object.
func decodeNamedArrays(d *json.Decoder) (all []namedArray, err error) {
	known := make(map[string]bool)
	err = decodeObject(d, func(name string) error {
		t, err := d.Token()
		if err != nil {
			return err
		}
		path, ok := t.(string)
		switch {
		case !ok:
			return fmt.Errorf("the array %.40q has the value %.40v, want a text with the path of a .npy file", name, t)
		case name == "" || path == "":
			return fmt.Errorf("the array %.40q with the path %.40q: the name and the path must not be empty", name, path)
		case known[name]:
			return fmt.Errorf("the array %.40q occurs twice", name)
		case len(all) == maxArrays:
			return fmt.Errorf("the object has more than %s arrays", units.Count(maxArrays))
		}
		known[name], all = true, append(all, namedArray{name, path})
		return nil
	})
	if err == nil && len(all) == 0 {
		err = errors.New("the object has no arrays")
	}
	return all, err
}
