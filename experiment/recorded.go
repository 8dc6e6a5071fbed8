package experiment

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/internal/yamltree"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// Recorded says what is recorded of each run beside its outcome.
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

// Any reports whether anything is recorded.
func (r *Recorded) Any() bool { return r.Curve || r.Predictions }

// In reports whether a job of runs keeps what is recorded.
func (r *Recorded) In(c *round.Cells) bool {
	return (c.Curves || !r.Curve) && (c.PredictedRows > 0 || !r.Predictions)
}

// set has a job of runs keep what is recorded.
func (r *Recorded) set(c *round.Cells) {
	c.Curves, c.PredictedRows = r.Curve, 0
	if r.Predictions {
		c.PredictedRows = round.MaxPredictedRows
	}
}

// axisOf says what the labels are. It returns nil if predictions are not recorded.
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

// fillRecorded sets the learning curve and the predictions of a record, if the experiment records them.
func fillRecorded(c *result.Run, o *pipeline.Outcome, of *Recorded) {
	if of.Curve && o.Curve != nil && len(o.Curve.Points()) > 0 {
		c.Curve = new(result.Curve)
		for _, p := range o.Curve.Points() {
			c.Curve.Steps, c.Curve.Training, c.Curve.Validation = append(c.Curve.Steps, p.Step), append(c.Curve.Training, p.Training), append(c.Curve.Validation, p.Validation)
		}
		if !slices.ContainsFunc(c.Curve.Validation, func(v float64) bool { return !math.IsNaN(v) }) {
			c.Curve.Validation = nil
		}
		if o.RefitSteps > 0 && o.RefitSteps < o.Steps {
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
