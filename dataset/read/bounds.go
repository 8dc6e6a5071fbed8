package read

import (
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
)

// withBounds describes the labels of p as targets in the bounds of o. The importer checks each target. A file for a
// model has the model's bounds, see boundsOfModel.
func withBounds(p *pipeline, o *OpenOptions) (*pipeline, error) {
	info := p.info
	bounds := o.Labels.Bounds
	if bounds == nil {
		bounds = new(dataset.Bounds)
	}
	switch {
	case o.set.schema != nil && bounds.Given():
		return nil, dataset.OptionErrorf("{bounds} cannot be changed for a model: leave the option out")
	case info.HasValues || info.HasIntervals:
		return nil, dataset.OptionErrorf("{values} and {intervals} need numeric labels, but {labels=bounded} reads targets")
	}
	if err := bounds.Check(info.Labels, info.LabelNames); err != nil {
		return nil, pathError(info.File, err)
	}
	info.LabelType.Bounds = bounds
	return p.described(info), nil
}

// boundsOfModel gives targets of a file for a model the bounds that were given in training.
func boundsOfModel(p *pipeline, s *dataset.Schema) *pipeline {
	info := p.info
	if info.LabelType.Bounds != nil && s.Bounds != nil {
		info.LabelType.Bounds = s.Bounds
	}
	return p.described(info)
}

// checkBounded returns an error for options that contradict labels of the kind bounded.
func (o *LabelOptions) checkBounded() error {
	switch {
	case o.Kind != dataset.Bounded && o.Bounds != nil && o.Bounds.Given():
		return dataset.OptionErrorf("{bounds} needs {labels=bounded}")
	case o.Kind == dataset.Bounded && o.Ordered:
		return dataset.OptionErrorf("{range} needs ordinal or numeric labels, but {labels=bounded} reads targets: " +
			"{bounds} says which numbers can occur")
	}
	return nil
}

// pairs returns bounds as options have them.
func pairs(b *dataset.Bounds) (all []string) {
	if b == nil {
		return nil
	}
	for i := range b.Low {
		one := dataset.Bounds{Low: b.Low[i : i+1], High: b.High[i : i+1]}
		all = append(all, one.String())
	}
	return slices.Clip(all)
}
