package pipeline

import (
	"io"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/modelfile"
	"github.com/coppice-ldl/coppice/dataset"
)

// here is what both halves of a job share where they are in one process: a model
// is evaluated as it is. Elsewhere it travels as bytes and is there twice or more.
type sharedModel struct{ model algorithms.Model }

// NewPair is New and NewKernel for a job whose units are all computed in this
// process, with less memory. The outcome is the same, to the bit. For a job of
// folds it makes no difference.
func NewLocalPair(j *algorithms.Job, m *dataset.Manifest, state []byte) (Finisher, algorithms.Kernel, error) {
	t, err := New(j, m, state)
	if err != nil {
		return nil, nil, err
	}
	k, err := newKernel(j, m)
	if err != nil {
		return nil, nil, err
	}
	if s, ok := t.(*single); ok {
		s.shared = new(sharedModel)
		k.shared = s.shared
	}
	return t, k, nil
}

// WriteOutcome is t.Outcome but writes the model file to w, and Outcome.Model is
// empty. A job of folds writes nothing: its models are in Folds.
func WriteOutcome(t Finisher, w io.Writer) (*Outcome, error) {
	s, ok := t.(*single)
	if !ok {
		return t.Outcome()
	}
	return s.outcome(func(o *Outcome, m algorithms.Model, provenance []byte) (err error) {
		o.ModelDigest, err = modelfile.Write(w, s.job.Algorithm, m.Tensors(), provenance)
		return err
	})
}
