package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/measures"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// kernel adds the pipeline's operations to an algorithm's.
type kernel struct{ inner algorithms.Kernel }

// scratch is the working memory of one lane.
type scratch struct {
	inner any

	model      algorithms.Model // decoded from variable varModel
	modelBytes []byte           // that it was decoded from
	predict    any
	rows       []float32
	mean       []float32
}

// NewKernel returns the kernel of a job.
func NewKernel(j *algorithms.Job, m *dataset.Manifest) (algorithms.Kernel, error) {
	a, err := registry.Find(j.Algorithm)
	if err != nil {
		return nil, err
	}
	inner, err := a.NewKernel(j, m)
	if err != nil {
		return nil, err
	}
	return &kernel{inner}, nil
}

// NewScratch implements algorithms.Kernel.
func (k *kernel) NewScratch() any { return &scratch{inner: k.inner.NewScratch()} }

// Derive implements algorithms.Kernel.
func (k *kernel) Derive(u algorithms.Unit, d *dataset.Data, v algorithms.Vars, s any) (any, error) {
	return k.inner.Derive(u, d, v, s.(*scratch).inner)
}

// Run implements algorithms.Kernel.
func (k *kernel) Run(dst *algorithms.Partial, u algorithms.Unit, d *dataset.Data, v algorithms.Vars, kept, s any) error {
	switch u.Op {
	case opMean:
		sumLabels(dst.F64, u, d)
		return nil
	case opEvaluate:
		return s.(*scratch).evaluate(dst.F64, u, d, v)
	}
	return k.inner.Run(dst, u, d, v, kept, s.(*scratch).inner)
}

// Collect implements engine.Collector for algorithms that collect.
func (k *kernel) Collect(ctx context.Context, u algorithms.Unit, d *dataset.Data, v algorithms.Vars, s any) ([]byte, error) {
	c, ok := k.inner.(interface {
		Collect(context.Context, algorithms.Unit, *dataset.Data, algorithms.Vars, any) ([]byte, error)
	})
	if !ok {
		return nil, errors.New("pipeline: the algorithm collects nothing")
	}
	return c.Collect(ctx, u, d, v, s.(*scratch).inner)
}

// sumLabels counts the rows of each role and sums the label degrees of those
// that the model learns from.
func sumLabels(dst []float64, u algorithms.Unit, d *dataset.Data) {
	for _, ref := range u.Rows(d) {
		shard := d.Shard(int(ref.Shard))
		switch d.Role(shard.Row[ref.Pos]) {
		case dataset.Test:
			dst[2]++
			continue
		case dataset.Validation:
			dst[1]++
		default:
			dst[0]++
		}
		for c, degree := range shard.Label(int(ref.Pos)) {
			dst[3+c] += float64(degree)
		}
	}
}

// evaluateRows is how many rows are predicted at a time.
const evaluateRows = 256

// evaluate sums the measures of the model, then those of the mean predictor.
func (s *scratch) evaluate(dst []float64, u algorithms.Unit, d *dataset.Data, v algorithms.Vars) error {
	if err := s.load(v); err != nil {
		return err
	}
	shard := func(i uint32) *dataset.Rows { return d.Shard(int(i)) }
	labels := len(s.mean)
	for refs := u.Rows(d); len(refs) > 0; refs = refs[min(evaluateRows, len(refs)):] {
		block := refs[:min(evaluateRows, len(refs))]
		s.model.Predict(s.rows[:len(block)*labels], block, shard, s.predict)
		for i, ref := range block {
			label := d.Shard(int(ref.Shard)).Label(int(ref.Pos))
			measures.Accumulate(dst[:measures.Width], label, s.rows[i*labels:(i+1)*labels])
			measures.Accumulate(dst[measures.Width:], label, s.mean)
		}
	}
	return nil
}

// load decodes the model unless it is the one of the call before.
func (s *scratch) load(v algorithms.Vars) error {
	b := v.Get(varModel)
	if len(b) > 0 && len(b) == len(s.modelBytes) && &b[0] == &s.modelBytes[0] {
		return nil
	}
	_, m, err := registry.Model(b)
	if err != nil {
		return fmt.Errorf("pipeline: %w", err)
	}
	_, labels := m.Shape()
	s.model, s.modelBytes, s.predict = m, b, m.NewScratch()
	s.rows = make([]float32, evaluateRows*labels)
	s.mean = make([]float32, labels)
	for c, degree := range num.Float64s(v.Get(varMean)) {
		s.mean[c] = float32(degree)
	}
	return nil
}
