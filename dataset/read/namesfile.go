package read

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/identity"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// Names are the contents of a names file (FORMAT.md): a JSON object in which
// each list may be missing.
type Names struct {
	Features []string `json:"features,omitempty"`
	Labels   []string `json:"labels,omitempty"`
	Rows     []string `json:"rows,omitempty"`
}

// decode reads an object. Package json takes "LABELS" for "labels", and the last one of several equal keys.
func (n *Names) decode(d *json.Decoder) error {
	lists := map[string]*[]string{"features": &n.Features, "labels": &n.Labels, "rows": &n.Rows}
	switch t, err := d.Token(); {
	case err != nil:
		return err
	case t != json.Delim('{'):
		return fmt.Errorf("found %v, want a JSON object", t)
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		key := fmt.Sprint(t)
		list, known := lists[key]
		exact := strings.ToLower(key)
		switch _, alike := lists[exact]; {
		case known && list == nil:
			return dataset.Errorf(dataset.ErrAmbiguous, "the key %q occurs twice", key)
		case !known && alike:
			return dataset.Errorf(dataset.ErrAmbiguous, "the key %q is unknown: write %q", key, exact)
		case !known:
			return fmt.Errorf("the key %.40q is unknown", key)
		}
		if err := d.Decode(list); err != nil {
			return err
		}
		lists[key] = nil
	}
	_, err := d.Token()
	return err
}

// nameLabels gives labels their names.
func (n *Names) nameLabels(info *dataset.Info, file string) error {
	if own := info.LabelNames; len(n.Labels) == len(own) && (info.LabelType.Classes || info.LabelType.Scale != nil) {
		order, known := orderOf(own, n.Labels)
		switch {
		case order != nil && (info.LabelType.Classes || slices.Equal(order, own)):
			return nil
		case known == 0 && identity.AreNumbers(own):
			info.LabelNames = n.Labels
			return nil
		}
		i := dataset.FirstDifference(own, n.Labels)
		return dataset.Errorf(dataset.ErrAmbiguous, "%s: label %d (counted from 0) is %q, but %sthe classes or numbers are %s: list exactly these classes or numbers, in the order of the labels, "+
			"or omit \"labels\"", file, i, n.Labels[i], dataset.Prefix(info.File), dataset.ListSome(own))
	}
	return nameColumns(&info.LabelNames, n.Labels, info.Labels, "labels", file, info.File)
}

// ReadNames reads a names file; an unknown key is an error, as is a key that is there twice.
func ReadNames(path string) (*Names, error) {
	text, err := ReadText(path)
	if err != nil {
		return nil, err
	}
	return decodeNames(path, bytes.NewReader(text))
}

func decodeNames(path string, in io.Reader) (*Names, error) {
	d := json.NewDecoder(in)
	n := new(Names)
	err := n.decode(d)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("the file has more than one JSON value")
		}
	}
	if err != nil {
		return nil, fmt.Errorf(`%s: %w; want {"features": [...], "labels": [...], "rows": [...]}`, path, err)
	}
	return n, nil
}

// WithNames returns src with the names that n has; file is for messages. The lists must be as long as what they
// name. Names that src has of its own must be the same. Names of classes may also be the classes in another order, which is
// not that of src then, or, if all classes are numbers, other texts.
func WithNames(src dataset.Source, file string, n *Names) (dataset.Source, error) {
	p := pipelineOf(src)
	info := p.info
	err := nameColumns(&info.FeatureNames, n.Features, info.Features, "features", file, info.File)
	if info.Labels > 0 {
		err = errors.Join(err, n.nameLabels(&info, file))
	}
	if len(n.Rows) > 0 && info.Rows >= 0 && info.Rows != len(n.Rows) {
		err = errors.Join(err, fmt.Errorf("%s: found %d row names, want %d, one for each row: %w", file, len(n.Rows), info.Rows, dataset.ErrRowCount))
	}
	if err != nil {
		return nil, err
	}
	if len(n.Rows) == 0 {
		return p.described(info), nil
	}
	own := info.HasRowNames
	info.HasRowNames = true
	return p.after(func() (func(*dataset.Row) error, func(error) error, error) {
		rows := 0
		change := func(r *dataset.Row) error {
			if r.Number >= len(n.Rows) {
				return fmt.Errorf("%s: the list has %d row names, fewer than there are rows: %w", file, len(n.Rows), dataset.ErrRowCount)
			}
			if name := strings.TrimSpace(r.Name); own && name != "" && name != strings.TrimSpace(n.Rows[r.Number]) {
				return &dataset.RowError{File: info.File, Row: r.Number, Line: r.Line, Column: -1, Err: dataset.ErrAmbiguous,
					Reason: errtext.Sprintf("the name of this row is %.40q, but %.40q in %s: give the names of the file, or omit \"rows\"", name, n.Rows[r.Number], file)}
			}
			rows++
			r.Name = n.Rows[r.Number]
			return nil
		}
		end := func(err error) error {
			if err == nil && rows != len(n.Rows) {
				return fmt.Errorf("%s: found %d row names, want %d, one for each row: %w", file, len(n.Rows), rows, dataset.ErrRowCount)
			}
			return err
		}
		return change, end, nil
	}, info), nil
}

// nameColumns gives columns their names if they have no others. Errors call the columns what, the file of names file, and the
// file of the columns data.
func nameColumns(own *[]string, names []string, want int, what, file, data string) error {
	switch {
	case len(names) == 0:
		return nil
	case len(names) != want:
		return fmt.Errorf("%s: found %d names for %d %s", file, len(names), want, what)
	}
	for i, name := range *own {
		if given := strings.TrimSpace(names[i]); strings.TrimSpace(name) != "" && given != strings.TrimSpace(name) {
			return dataset.Errorf(dataset.ErrAmbiguous, "%s: %s %d (counted from 0) is %q, but %sits name is %q: give the names and the order of the file, or omit %q",
				file, strings.TrimSuffix(what, "s"), i, given, dataset.Prefix(data), name, what)
		}
	}
	*own = names
	return nil
}

// orderOf returns the identities in the order of names, or nil if these are not all of them, each once. known counts
// the names that are identities.
func orderOf(identities, names []string) (order []string, known int) {
	index, used := identity.NewIndex("", "class", identities), make([]bool, len(identities))
	for _, name := range names {
		i, ok, err := index.Find(strings.TrimSpace(name), &dataset.Row{})
		if !ok && err == nil {
			continue
		}
		if known++; ok && !used[i] {
			order, used[i] = append(order, identities[i]), true
		}
	}
	if len(order) < len(identities) || known < len(names) {
		return nil, known
	}
	return order, known
}
