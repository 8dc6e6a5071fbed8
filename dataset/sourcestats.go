package dataset

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/internal/units"
)

// ImportOptions says how Import, Build and Blocks check rows and report.
type ImportOptions struct {
	Checks
	// Progress, if set, is called repeatedly from the importing goroutine.
	Progress func(Progress)
	// Warn, if set, is called by Import and Build with a sentence for each kind of
	// fault that columns of the data seem to have.
	Warn func(string)
	// Note, if set, gets a line for each decision about how the data is read, once all rows are checked.
	Note func(string)
	// Groups, if set, is called by Import and Build with the group of each row, where the
	// rows have groups.
	Groups func([]uint16)
	// LeftOut, if set, is called by Blocks with the number in the file of each row
	// that is left out for missing values, in order.
	LeftOut func(row int)
	// lacks is called as LeftOut is, with what the row lacks.
	lacks func(lack)
	// Context, if set, can end the work early: the error is its Err, and
	// no files remain.
	Context context.Context
}

// Progress says how far an import is, for display.
type Progress struct {
	Phase string  // "check", "inspect", "read", "sort", "store" or "write"
	Done  int     // rows, or shards for "store"
	Of    int     // -1 where unknown
	Part  float64 // share of the phase that is done, from 0 to 1; -1 where unknown
}

const progressRows = 1 << 8 // rows between two reports

// report calls Progress and returns the error of Context.
func (o *ImportOptions) report(phase string, done, of int) error {
	part := -1.0
	if of > 0 {
		part = float64(done) / float64(of)
	}
	return o.tell(Progress{phase, done, of, part})
}

// reportRow is report after row r. If the number of rows is unknown (of is -1), the share of
// the file that was read says how far the phase is.
func (o *ImportOptions) reportRow(phase string, r *Row, done, of int) error {
	if of > 0 {
		return o.report(phase, done, of)
	}
	return o.tell(Progress{phase, done, of, r.file.readShare()})
}

func (o *ImportOptions) tell(p Progress) error {
	if o.Progress != nil {
		o.Progress(p)
	}
	if o.Context != nil {
		return o.Context.Err()
	}
	return nil
}

// sourceStats is what the first pass over a source computes.
type sourceStats struct {
	info      Info
	rows      int
	nonZeros  int64
	meanLabel []float64
	seen      groupSet
	groups    *Groups // without their rows; nil: there are none
	leftOut   LeftOut
	lastOut   int // the last row in leftOut; -1: none
	rescaled  int // rows whose labels sum to 1 within the tolerance only
	rounded   *roundedFeatures
	lacks     [lacksDegrees + 1]int
	turned    int // images
	totals    totalLabels
}

// scanStats scans src and checks every row.
func scanStats(src Source, o *ImportOptions) (*sourceStats, error) {
	s := &sourceStats{info: src.Info(), lastOut: -1}
	s.seen = newGroupSet(&s.info)
	s.info.Reading.Normalize, s.info.Reading.Tolerance = o.Normalize, o.Tolerance
	if err := s.info.check(); err != nil {
		return nil, err
	}
	s.meanLabel = make([]float64, s.info.Labels)
	watch, first := newFeatureStats(s.info), *o
	first.LeftOut, first.lacks = s.leaveOut, func(what lack) { s.lacks[what]++ }
	err := scanChecked(src, &first, "check", s.info.Rows, func(r *Row, c *checker) error {
		s.add(c)
		if r.turned {
			s.turned++
		}
		watch.add(r)
		return s.seen.add(&s.info, r)
	})
	if err == nil {
		err = s.check()
	}
	var notes []string
	if err == nil {
		s.groups, notes, err = s.seen.sorted()
	}
	if err != nil {
		return nil, err
	}
	for i := range s.meanLabel {
		s.meanLabel[i] /= float64(s.rows)
	}
	if o.Note != nil {
		for _, note := range slices.Concat(s.info.Said(), notes) {
			o.Note(prefix(s.info.File) + note)
		}
	}
	if o.Warn != nil {
		s.warn(watch, o.Warn)
		s.rounded = watch.rounded()
	}
	return s, nil
}

func (s *sourceStats) warn(w *featureStats, warn func(string)) {
	if n := s.leftOut.count(); n > 0 {
		warn(fmt.Sprintf("%s%s of %s samples have missing values and are left out%s; other samples keep their row numbers", prefix(s.info.File), units.Count(n), units.Count(s.rows+n), s.lackText()))
	}
	if total := s.totals.label(2); total >= 0 {
		warn(prefix(s.info.File) + s.info.totalHint(total, "in every sample"))
	}
	if s.turned > 0 {
		warn(prefix(s.info.File) + turnedText(s.turned))
	}
	if s.rescaled > 0 {
		warn(prefix(s.info.File) + rescaledNote(s.rescaled))
	}
	for _, line := range warnings(w.suspects()) {
		warn(prefix(s.info.File) + line)
	}
}

// rescaledNote says that the labels of so many rows were rescaled.
func rescaledNote(rows int) string {
	return fmt.Sprintf("the labels of %s sum to 1 only within the tolerance, so they are divided by their sum", counted(rows, "sample"))
}

// warnRounded says which features had values that are one float32, after the second pass.
func (s *sourceStats) warnRounded(warn func(string)) {
	for _, line := range s.rounded.lines() {
		warn(prefix(s.info.File) + line)
	}
}

// lackText counts the rows that lack something else than a value.
func (s *sourceStats) lackText() string {
	var parts []string
	if n := s.lacks[lacksImage]; n > 0 {
		parts = append(parts, units.Count(n)+" without the name of an image")
	}
	if n := s.lacks[lacksDegrees]; n > 0 {
		parts = append(parts, units.Count(n)+" whose labels are all 0")
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// turnedText says that so many images were turned.
func turnedText(n int) string {
	return "images that are rotated by their EXIF orientation: " + units.Count(n)
}

func (s *sourceStats) add(c *checker) {
	s.rows++
	addTotals(&s.totals, c.labels)
	s.rescaled = c.rescaled
	s.nonZeros += int64(c.nonZeros)
	for i, d := range c.labels {
		s.meanLabel[i] += float64(d)
	}
}

func (s *sourceStats) leaveOut(row int) {
	s.leftOut.add(s.lastOut, row)
	s.lastOut = row
}

// check returns an error if the rows cannot be a dataset.
func (s *sourceStats) check() error {
	switch {
	case len(s.leftOut) > maxLeftOut:
		return fmt.Errorf("%s%s samples would be left out for missing values, more than a dataset can list; remove these samples from the file",
			prefix(s.info.File), units.Count(s.leftOut.count()))
	case s.rows == 0 && len(s.leftOut) > 0:
		return fmt.Errorf("%sall %s samples have missing values, so no sample is left", prefix(s.info.File), units.Count(s.leftOut.count()))
	case s.rows == 0:
		return fmt.Errorf("%sthe file has no samples", prefix(s.info.File))
	}
	return nil
}

// scanChecked scans src and calls f with each row that is not left out, and with the checker
// that has the row's values as float32.
func scanChecked(src Source, o *ImportOptions, phase string, of int, f func(*Row, *checker) error) error {
	c, done := newChecker(src.Info(), o.Checks), 0
	return src.Scan(func(r *Row) error {
		if r.Number != done || done == MaxRows {
			return rowErrorf(c.info.File, r.Number, "the rows are not in order or too many: want row %d of at most %d rows here", done, MaxRows)
		}
		if done++; done%progressRows == 0 || c.info.slow {
			if err := o.reportRow(phase, r, done, of); err != nil {
				return err
			}
		}
		if r.LeftOut {
			if o.LeftOut != nil {
				o.LeftOut(r.Number)
			}
			if o.lacks != nil {
				o.lacks(r.lack)
			}
			return nil
		}
		if err := c.check(r); err != nil {
			return err
		}
		return f(r, c)
	})
}

// manifest returns the manifest without the digests of the shards.
func (s *sourceStats) manifest() *Manifest {
	m := &Manifest{
		Format: ManifestFormat, Rows: s.rows, Features: s.info.Features, Labels: s.info.Labels,
		NonZeros: s.nonZeros, Sparse: SparseStorage(s.rows, s.info.Features, s.nonZeros),
		FeatureNames: s.info.FeatureNames, LabelNames: s.info.LabelNames,
		LabelType: s.info.LabelType, HasValues: s.info.HasValues, HasIntervals: s.info.HasIntervals, Groups: s.groups,
		Shape: s.info.Shape, HasRowNames: s.info.HasRowNames, LabelColumns: s.info.LabelColumns, MeanLabel: s.meanLabel,
		Missing: s.info.Missing.String(), LeftOut: s.leftOut, CountedFrom: s.info.CountedFrom, Reading: s.info.Reading,
	}
	bytes := m.contentBytes()
	m.Shards = make([]ShardRef, ShardCount(m.Rows, bytes))
	return m
}
