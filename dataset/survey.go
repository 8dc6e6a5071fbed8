package dataset

import (
	"context"
	"fmt"
)

// ImportOptions says how Import, Build and Blocks check rows and report.
type ImportOptions struct {
	Checks
	// Progress, where set, is called now and then from the importing goroutine.
	Progress func(Progress)
	// Context, where set, ends the work early: the error is its Err, and
	// nothing remains.
	Context context.Context
}

// Progress tells how far an import is, for people.
type Progress struct {
	Phase string // "check", "sort" or "write"
	Done  int    // rows, or shards for "write"
	Of    int    // -1 where unknown
}

const progressRows = 1 << 12 // rows between two reports

func (o *ImportOptions) report(phase string, done, of int) error {
	if o.Progress != nil {
		o.Progress(Progress{phase, done, of})
	}
	if o.Context != nil {
		return o.Context.Err()
	}
	return nil
}

// survey is what the first pass over a source finds.
type survey struct {
	info      Info
	rows      int
	nonZeros  int64
	meanLabel []float64
}

// newSurvey checks every row of src.
func newSurvey(src Source, o *ImportOptions) (*survey, error) {
	s := &survey{info: src.Info()}
	if err := s.info.check(); err != nil {
		return nil, err
	}
	s.meanLabel = make([]float64, s.info.Labels)
	err := scanChecked(src, o, "check", s.info.Rows, func(_ *Row, c *checker) error {
		s.rows++
		s.nonZeros += int64(c.nonZeros)
		for i, d := range c.labels {
			s.meanLabel[i] += float64(d)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if s.rows == 0 {
		return nil, fmt.Errorf("%sno rows", prefix(s.info.File))
	}
	for i := range s.meanLabel {
		s.meanLabel[i] /= float64(s.rows)
	}
	return s, nil
}

// scanChecked scans src and hands each row on together with the checker that
// holds it in float32.
func scanChecked(src Source, o *ImportOptions, phase string, of int, f func(*Row, *checker) error) error {
	c, done := newChecker(src.Info(), o.Checks), 0
	return src.Scan(func(r *Row) error {
		if r.Number != done || done == MaxRows {
			return rowErrorf(c.info.File, r.Number, "where row %d of at most %d is due", done, MaxRows)
		}
		if err := c.check(r); err != nil {
			return err
		}
		if done++; done%progressRows == 0 {
			if err := o.report(phase, done, of); err != nil {
				return err
			}
		}
		return f(r, c)
	})
}

// manifest returns the manifest but for the shards' digests.
func (s *survey) manifest() *Manifest {
	m := &Manifest{
		Format: ManifestFormat, Rows: s.rows, Features: s.info.Features, Labels: s.info.Labels,
		NonZeros: s.nonZeros, Sparse: SparseStorage(s.rows, s.info.Features, s.nonZeros),
		FeatureNames: s.info.FeatureNames, LabelNames: s.info.LabelNames,
		HasRowNames: s.info.HasRowNames, LabelColumns: s.info.LabelColumns, MeanLabel: s.meanLabel,
	}
	bytes := contentBytes(m.Rows, m.Features, m.Labels, m.NonZeros, m.Sparse)
	m.Shards = make([]ShardRef, ShardCount(m.Rows, bytes))
	return m
}
