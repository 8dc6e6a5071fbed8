package dataset

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/internal/units"
)

// finish returns the inspection.
func (s *inspector) finish() *Inspection {
	found := &Inspection{
		File: s.info.File, Rows: s.read, RowNames: s.info.HasRowNames, Missing: s.missing,
		LabelsAre: s.info.LabelType.String(s.info.Labels), Features: s.info.Features, Labels: s.info.Labels, FeatureColumns: []ColumnSummary{}, LabelColumns: []ColumnSummary{},
		Suspects: s.features.suspects(), Notes: append([]string{}, s.info.Notes...),
	}
	for i, c := range s.features.columns {
		found.FeatureColumns = append(found.FeatureColumns, c.finish(s.read).summary(nameAt(s.info.FeatureNames, i)))
	}
	for i, c := range s.labels {
		found.LabelColumns = append(found.LabelColumns, c.summary(nameAt(s.info.LabelNames, i)))
	}
	if found.Suspects == nil {
		found.Suspects = []Suspect{}
	}
	if s.features.columns == nil {
		found.Notes = append(found.Notes, fmt.Sprintf("the file has more than %s features, so single features were not checked", units.Count(maxStatsColumns)))
	} else if s.rows > 0 && s.features.correlations == nil {
		found.Notes = append(found.Notes, "too many features and labels: features were not compared with labels")
	}
	if s.summed > 0 {
		found.LabelSums = &s.sums
	}
	if s.rescaled > 0 {
		found.Notes = append(found.Notes, rescaledNote(s.rescaled))
	}
	if s.turned > 0 {
		found.Notes = append(found.Notes, turnedText(s.turned))
	}
	err := s.groupsError
	if s.groups != nil {
		_, notes, failed := s.groups.sorted()
		found.Notes, err = append(found.Notes, notes...), cmp.Or(err, failed)
	}
	found.Notes = slices.Concat(found.Notes, s.info.missingWords.notes(), s.info.fractionNote())
	found.Warnings = append(warnings(found.Suspects), s.faults()...)
	if err != nil {
		found.Warnings = append(found.Warnings, err.Error())
	}
	return found
}

func (c columnStats) summary(name string) ColumnSummary {
	s := ColumnSummary{Name: name, Zeros: c.zeros, Missing: c.missing}
	if seen := c.seen > 0 || c.zeros > 0; seen && !math.IsInf(c.low, 0) && !math.IsInf(c.high, 0) {
		low, high := c.low, c.high
		s.Least, s.Most = &low, &high
	}
	return s
}

// faults lists what an import would refuse.
func (s *inspector) faults() (lines []string) {
	if s.read == 0 {
		lines = append(lines, "no samples")
	}
	if s.missing.Rows > 0 {
		lines = append(lines, s.missing.fault())
	}
	if l := s.single; !s.singleLabel && l.seen > 0 && (l.low != 1 || l.high != 1) {
		lines = append(lines, l.single(&s.info))
		s.below, s.empty, s.uneven = rowTally{}, rowTally{}, rowTally{}
	}
	uneven := "--normalize divides the labels of each sample by their sum; --labels tells how to read labels that are not probabilities"
	if s.info.CountedFrom != "" && !slices.ContainsFunc(s.labels, func(c columnStats) bool { return c.fraction }) {
		uneven = classListHint
	}
	if total := s.totals.label(2); total >= 0 {
		uneven = s.info.totalHint(total, "in every sample")
		if s.uneven.n == 0 {
			lines = append(lines, uneven)
		}
	}
	for _, f := range []struct {
		rowTally
		what, hint string
	}{
		{s.below, "with a negative label", "probabilities must be 0 or more: --label-columns lists the label columns, --labels age or class reads a single label column"},
		{s.empty, "whose labels are all 0", "such samples have no label distribution" + dropHint},
		{s.uneven, "whose labels do not sum to 1", uneven},
	} {
		if f.n > 0 {
			lines = append(lines, fmt.Sprintf("found %s %s, the first in row %d; %s", counted(f.n, "sample"), f.what, f.first, f.hint))
		}
	}
	if s.beside > 0 {
		lines = append(lines, fmt.Sprintf("found %s with an invalid exact number, interval or group, such as %v", counted(s.beside, "sample"), s.firstBeside))
	}
	return append(lines, s.nonFinite.faults()...)
}

// fault says how many values are missing, and which options accept them.
func (m *MissingSummary) fault() string {
	hint := Missing{}.hint(ofFeature)
	if m.Labels > 0 || m.Images > 0 {
		hint = dropHint
	}
	var parts []string
	for _, c := range []struct {
		n    int
		noun string
	}{{m.Values, "feature"}, {m.Labels, "label"}, {m.Images, "image name"}} {
		switch {
		case c.n == 1:
			parts = append(parts, "1 missing "+c.noun)
		case c.n > 1:
			parts = append(parts, fmt.Sprintf("%s missing %ss", units.Count(c.n), c.noun))
		}
	}
	return fmt.Sprintf("found %s with missing values: %s%s", counted(m.Rows, "sample"), strings.Join(parts, " and "), hint)
}
