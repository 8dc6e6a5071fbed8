package pipeline

import (
	"io"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/engine/round"
)

// sharedModel is the model that the trainer and the kernel of a job share if they are in one
// process. In different processes the model travels as bytes, and each has a copy.
type sharedModel struct{ model algorithms.Model }

// ShareModel makes t and k, which New and NewKernel returned for one job, share the model,
// which saves memory where all tasks are computed in this process. Call it before the first
// round. The outcome has the same bits. For a job of folds there is no difference.
func ShareModel(t Finisher, k round.Kernel) {
	if s, ok := t.(*single); ok {
		s.shared = new(sharedModel)
		k.(*kernel).shared = s.shared
	}
}

// WriteOutcome is t.Outcome but writes the model file to w and leaves Outcome.Model
// empty. For a job of folds it writes nothing: the models are in Outcome.Folds.
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
