package dfldl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/aaknn"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// opPair is the operation (Round.Op) of the round that trains the models. The gate has those below 100, and package
// scaling those from 200 on.
const opPair uint8 = 100

// gateJob returns the job of the gate.
func gateJob(j *learner.Job[Config]) (*round.Job, error) {
	own, err := j.Config.gate(j.Manifest)
	if err != nil {
		return nil, err
	}
	c := *j.Job
	c.Algorithm, c.Params = aaknn.Name, own.Params
	return &c, nil
}

// trainer implements learner.Trainer: the rounds of the gate, then the round of the models.
type trainer struct {
	learner.Base
	job     *learner.Job[Config]
	gateJob *round.Job
	gate    algorithms.Trainer
	gated   bool // the gate is trained

	weights    []float64 // models×(features+1)×labels, by task; nil: not trained yet
	losses     []float64 // of each model: mean K-L of the rows that it was trained on; nil: not trained yet
	iterations uint64    // of all models
	samples    uint64    // rows processed, by all models
}

var _ round.TaskReporter = (*trainer)(nil)

func newTrainer(j *learner.Job[Config]) (*trainer, error) {
	own, err := gateJob(j)
	if err != nil {
		return nil, err
	}
	t := &trainer{job: j, gateJob: own}
	t.gate, err = nearest.NewTrainer(own, j.Manifest, nil)
	return t, err
}

// size returns the number of weights of a model.
func (t *trainer) size() int { return (t.job.Manifest.Features + 1) * t.job.Manifest.Labels }

// models returns the number of models.
func (t *trainer) models() int { return models(t.job.Manifest.Labels) }

// State implements learner.Trainer: the state of the gate, then the models.
func (t *trainer) State(l *fields.List) {
	var gate []byte
	if !l.Reading() {
		gate, _ = t.gate.AppendState(nil) // fails only if a writer does
	}
	l.Bytes(&gate)
	l.Check(len(gate) > 0, "the saved state lacks the nearest neighbours")
	if l.Reading() {
		restored, err := nearest.NewTrainer(t.gateJob, t.job.Manifest, gate)
		l.Check(err == nil, "%w", err)
		if err == nil {
			t.gate = restored
			err = t.lookAtGate()
			l.Check(err == nil, "%w", err)
		}
	}
	l.Known(&t.weights, t.models()*t.size())
	l.Known(&t.losses, t.models())
	l.Uint64(&t.iterations, &t.samples)
	if l.Reading() {
		trained := t.weights != nil
		l.Check(trained == (t.losses != nil) && (trained || t.iterations == 0 && t.samples == 0),
			"the saved state has losses of models without their weights, or the other way round")
		l.Check(!trained || t.gated, "the saved state has trained models, although the samples of the nearest neighbours "+
			"are missing")
		l.Check(num.Finite64(t.weights), "the saved state has a weight that is not finite")
		for i, loss := range t.losses {
			l.Check(possible(loss), "the saved state has a loss of %v of model %d, which is not possible", loss, i)
		}
	}
}

// lookAtGate sets gated. ResultProgress, which may be called concurrently, only reads it.
func (t *trainer) lookAtGate() error {
	r, err := t.gate.Next()
	t.gated = err == nil && r == nil
	return err
}

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	if !t.gated {
		return t.gate.Next()
	}
	if t.weights != nil {
		return nil, nil
	}
	return &round.Round{Op: opPair, Kind: "pair", Tasks: t.models(), Scope: round.Whole, How: &round.Gather{},
		Roles: dataset.Train}, nil
}

// Fold implements round.Trainer.
func (t *trainer) Fold(res *round.Result) error {
	if !t.gated {
		err := t.gate.Fold(res)
		if wrong := (*param.Error)(nil); errors.As(err, &wrong) {
			return fmt.Errorf("%s: %w", Name, wrong) // without the algorithm of the gate, which the user did not name
		}
		if err != nil {
			return err
		}
		return t.lookAtGate()
	}
	n, size := t.models(), t.size()
	if len(res.Gathered) != n {
		return fmt.Errorf("%s: got %d models, want %d", Name, len(res.Gathered), n)
	}
	weights, losses := make([]float64, 0, n*size), make([]float64, n)
	for i, b := range res.Gathered {
		r, err := decodeResult(b, size)
		if err != nil {
			return fmt.Errorf("%s: model %d: %w", Name, i, err)
		}
		weights, losses[i], res.Gathered[i] = append(weights, r.weights...), r.loss, nil
		t.iterations += r.iterations
		t.samples += r.samples
	}
	t.weights, t.losses = weights, losses
	return nil
}

// Progress implements round.Trainer: a step is a model.
func (t *trainer) Progress() round.Progress {
	p := round.Progress{Steps: uint64(t.models()), Loss: -1, Phase: t.gate.Progress().Phase}
	if t.gated {
		p.Phase = "training models"
	}
	if t.weights == nil {
		return p
	}
	p.Step, p.Samples, p.Loss = p.Steps, t.samples, 0
	for _, loss := range t.losses {
		p.Loss += loss / float64(len(t.losses))
	}
	return p
}

// ResultProgress implements round.TaskReporter. The tasks of the gate, which are short, count as no step.
func (t *trainer) ResultProgress(part []byte) (round.Progress, error) {
	if !t.gated {
		return round.Progress{Loss: -1}, nil
	}
	r, err := decodeResult(part, t.size())
	if err != nil {
		return round.Progress{Loss: -1}, fmt.Errorf("%s: %w", Name, err)
	}
	return round.Progress{Step: 1, Steps: 1, Samples: r.samples, Loss: r.loss}, nil
}

// RoundProgress implements round.TaskReporter: the loss is the mean over the models that are trained.
func (t *trainer) RoundProgress(tasks []round.TaskProgress) round.Progress {
	p := t.Progress()
	if !t.gated {
		return p
	}
	known, loss := 0, 0.0
	for i := range tasks {
		u := &tasks[i]
		if u.Done {
			p.Step++
		}
		if u.Done && u.Known {
			known++
			p.Samples += u.Samples
			loss += u.Loss
		}
	}
	if known > 0 {
		p.Loss = loss / float64(known)
	}
	return p
}

// Counters implements algorithms.Trainer.
func (t *trainer) Counters() map[string]uint64 { return map[string]uint64{"iterations": t.iterations} }

// Model implements algorithms.Trainer.
func (t *trainer) Model() (algorithms.Model, error) {
	if t.weights == nil {
		return nil, errors.New(Name + ": there is no model yet, because the models of the pairs are not trained")
	}
	gate, err := t.gate.Model()
	if err != nil {
		return nil, err
	}
	return &model{features: t.job.Manifest.Features, labels: t.job.Manifest.Labels, weights: t.weights, gate: gate}, nil
}

// result is what a task ends with.
type result struct {
	loss                float64
	iterations, samples uint64
	weights             []float64 // (features+1)×labels
}

// resultHead is the number of bytes before the weights.
const resultHead = 3 * 8

// encode returns the result as bytes, little-endian: the loss, two whole numbers and the weights, 8 bytes each.
func (r *result) encode() []byte {
	b := make([]byte, 0, resultHead+8*len(r.weights))
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(r.loss))
	b = binary.LittleEndian.AppendUint64(b, r.iterations)
	b = binary.LittleEndian.AppendUint64(b, r.samples)
	return append(b, num.Bytes64(r.weights)...)
}

// errResult is wrapped by errors about the bytes of a result.
var errResult = errors.New("the result of a task cannot be used")

// decodeResult reads what encode returned of a model of so many weights, which share the memory of b if that is
// aligned.
func decodeResult(b []byte, size int) (*result, error) {
	if len(b) != resultHead+8*size {
		return nil, fmt.Errorf("%w: it has %d bytes, want %d", errResult, len(b), resultHead+8*size)
	}
	r := &result{
		loss:       math.Float64frombits(binary.LittleEndian.Uint64(b)),
		iterations: binary.LittleEndian.Uint64(b[8:]), samples: binary.LittleEndian.Uint64(b[16:]),
		weights: num.Float64s(b[resultHead:]),
	}
	if !possible(r.loss) {
		return nil, fmt.Errorf("%w: it has a loss of %v", errResult, r.loss)
	}
	if !num.Finite64(r.weights) {
		return nil, fmt.Errorf("%w: a weight is not finite", errResult)
	}
	return r, nil
}

// possible reports whether a model can have a training loss.
func possible(loss float64) bool { return loss >= 0 && loss <= math.MaxFloat64 }
