package read

import (
	"github.com/coppice-ldl/coppice/dataset"
)

// besideArrays are arrays of a file, by name, that BesideOptions names: numbers or texts.
type besideArrays struct {
	numbers map[string][]float64
	texts   map[string]*textColumn
}

// withBeside gives the rows of src the exact numbers, intervals and groups that o names; missing makes the error for an array that
// the file does not have.
func withBeside(src dataset.Source, o *BesideOptions, a besideArrays, missing func(name, flag string) error) (dataset.Source, error) {
	if len(o.names()) == 0 {
		return src, nil
	}
	info := src.Info()
	info.HasValues, info.HasIntervals, info.HasGroups = o.Values != "", len(o.Intervals) > 0, o.Groups != ""
	var exact [3][]float64 // exact numbers, least, greatest; nil: none
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
		if exact[i] = numbers; len(numbers) != info.Rows {
			return nil, rowCountError(sides{"features", info.Rows, info.Features}, sides{name, len(numbers), 1}, matlabTranspose)
		}
	}
	var groups *textColumn
	if o.Groups != "" {
		if groups = a.texts[o.Groups]; groups == nil {
			return nil, missing(o.Groups, "--groups")
		}
		if len(groups.rows) != info.Rows {
			return nil, rowCountError(sides{"features", info.Rows, info.Features}, sides{o.Groups, len(groups.rows), 1}, matlabTranspose)
		}
	}
	change := func(r *dataset.Row) error {
		for i, numbers := range exact {
			switch {
			case numbers == nil:
			case i == 0:
				r.Value = numbers[r.Number]
			default:
				r.Interval[i-1] = numbers[r.Number]
			}
		}
		if groups != nil {
			r.Group = groups.text(r.Number)
		}
		return nil
	}
	return pipelineOf(src).after(simple(func() func(*dataset.Row) error { return change }), info), nil
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
