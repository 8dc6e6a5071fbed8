package experiment

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/internal/yamltree"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// Recorded says what is recorded of each cell beside its outcome.
type Recorded struct {
	Curve       bool `json:"curve,omitempty"`       // the learning curve
	Predictions bool `json:"predictions,omitempty"` // what it predicts of some test rows

	At yamltree.Place `json:"-"`
}

// The words of Recorded.
const (
	recordCurve       = "curve"
	recordPredictions = "predictions"
)

var recordWords = []string{recordCurve, recordPredictions}

// add takes a word; the error says that it is none, or that it stands there twice.
func (r *Recorded) add(word string) error {
	of := map[string]*bool{recordCurve: &r.Curve, recordPredictions: &r.Predictions}[word]
	switch {
	case of == nil:
		return fmt.Errorf("cannot record %q%s; want %s", word, param.Suggest(word, recordWords), strings.Join(recordWords, " or "))
	case *of:
		return fmt.Errorf("%s is listed twice", word)
	}
	*of = true
	return nil
}

// SetRecorded takes words from the command line in the place of the spec's.
func (s *Spec) SetRecorded(words []string) error {
	s.Record = Recorded{}
	for _, word := range words {
		if err := s.Record.add(word); err != nil {
			return err
		}
	}
	return nil
}

// record reads what is recorded: a word, or a list of words.
func (s *Spec) record(e entry) {
	s.Record.At = e.valueAt
	if word, ok := yamltree.Scalar(e.value); ok {
		if err := s.Record.add(word); err != nil {
			s.fail(e.valueAt, "record: %v", err)
		}
		return
	}
	for i, word := range s.texts(e) {
		if err := s.Record.add(word); err != nil {
			s.wrong(placeOf(s.sequence(e)[i]), "record: %v", err)
		}
	}
}

// Any reports whether anything is recorded.
func (r *Recorded) Any() bool { return r.Curve || r.Predictions }

// In reports whether a job of cells keeps what is recorded.
func (r *Recorded) In(c *round.Cells) bool {
	return (c.Curves || !r.Curve) && (c.PredictedRows > 0 || !r.Predictions)
}

// set has a job of cells keep what is recorded.
func (r *Recorded) set(c *round.Cells) {
	c.Curves, c.PredictedRows = r.Curve, 0
	if r.Predictions {
		c.PredictedRows = round.MaxPredictedRows
	}
}

// checkRecorded returns an error if what is recorded of a plan's cells takes more than the bounds: those
// of one cell, or those of all of the experiment with what plans before had.
func (s *Spec) checkRecorded(p *Plan, before int64) (all int64, err error) {
	if p.Job == nil {
		return before, nil
	}
	one := pipeline.RecordBytes(p.Job, p.Manifest)
	if one > protocol.MaxCellRecord {
		return 0, s.Error(s.Record.At, "record: dataset %s: the predictions for %d samples with %d labels take %d bytes in each run, want at most %d",
			p.Dataset.Name, p.Job.Cells.PredictedRows, p.Manifest.Labels, one, protocol.MaxCellRecord)
	}
	return before + one*int64(p.Job.Cells.Count()), nil
}

// CheckPlans returns an error if the plans have too many cells, or if what they record of their cells takes too much.
func (s *Spec) CheckPlans(plans []*Plan) (err error) {
	all, runs := int64(0), 0
	for _, p := range plans {
		if p.Job == nil {
			continue
		}
		if runs += p.Job.Cells.Count(); runs > MaxRuns {
			return s.Error(p.Dataset.At, "the experiment has more than %s runs with this dataset", units.Count(MaxRuns))
		}
	}
	for _, p := range plans {
		if all, err = s.checkRecorded(p, all); err != nil {
			return err
		}
	}
	if all > protocol.MaxCellRecords {
		return s.Error(s.Record.At, "record: the records of all runs take up to %d MB, want at most %d; leave out %s, or some of the methods, repeats or folds",
			all>>20, protocol.MaxCellRecords>>20, strings.Join(recordWords, " or "))
	}
	return nil
}

// axisOf says what the labels are, where predictions are recorded.
func (r *Recorded) axisOf(m *dataset.Manifest) *result.Labels {
	if !r.Predictions {
		return nil
	}
	l := &result.Labels{Names: m.LabelNames, Classes: m.LabelType.Classes}
	if scale := m.LabelType.Scale; scale != nil {
		l.Scale, l.First = true, scale.Low
	}
	return l
}

// fillRecorded sets what a record has of the learning curve and the predictions, as far as the
// experiment records them.
func fillRecorded(c *result.Cell, o *pipeline.Outcome, of *Recorded) {
	if of.Curve && o.Curve != nil {
		c.Curve = curveOf(o.Curve.Points())
		if c.Curve != nil && o.RefitSteps > 0 && o.RefitSteps < o.Steps {
			c.Curve.BeforeRefit = o.Steps - o.RefitSteps
		}
	}
	if !of.Predictions || len(o.Predictions) == 0 {
		return
	}
	set, err := predictions.Decode(o.Predictions)
	if err != nil || set.Number { // numbers have no distributions
		return
	}
	for i, row := range set.Row {
		c.Predictions = append(c.Predictions, result.Predicted{Row: row, True: set.TruthOf(i), Predicted: set.PredictedOf(i)})
	}
}

// curveOf is a curve as tables have it; nil: there are no points.
func curveOf(points []curve.Point) *result.Curve {
	if len(points) == 0 {
		return nil
	}
	c := new(result.Curve)
	for _, p := range points {
		c.Steps, c.Training, c.Validation = append(c.Steps, p.Step), append(c.Training, p.Training), append(c.Validation, p.Validation)
	}
	if !slices.ContainsFunc(c.Validation, func(v float64) bool { return !math.IsNaN(v) }) {
		c.Validation = nil
	}
	return c
}
