package dataflags

import (
	"cmp"

	"github.com/coppice-ldl/coppice/dataset"
)

// AsRead returns the flags with which a file was read. missing is Manifest.Missing. Flags that name other files are
// not known.
func AsRead(r *dataset.Reading, missing string) *DataFlags {
	return &DataFlags{
		FileFlags: FileFlags{
			Labels: string(r.Labels), LabelColumns: r.LabelColumns, LabelPrefix: r.LabelPrefix, RowNames: r.RowNames,
			Header: cmp.Or(string(r.Header), "auto"), FeatureColumns: r.FeatureColumns, Drop: r.Drop,
			Delimiter: r.Delimiter, Decimal: r.Decimal, Thousands: r.Thousands, Encoding: r.Encoding,
			Categories: categoryNames(r), Missing: cmp.Or(r.Missing, missing), FeaturesVariable: r.FeaturesVariable,
			ZeroBased: r.ZeroBased, DataFormat: r.DataFormat,
		},
		Shape: r.Shape.String(), Sigma: r.Sigma, Range: r.Range, Bounds: r.Bounds, Values: r.Values,
		Intervals: r.Intervals, Groups: r.Groups, LabelsVariable: r.LabelsVariable, Normalize: r.Normalize,
		Tolerance: r.Tolerance,
	}
}

func categoryNames(r *dataset.Reading) (names []string) {
	for _, k := range r.Categories {
		names = append(names, k.Name)
	}
	return names
}
