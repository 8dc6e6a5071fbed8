package read

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/identity"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// maxLevels bounds the levels of one category. maxAllLevels bounds the levels of all categories of a file.
const (
	maxLevels    = 4096
	maxAllLevels = dataset.MaxLabels
)

// findLevels reads the whole file for the levels of the categories that have none yet.
func (s *csvSource) findLevels() error {
	sets := make(map[int]*identity.Set)
	for _, k := range s.columns.categories {
		switch {
		case k == nil:
		case len(k.Levels) == 0:
			sets[k.At] = identity.NewSet(s.info.File, "level")
		default:
			k.known = identity.NewIndex(s.info.File, "level", k.Levels)
		}
	}
	if len(sets) == 0 {
		return nil
	}
	columns := slices.Sorted(maps.Keys(sets)) // of two faults in a row, the first one is told
	var row dataset.Row
	err := s.table.each(func(n int, record []string, r *csvRecords) error {
		if s.leavesOut(record, r) {
			return nil
		}
		row.Number = n
		for _, i := range columns {
			row.Line = r.lineOf(i)
			if numbers.IsMissing(record[i]) {
				continue
			}
			if err := addLevel(sets[i], s.table.dialect.marks.Plain(record[i]), &row); err != nil {
				return s.table.textError(n, i, err, r)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.setLevels(sets)
}

// addLevel adds the level of a row. There are at most maxLevels.
func addLevel(set *identity.Set, text string, r *dataset.Row) error {
	if !set.Add(text, r) {
		return nil
	}
	if len(set.Texts) > maxLevels {
		return errtext.Errorf(errtext.WrongData, "a category has more than %d levels: is the column an identifier? {drop} "+
			"leaves the column out", maxLevels)
	}
	if err := notUTF8("the category's level", text); err != nil {
		return err
	}
	if err := dataset.CheckName(text); err != nil {
		return fmt.Errorf("the category's level %w", err)
	}
	return nil
}

// setLevels gives categories the levels that were found.
func (s *csvSource) setLevels(sets map[int]*identity.Set) error {
	all := 0
	for _, i := range slices.Sorted(maps.Keys(sets)) {
		found, merged, err := sets[i].Resolve()
		if err != nil {
			return s.table.inColumn(err, i)
		}
		k := &s.columns.categories[i].Category
		for _, level := range found {
			k.Levels = append(k.Levels, level.Name)
		}
		all += len(found)
		if len(found) == 0 {
			return dataset.Errorf(dataset.ErrFormat, "%s: the category %q has no values; {drop} leaves the column out",
				s.info.File, k.Name)
		}
		if merged != nil {
			s.info.Notes = append(s.info.Notes, errtext.Sprintf("column %d %q: %s", i, dataset.NameAt(s.table.names, i),
				identity.MergedNote("level", merged)))
		}
		s.columns.categories[i] = &levels{*k, identity.NewIndex(s.info.File, "level", k.Levels)}
	}
	if all > maxAllLevels {
		return dataset.Errorf(dataset.ErrFormat, "%s: all categories together have %d levels, at most %d are allowed",
			s.info.File, all, maxAllLevels)
	}
	return nil
}

// leavesOut reports whether the row of a record is left out for a missing value.
func (s *csvSource) leavesOut(record []string, r *csvRecords) bool {
	if !s.missing.Drop {
		return false
	}
	missing := func(i int) bool { return i >= 0 && isMissing(record, r, i) }
	c := &s.columns
	return slices.ContainsFunc(c.features, missing) || slices.ContainsFunc(c.labels, missing) ||
		slices.ContainsFunc(c.interval, missing) || missing(c.value) || missing(c.group)
}

// parseCategory appends the features of a category to a row.
func (s *csvSource) parseCategory(row *dataset.Row, k *levels, record []string, r *csvRecords) error {
	field, from := record[k.At], len(row.Values)
	if numbers.IsMissing(field) {
		v, err := s.number(row.Number, k.At, dataset.OfFeature, record, r)
		if err != nil {
			return err
		}
		for range k.Levels {
			row.Values = append(row.Values, v)
		}
		return nil
	}
	for range k.Levels {
		row.Values = append(row.Values, 0)
	}
	i, ok, err := k.known.Find(s.table.dialect.marks.Plain(field), row)
	switch {
	case err != nil:
		return s.table.inColumn(err, k.At)
	case ok:
		row.Values[from+i] = 1
	case s.leavesOut(record, r):
	case s.unseen == nil:
		reason := errtext.Sprintf("%.100q is not a level of this category, which has %s levels", strings.TrimSpace(field),
			dataset.ListSome(k.Levels))
		if s.validates {
			reason += errtext.Sprintf(" in the training samples; leave the sample out of the validation samples")
		} else {
			reason += errtext.Sprintf("; {unseen=ignore} sets the category's features to 0")
		}
		return s.table.columnError(row.Number, k.At, reason, r)
	default:
		s.unseen(row.Number, k.Name, strings.TrimSpace(field))
	}
	return nil
}
