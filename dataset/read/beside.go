package read

import (
	"github.com/coppice-ldl/coppice/dataset"
)

// besideSource adds exact numbers, intervals and groups, which arrays in memory have, to the rows of a Source.
type besideSource struct {
	dataset.Source
	info    dataset.Info
	numbers [3][]float64 // exact numbers, least, greatest; nil: none
	groups  *textColumn
}

// besideArrays are arrays of a file, by name, that BesideOptions names: numbers or texts.
type besideArrays struct {
	numbers map[string][]float64
	texts   map[string]*textColumn
}

// withBeside gives the rows of src what o names; missing makes the error for an array that
// the file does not have.
func withBeside(src dataset.Source, o *BesideOptions, a besideArrays, missing func(name, flag string) error) (dataset.Source, error) {
	if len(o.names()) == 0 {
		return src, nil
	}
	s := &besideSource{Source: src, info: src.Info()}
	s.info.HasValues, s.info.HasIntervals, s.info.HasGroups = o.Values != "", len(o.Intervals) > 0, o.Groups != ""
	wanted := append([]string{o.Values}, o.Intervals...)
	for i, name := range wanted {
		if name == "" {
			continue
		}
		flag := "--intervals"
		if i == 0 {
			flag = "--values"
		}
		numbers, ok := a.numbers[name]
		if !ok {
			return nil, missing(name, flag)
		}
		if s.numbers[i] = numbers; len(numbers) != s.info.Rows {
			return nil, rowCountError(sides{"features", s.info.Rows, s.info.Features}, sides{name, len(numbers), 1}, matlabTranspose)
		}
	}
	if o.Groups == "" {
		return s, nil
	}
	texts, ok := a.texts[o.Groups]
	if !ok {
		return nil, missing(o.Groups, "--groups")
	}
	if s.groups = texts; len(texts.rows) != s.info.Rows {
		return nil, rowCountError(sides{"features", s.info.Rows, s.info.Features}, sides{o.Groups, len(texts.rows), 1}, matlabTranspose)
	}
	return s, nil
}

// Info describes the rows.
func (s *besideSource) Info() dataset.Info { return s.info }

// Scan implements Source.
func (s *besideSource) Scan(f func(*dataset.Row) error) error {
	var row dataset.Row
	return s.Source.Scan(func(r *dataset.Row) error {
		row = *r
		for i, numbers := range s.numbers {
			switch {
			case numbers == nil:
			case i == 0:
				row.Value = numbers[r.Number]
			default:
				row.Interval[i-1] = numbers[r.Number]
			}
		}
		if s.groups != nil {
			row.Group = s.groups.text(r.Number)
		}
		return f(&row)
	})
}

// besideArrays reads the arrays of an archive that o.Beside names, which must have a value for each row of the features that
// info describes.
func (o *OpenOptions) besideArrays(entries map[string]*array, info *dataset.Info) (besideArrays, error) {
	a := besideArrays{map[string][]float64{}, map[string]*textColumn{}}
	for _, name := range o.Beside.names() {
		check := func(n int) error {
			if n != info.Rows {
				return rowCountError(sides{"features", info.Rows, info.Features}, sides{name, n, 1}, numpyTranspose)
			}
			return o.checkItems(name, n, unpackedAdvice)
		}
		entry := entries[name]
		if entry == nil {
			continue
		}
		var err error
		if name == o.Beside.Groups {
			a.texts[name], err = entry.textColumn(check)
		}
		if err == nil && o.Beside.isNumber(name) {
			a.numbers[name], err = entry.column(check)
		}
		if err != nil {
			return a, err
		}
	}
	return a, nil
}
