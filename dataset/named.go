package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/coppice-ldl/coppice/internal/units"
)

// NamedArrays is how messages call arrays that a JSON object names.
const NamedArrays = "the arrays"

// namedArray is a .npy file and the name of its array.
type namedArray struct{ name, path string }

// IsNamedArrays reports whether Open takes a text for a JSON object with the .npy files of a dataset:
// it begins with {.
func IsNamedArrays(text string) bool { return strings.HasPrefix(text, "{") }

// FilesOf returns the files that Open reads for a text: the .npy files of a JSON object, or the text, which is a path.
func FilesOf(text string) []string {
	if !IsNamedArrays(text) {
		return []string{text}
	}
	arrays, err := parseNamedArrays(text)
	if err != nil {
		return nil // Open returns the error
	}
	var files []string
	for _, a := range arrays {
		files = append(files, a.path)
	}
	return files
}

// calledOf returns how messages call what Open reads.
func calledOf(path string) string {
	if IsNamedArrays(path) {
		return NamedArrays
	}
	return path
}

// parseNamedArrays parses a JSON object of names and paths, such as {"features": "X.npy", "labels": "D.npy"}.
func parseNamedArrays(text string) ([]namedArray, error) {
	if !utf8.ValidString(text) {
		return nil, optionErrorf("%s: the JSON object is not UTF-8", NamedArrays)
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
		return nil, optionErrorf(`%s: %v; want a JSON object with the .npy file of each array, such as {"features": "X.npy", "labels": "D.npy"}`, NamedArrays, err)
	}
	return arrays, nil
}

// decodeNamedArrays decodes the object. Package json would take the last one of several equal keys.
func decodeNamedArrays(d *json.Decoder) (all []namedArray, err error) {
	if t, err := d.Token(); err != nil {
		return nil, err
	} else if t != json.Delim('{') {
		return nil, fmt.Errorf("found %v, want {", t)
	}
	known := make(map[string]bool)
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string) // package json refuses other keys
		if t, err = d.Token(); err != nil {
			return nil, err
		}
		path, ok := t.(string)
		switch {
		case !ok:
			return nil, fmt.Errorf("the array %.40q has the value %.40v, want a text with the path of a .npy file", name, t)
		case name == "" || path == "":
			return nil, fmt.Errorf("the array %.40q with the path %.40q: the name and the path must not be empty", name, path)
		case known[name]:
			return nil, fmt.Errorf("the array %.40q occurs twice", name)
		case len(all) == maxArrays:
			return nil, fmt.Errorf("the object has more than %s arrays", units.Count(maxArrays))
		}
		known[name], all = true, append(all, namedArray{name, path})
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("the object has no arrays")
	}
	return all, nil
}

// measure returns the size of what Open reads: of the file, or of all files of o.arrays.
func (o *OpenOptions) measure(path string) (fileSize, error) {
	if o.arrays == nil {
		return regularSize(path, o.Called, "pass the data on stdin (-), with --data-format")
	}
	var total fileSize
	for _, a := range o.arrays {
		n, err := regularSize(a.path, fmt.Sprintf("%s: array %q", o.Called, a.name), "give a regular file")
		if errors.As(err, new(*fs.PathError)) {
			err = fmt.Errorf("%s: array %q: %w", o.Called, a.name, err)
		}
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// regularSize returns the size of a regular file, and an error if the file is empty. Messages call the file called; advice says
// what to do about a pipe.
func regularSize(path, called, advice string) (fileSize, error) {
	switch info, err := os.Stat(path); {
	case err != nil:
		return 0, err
	case info.IsDir():
		return 0, fmt.Errorf("%s: this is a folder, want a data file", called)
	case info.Mode().IsRegular() && info.Size() == 0:
		return 0, kindErrorf(ErrFormat, "%s: %s", called, emptyFile)
	case info.Mode().IsRegular():
		return fileSize(info.Size()), nil
	}
	return 0, fmt.Errorf("%s: a pipe or device cannot be read twice; %s", called, advice)
}

// openNamed opens the arrays of o.arrays as openNPZ opens those in an archive.
func openNamed(_ string, o *OpenOptions) (Source, error) {
	entries := make(map[string]*array, len(o.arrays))
	for _, a := range o.arrays {
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

// namedKind is the kind of a dataset whose arrays are files.
var namedKind = fileKind{"arrays", npzFiles, false, openNamed}

// kindOfNamed returns namedKind, or an error if o.Format gives another.
func kindOfNamed(o *OpenOptions) (*fileKind, error) {
	if o.Format != "" {
		return nil, optionErrorf("--data-format %s: the files of a JSON object are .npy files; omit --data-format", o.Format)
	}
	return &namedKind, nil
}
