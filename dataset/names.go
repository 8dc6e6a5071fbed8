package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Names are the contents of a names file (FORMAT.md): a JSON object in which
// each list may be missing.
type Names struct {
	Features []string `json:"features,omitempty"`
	Labels   []string `json:"labels,omitempty"`
	Rows     []string `json:"rows,omitempty"`
}

// ReadNames reads a names file; an unknown key is an error.
func ReadNames(path string) (*Names, error) {
	text, err := ReadText(path)
	if err != nil {
		return nil, err
	}
	return decodeNames(path, bytes.NewReader(text))
}

func decodeNames(path string, in io.Reader) (*Names, error) {
	d := json.NewDecoder(in)
	d.DisallowUnknownFields()
	var n Names
	err := d.Decode(&n)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one JSON value")
		}
	}
	if err != nil {
		return nil, fmt.Errorf(`%s: %w; want {"features": [...], "labels": [...], "rows": [...]}`, path, err)
	}
	return &n, nil
}

func withNamesFile(src Source, path string) (Source, error) {
	n, err := ReadNames(path)
	if err != nil {
		return nil, err
	}
	return WithNames(src, path, n)
}

// WithNames returns src with the names that n has; file is for messages. The
// lists must be as long as what they name.
func WithNames(src Source, file string, n *Names) (Source, error) {
	s := &namedSource{Source: src, file: file, rows: n.Rows, info: src.Info()}
	err := replaceNames(&s.info.FeatureNames, n.Features, s.info.Features, file, "features")
	if s.info.Labels > 0 {
		err = errors.Join(err, replaceNames(&s.info.LabelNames, n.Labels, s.info.Labels, file, "labels"))
	}
	if len(n.Rows) > 0 {
		s.info.HasRowNames = true
		if s.info.Rows >= 0 && s.info.Rows != len(n.Rows) {
			err = errors.Join(err, fmt.Errorf("%s: %d row names for %d rows: %w", file, len(n.Rows), s.info.Rows, ErrRowCount))
		}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func replaceNames(dst *[]string, names []string, want int, file, what string) error {
	if len(names) == 0 {
		return nil
	}
	if len(names) != want {
		return fmt.Errorf("%s: %d names for %d %s", file, len(names), want, what)
	}
	*dst = names
	return nil
}

// distinct refuses names that are not distinct; empty names do not count. what says what
// they name.
func distinct(what string, names []string) error {
	seen := make(map[string]int, len(names))
	for i, name := range names {
		if first, ok := seen[name]; ok && name != "" {
			return fmt.Errorf("%s %d and %d (counted from 0) are both named %q", what, first, i, name)
		}
		seen[name] = i
	}
	return nil
}

// withCleanNames returns src with the names of its columns as cleanNames has them.
func withCleanNames(src Source) Source {
	info := src.Info()
	features, labels := cleanNames(info.FeatureNames), cleanNames(info.LabelNames)
	if slices.Equal(features, info.FeatureNames) && slices.Equal(labels, info.LabelNames) {
		return src
	}
	info.FeatureNames, info.LabelNames = features, labels
	return &namedSource{Source: src, info: info}
}

// namedSource is a Source with other names.
type namedSource struct {
	Source
	file string
	info Info
	rows []string
}

// Info describes the rows with their new names.
func (s *namedSource) Info() Info { return s.info }

// Scan implements Source.
func (s *namedSource) Scan(f func(*Row) error) error {
	if len(s.rows) == 0 {
		return s.Source.Scan(f)
	}
	n, row := 0, Row{}
	err := s.Source.Scan(func(r *Row) error {
		if r.Number >= len(s.rows) {
			return fmt.Errorf("%s: %d row names are too few: %w", s.file, len(s.rows), ErrRowCount)
		}
		n++
		row = *r
		row.Name = s.rows[r.Number]
		return f(&row)
	})
	if err == nil && n != len(s.rows) {
		return fmt.Errorf("%s: %d row names for %d rows: %w", s.file, len(s.rows), n, ErrRowCount)
	}
	return err
}
