package read

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/coppice-ldl/coppice/dataset"
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
		return nil, dataset.OptionErrorf(`%s: %v; want a JSON object with the .npy file of each array, such as {"features": "X.npy", "labels": "D.npy"}`, NamedArrays, err)
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
