package contract

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// trained runs the job and returns its model. If a check of the same job has run it, trained returns that model.
func (j *job) trained(ctx context.Context) (algorithms.Model, error) {
	if j.model != nil {
		return *j.model, nil
	}
	k, err := j.kernel()
	if err != nil {
		return nil, err
	}
	t, err := j.train(ctx, j.local(k, j.data, 1), ignore)
	if err != nil {
		return nil, err
	}
	return t.Model()
}

// fitted is a model that a job has trained.
type fitted struct {
	*job
	algorithms.Model
}

// onModel returns a check of a job that checks its model.
func onModel(check func(fitted) error) func(*job, context.Context) error {
	return func(j *job, ctx context.Context) error {
		m, err := j.trained(ctx)
		if err != nil {
			return err
		}
		return check(fitted{j, m})
	}
}

// checkFile writes the model to a file and reads it back: the tensors, the shape, the
// description and the predictions stay. Tensors are refused if one is missing.
func (m fitted) checkFile() error {
	if features, labels := m.Shape(); features != m.manifest.Features || labels != m.manifest.Labels {
		return fmt.Errorf("the model reads %d features and predicts %d labels, of %d and %d", features, labels,
			m.manifest.Features, m.manifest.Labels)
	}
	file, digest := modelfile.Encode(m.a.Name(), m.Tensors(), nil)
	f, err := modelfile.Decode(file)
	if err != nil {
		return err
	}
	back, err := m.a.DecodeModel(f.Tensors)
	if err != nil {
		return fmt.Errorf("the model is refused: %w", err)
	}
	if _, again := modelfile.Encode(m.a.Name(), back.Tensors(), nil); again != digest {
		return fmt.Errorf("the model that was read has other tensors")
	}
	if a, b := m.Describe(), back.Describe(); !reflect.DeepEqual(a, b) {
		return fmt.Errorf("the model is described as %v, once it was read as %v", a, b)
	}
	all := m.refs()
	if !bytes.Equal(num.Bytes32(m.predict(all)), num.Bytes32(fitted{m.job, back}.predict(all))) {
		return fmt.Errorf("the model that was read predicts otherwise")
	}
	for i, tensor := range f.Tensors {
		if _, err := m.a.DecodeModel(slices.Delete(slices.Clone(f.Tensors), i, i+1)); err == nil {
			return fmt.Errorf("a model without the tensor %q is accepted", tensor.Name)
		}
	}
	return nil
}

// refs lists all rows.
func (j *job) refs() []dataset.RowRef { return j.data.Select(0, len(j.shards), dataset.AllRows) }

func (p *problem) shard(i uint32) *dataset.Rows { return p.shards[i] }

// width is how many values are predicted of a row.
func (j *job) width() int { return j.a.Predicts().Width(j.manifest.Labels) }

// predict predicts rows with scratch memory of their own.
func (m fitted) predict(refs []dataset.RowRef) []float32 {
	dst := make([]float32, len(refs)*m.width())
	m.Predict(dst, refs, m.shard, m.NewScratch())
	return dst
}

// checkPredictions predicts the rows at once, in blocks, one by one, in another order, with
// scratch memory that others left, and without their true labels: a row's prediction has
// the same bits, and is finite. Degrees and shares sum to 1.
func (m fitted) checkPredictions() error {
	refs, width := m.refs(), m.width()
	want := m.predict(refs)
	for i := range refs {
		if err := lawful(m.predicts(), want[i*width:(i+1)*width]); err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
	}
	scratch := m.NewScratch()
	for _, block := range []int{1, 3, 7, 64, len(refs)} {
		got := make([]float32, 0, len(want))
		for from := 0; from < len(refs); from += block {
			part := refs[from:min(from+block, len(refs))]
			dst := slices.Repeat([]float32{-7}, len(part)*width)
			m.Predict(dst, part, m.unlabelled, scratch)
			got = append(got, dst...)
		}
		if !bytes.Equal(num.Bytes32(got), num.Bytes32(want)) {
			return fmt.Errorf("in blocks of %d rows, without labels, the predictions are others than all at once", block)
		}
	}
	backwards := slices.Clone(refs)
	slices.Reverse(backwards)
	got := m.predict(backwards)
	for i := range refs {
		at := len(refs) - 1 - i
		if !bytes.Equal(num.Bytes32(got[at*width:(at+1)*width]), num.Bytes32(want[i*width:(i+1)*width])) {
			return fmt.Errorf("row %d is predicted otherwise when the order is reversed", i)
		}
	}
	return nil
}

// predicts is what the job's model predicts.
func (j *job) predicts() algorithms.Output {
	if j.manifest.LabelType.Bounds != nil {
		return algorithms.Targets
	}
	return j.a.Predicts()
}

// lawful returns what is wrong with the prediction of a row. Targets are finite: the pipeline keeps them in their
// bounds.
func lawful(predicts algorithms.Output, predicted []float32) error {
	sum, shares := 0.0, predicts != algorithms.Number && predicts != algorithms.Targets
	for _, v := range predicted {
		if v-v != 0 || shares && v < 0 {
			return fmt.Errorf("it is %v", predicted)
		}
		sum += float64(v)
	}
	if shares && (sum < 1-1e-5 || sum > 1+1e-5) {
		return fmt.Errorf("they sum to %v", sum)
	}
	return nil
}

// unlabelled is a shard whose labels say nothing.
func (p *problem) unlabelled(i uint32) *dataset.Rows {
	r := *p.shards[i]
	r.D, r.Value, r.Interval = make([]float32, len(r.D)), nil, nil
	return &r
}
