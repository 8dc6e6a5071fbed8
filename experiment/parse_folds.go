package experiment

import (
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/experiment/folds"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/internal/yamltree"
	"github.com/coppice-ldl/coppice/job/spec"
)

// foldKeys are the keys of folds. A mapping has exactly one of foldWays, which says how samples are divided.
var (
	foldWays = []string{"k", "sklearn", "groups", "file"}
	foldKeys = slices.Concat(foldWays, []string{"seed", "repeats", "only"})
)

// folds reads how rows are divided: a number, the word groups, or a mapping.
func (s *parser) folds(e entry) Folds {
	f := Folds{Scheme: folds.Scheme{Way: folds.Seeded, Seed: s.Seed, Repeats: 1}, Repeats: 1, At: e.valueAt}
	if text, ok := yamltree.Scalar(e.value); ok {
		if text == folds.Groups {
			f.Scheme = folds.Scheme{Way: folds.Groups}
		} else {
			f.Scheme.Folds = int(s.number(e, 2, spec.MaxFolds))
		}
		return f
	}
	s.foldMapping(&f, e)
	f.Scheme.Repeats = f.Repeats
	if f.Way == folds.Groups || f.Way == folds.File {
		f.Scheme = folds.Scheme{Way: f.Way}
	}
	if err := f.Check(); err != nil {
		s.fail(f.At, "folds: %v", err)
	}
	if n := f.Scheme.Folds * f.Repeats; s.overlapping(&f) && n > dataset.MaxSplits {
		s.fail(f.At, "folds: %s repeats of %s folds make %s splits, want at most %s; folds drawn by the experiment's own seed have no such limit",
			units.Count(f.Repeats), units.Count(f.Scheme.Folds), units.Count(n), units.Count(dataset.MaxSplits))
	}
	return f
}

func (s *parser) foldMapping(f *Folds, mapping entry) {
	way, seeded, before := "", false, len(s.mistakes)
	for _, e := range s.mapping(mapping.value, "folds", foldKeys) {
		switch e.key {
		case "seed":
			f.Seed, seeded = s.seed(e), true
			continue
		case "repeats":
			f.Repeats = int(s.number(e, 1, round.MaxCells))
			continue
		case "only":
			f.Only = s.only(e)
			continue
		case "k":
			f.Scheme.Folds = int(s.number(e, 2, spec.MaxFolds))
		case "sklearn":
			f.Way, f.Scheme.Folds = folds.ScikitLearn, int(s.number(e, 2, spec.MaxFolds))
		case "groups":
			if f.Way = folds.Groups; s.text(e) != "true" {
				s.fail(e.valueAt, "groups: the only possible value is true")
			}
		case "file":
			f.Way, f.File = folds.File, s.text(e)
		}
		if way != "" {
			s.fail(e.at, "folds: the keys %s and %s exclude each other: give one of %s", e.key, way, strings.Join(foldWays, ", "))
		}
		way = e.key
	}
	switch {
	case way == "":
		s.lack(before, f.At, "folds: the key that says how samples are divided is missing: give one of %s", strings.Join(foldWays, ", "))
	case seeded && (f.Way == folds.Groups || f.Way == folds.File):
		s.fail(f.At, "folds: the kind %s has no seed", f.Way)
	}
}

// only reads the numbers of the folds that are run.
func (s *reader) only(e entry) (list []int) {
	for _, n := range s.sequence(e) {
		at := entry{key: e.key, at: e.at, valueAt: placeOf(n), value: n}
		fold := int(s.number(at, 0, spec.MaxFolds-1))
		if slices.Contains(list, fold) {
			s.fail(at.valueAt, "only: fold %d is listed twice", fold)
		}
		list = append(list, fold)
	}
	slices.Sort(list)
	return list
}
