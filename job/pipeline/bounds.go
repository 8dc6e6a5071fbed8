package pipeline

import (
	"errors"
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/internal/units"
)

// The round of bounds, and the variable that has them for kernels.
const (
	opExtremes = 247 // the least and the greatest target of each label, of all samples that are not tested

	varBounds = 0xff05
)

// boundsKind is the kind of the round.
const boundsKind = "bounds of targets"

// bounds are the bounds of targets: given ones, or the extremes of the training and validation samples of the job. The
// round comes before the algorithm's. An algorithm reads targets scaled to [0, 1], and predicts such; the pipeline
// scales both.
type bounds struct {
	manifest *dataset.Manifest
	of       *dataset.Bounds // a pair for each label; nil until they are known
}

// newBounds returns the bounds of a job on a dataset of targets.
func newBounds(j *round.Job, m *dataset.Manifest) (*bounds, error) {
	if !j.Bounds.Same(m.LabelType.Bounds) {
		return nil, errors.New("the job has other bounds of targets than its dataset")
	}
	if j.Bounds == nil {
		return nil, nil
	}
	b := &bounds{manifest: m}
	if j.Bounds.Given() {
		if err := j.Bounds.Check(m.Labels, m.LabelNames); err != nil {
			return nil, err
		}
		b.of = j.Bounds.Each(m.Labels)
	}
	return b, nil
}

// done reports whether the bounds are known.
func (b *bounds) done() bool { return b == nil || b.of != nil }

// next sets what is the round's own.
func (b *bounds) next(r *round.Round) {
	r.Op, r.Kind, r.Roles = opExtremes, boundsKind, dataset.Train|dataset.Validation
}

// fold takes the extremes of all tasks.
func (b *bounds) fold(gathered [][]byte) error {
	labels := b.manifest.Labels
	of := newExtremes(labels)
	for u, result := range gathered {
		if len(result) != 16*labels {
			return fmt.Errorf("task %d: the extremes of targets have %d bytes, want %d", u, len(result), 16*labels)
		}
		values := num.Float64s(result)
		for c := range labels {
			of.Low[c], of.High[c] = min(of.Low[c], values[c]), max(of.High[c], values[labels+c])
		}
	}
	for c := range labels {
		if math.IsInf(of.Low[c], 1) {
			return algorithms.ErrNoRows
		}
		reason := errtext.Text("")
		if err := dataset.CheckBounds(of.Low[c], of.High[c]); of.Low[c] == of.High[c] {
			reason = errtext.Sprintf("the target is %s in all training samples, so it has no bounds: leave the label out, or "+
				"give the bounds of all labels with {bounds}", units.InFull(of.Low[c]))
		} else if err != nil {
			reason = errtext.Sprintf("%v", err)
		}
		if reason != "" {
			return &dataset.RowError{Row: -1, Column: c, Kind: "label", Name: dataset.NameAt(b.manifest.LabelNames, c),
				Reason: reason}
		}
	}
	b.of = of
	return nil
}

// newExtremes returns the extremes of no samples.
func newExtremes(labels int) *dataset.Bounds {
	of := &dataset.Bounds{Low: make([]float64, labels), High: make([]float64, labels)}
	for c := range labels {
		of.Low[c], of.High[c] = math.Inf(1), math.Inf(-1)
	}
	return of
}

// gatherExtremes returns the least targets of a task's samples by label, then the greatest, as float64.
func gatherExtremes(u round.Task, d *dataset.Data) []byte {
	labels := d.Manifest.Labels
	of := newExtremes(labels)
	for _, ref := range u.Rows(d) {
		for c, q := range d.Shard(int(ref.Shard)).Label(int(ref.Pos)) {
			of.Low[c], of.High[c] = min(of.Low[c], float64(q)), max(of.High[c], float64(q))
		}
	}
	return num.Bytes64(append(of.Low, of.High...))
}

// variable is what kernels scale with.
func (b *bounds) variable() round.Var {
	values := make([]float64, 0, 2*len(b.of.Low))
	values = append(append(values, b.of.Low...), b.of.High...)
	return round.Var{ID: varBounds, Version: 1, Data: num.Bytes64(values)}
}

// boundsOf returns the bounds that a round carries.
func boundsOf(v round.Vars) *dataset.Bounds {
	values := num.Float64s(v.Get(varBounds))
	n := len(values) / 2
	return &dataset.Bounds{Low: values[:n:n], High: values[n:]}
}

// state lists the fields of a training state. Bounds that are given are no part of it.
func (b *bounds) state(l *fields.List, given bool) {
	if b == nil || given {
		return
	}
	var values []float64
	if b.of != nil {
		values = append(append(values, b.of.Low...), b.of.High...)
	}
	n := b.manifest.Labels
	l.Known(&values, 2*n)
	if !l.Reading() || len(values) != 2*n {
		return
	}
	b.of = &dataset.Bounds{Low: values[:n:n], High: values[n:]}
	for c := range n {
		err := dataset.CheckBounds(b.of.Low[c], b.of.High[c])
		l.Check(err == nil, "the saved state has impossible bounds of label %d: %w", c, err)
	}
}

// bounded returns the plan with the bounds of targets.
func bounded(p *measures.Plan, b *dataset.Bounds) *measures.Plan {
	of := *p
	of.Bounds = b
	return &of
}
