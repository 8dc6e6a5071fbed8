package read

import (
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/matfile"
	"github.com/coppice-ldl/coppice/internal/units"
)

// BesideOptions names what a file has of its rows beside features and labels: columns of a
// CSV file, as LabelOptions.Columns names them, or variables of a .mat or .npz file.
type BesideOptions struct {
	// Values has the exact number of each row on the scale of the labels; it may be the
	// label of kind Age itself.
	Values string
	// Intervals has the least and the greatest number of each row: two names, or none.
	Intervals []string
	// Groups has what each row belongs to, such as a person.
	Groups string
}

// names lists what is named.
func (b *BesideOptions) names() (all []string) {
	for _, name := range append([]string{b.Values, b.Groups}, b.Intervals...) {
		if name != "" {
			all = append(all, name)
		}
	}
	return all
}

// isNumber reports whether a name is that of exact numbers or of an end of their intervals.
func (b *BesideOptions) isNumber(name string) bool {
	return name == b.Values || slices.Contains(b.Intervals, name)
}

// besideSource is a Source whose rows get what arrays have beside their features. The arrays
// are in memory.
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

// textColumn reads an array of one text or number for each row if check has no error for their number.
func (a *array) textColumn(check func(n int) error) (*textColumn, error) {
	r, err := a.begin()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	rows, err := r.Column()
	if err != nil {
		return nil, arrayError(a.name, err)
	}
	if err := check(rows); err != nil {
		return nil, err
	}
	var all textColumn
	for i := range rows {
		text, err := r.text()
		if err == nil {
			err = all.add(text)
		}
		if err != nil {
			return nil, fmt.Errorf("row %d (counted from 0): %w", i, err)
		}
	}
	return &all, nil
}

// column reads an array of one number for each row if check has no error for their number; memory follows the
// bytes that are there.
func (a *array) column(check func(n int) error) (all []float64, err error) {
	r, err := a.begin()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	rows, columns, ok := r.Dims()
	if !ok || columns != 1 || rows > dataset.MaxRows {
		return nil, fmt.Errorf("%q: want one number for each sample: %w", a.name, dataset.ErrFormat)
	}
	if err := check(rows); err != nil {
		return nil, err
	}
	var piece [tablePiece]float64
	for left := rows; left > 0; {
		k := min(left, tablePiece)
		if err := r.read(piece[:k]); err != nil {
			return nil, err
		}
		all, left = append(all, piece[:k]...), left-k
	}
	return all, nil
}

// readMATBeside reads an array of one number or text for each row.
func (o *OpenOptions) readMATBeside(a *matfile.Array, into besideArrays) (err error) {
	if a.Class != matfile.Cell && a.Class != matfile.Char {
		if !isMatrix(a) {
			return matKindError(a, "want one number or one text for each sample", a.Name)
		}
		if min(a.Rows, a.Columns) != 1 || !a.Numeric() {
			return fmt.Errorf("%q: want one number for each sample: %w", a.Name, dataset.ErrFormat)
		}
		if err := checkSize(a.Name, max(a.Rows, a.Columns), 1, 1); err != nil {
			return err
		}
		if err := o.checkItems(a.Name, max(a.Rows, a.Columns), matAdvice); err != nil {
			return err
		}
	}
	var all []float64
	if a.Name != o.Beside.Groups {
		var piece [tablePiece]float64
		for left := a.Rows * a.Columns; left > 0; {
			k := min(left, tablePiece)
			if err := a.Read(piece[:k]); err != nil {
				return err
			}
			all, left = append(all, piece[:k]...), left-k
		}
		into.numbers[a.Name] = all
		return nil
	}
	texts, err := o.matTexts(a)
	if err != nil {
		return err
	}
	if into.texts[a.Name] = texts; !o.Beside.isNumber(a.Name) {
		return nil
	}
	for i := range texts.rows {
		v, err := units.ParseFloat(texts.text(i))
		if err != nil {
			return fmt.Errorf("%q: want one number for each sample: %w", a.Name, dataset.ErrFormat)
		}
		all = append(all, v)
	}
	into.numbers[a.Name] = all
	return nil
}
