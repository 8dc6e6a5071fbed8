package ensemble

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/engine/outcome/childjob"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/engine/round"
)

// trainer asks for one round, of all child jobs, and computes the weights of what they predict. With the
// weights validated there are two: the second trains the best member on all rows.
type trainer struct {
	learner.Base
	job     *learner.Job[Config]
	members []member

	results []result  // by unit
	weights []float64 // by member; nil until all results are there
	kl      []float64 // of each member, then of the ensemble, on the rows of the weights; nil for the mean
	rows    uint64    // that the weights were fitted to
}

func newTrainer(j *learner.Job[Config], members []member) *trainer {
	return &trainer{job: j, members: members, results: make([]result, j.Config.units(len(members), innerOf(j).folds))}
}

// result is what is needed of the result of a child job.
type result struct {
	head        []byte // numbers in JSON; nil: the job has not ended
	numbers     numbers
	file        []byte // the model file, without provenance, of a job on all rows
	trained     algorithms.Model
	predictions []byte // the encoded predictions of an inner fold, until the weights are known
}

// numbers are part of a child's outcome.
type numbers struct {
	Digest   string            `json:"model_digest"`
	Steps    uint64            `json:"steps"`
	Samples  uint64            `json:"samples_drawn"`
	Loss     float64           `json:"loss"`
	Counters map[string]uint64 `json:"counters,omitempty"`
}

func (n *numbers) progress() round.Progress {
	return round.Progress{Step: n.Steps, Steps: n.Steps, Samples: n.Samples, Loss: n.Loss}
}

func readNumbers(head []byte) (n numbers, err error) {
	n.Loss = -1
	if err := json.Unmarshal(head, &n); err != nil {
		return numbers{Loss: -1}, fmt.Errorf("%w: %w", childjob.ErrFormat, err)
	}
	return n, nil
}

// read reads the outcome of a unit's child job, whose memory it does not keep.
func (t *trainer) read(unit int, part []byte) (*result, error) {
	o, err := childjob.Decode(part)
	if err != nil {
		return nil, err
	}
	r := new(result)
	if r.numbers, err = readNumbers(o.Head); err != nil {
		return nil, err
	}
	if r.head, err = json.Marshal(&r.numbers); err != nil {
		return nil, err
	}
	if unit >= len(t.members) {
		r.predictions = bytes.Clone(o.Predictions)
		_, err = t.predicted(r.predictions)
		return r, err
	}
	f, err := modelfile.Decode(o.Model)
	if err != nil {
		return nil, err
	}
	r.file, _ = modelfile.Encode(f.Algorithm, f.Tensors, nil)
	r.trained, err = t.decode(unit, f)
	return r, err
}

// decode makes the model of a member.
func (t *trainer) decode(m int, f *modelfile.File) (algorithms.Model, error) {
	if name := t.members[m].Name(); f.Algorithm != name {
		return nil, fmt.Errorf("got a model of %s, want a model of %s", f.Algorithm, name)
	}
	trained, err := t.members[m].DecodeModel(f.Tensors)
	if err != nil {
		return nil, err
	}
	if features, labels := trained.Shape(); features != t.job.Manifest.Features || labels != t.job.Manifest.Labels {
		return nil, fmt.Errorf("the model has %d features and %d labels, but the data has %d and %d", features, labels,
			t.job.Manifest.Features, t.job.Manifest.Labels)
	}
	return trained, nil
}

// predicted decodes the predictions of an inner fold.
func (t *trainer) predicted(b []byte) (*predictions.Set, error) {
	s, err := predictions.Decode(b)
	if err != nil {
		return nil, err
	}
	if s.Labels != t.job.Manifest.Labels || s.Number || len(s.Row) == 0 {
		return nil, fmt.Errorf("got predictions of %d samples and %d labels, want predictions of %d labels", len(s.Row),
			s.Labels, t.job.Manifest.Labels)
	}
	if (s.Weight != nil) != t.job.Manifest.HasWeights {
		return nil, errors.New("the predictions have weights although the dataset has none, or the other way round")
	}
	return s, nil
}

// stateVersion is the version of the fields of a state.
const stateVersion = 1

var errPart = errors.New("the saved state of the ensemble is inconsistent: a model or predictions of a sub-job are " +
	"missing, or stored in the wrong phase")

// State implements learner.Trainer: the results that are there, then the weights.
func (t *trainer) State(l *fields.List) {
	for unit := range t.results {
		r := &t.results[unit]
		l.Bytes(&r.head)
		l.Bytes(&r.file)
		l.Bytes(&r.predictions)
		if l.Reading() {
			if err := t.restore(unit, r); err != nil {
				l.Check(false, "sub-job %d: %w", unit, err)
			}
		}
	}
	l.Known(&t.weights, len(t.members))
	l.Known(&t.kl, len(t.members)+1)
	l.Uint64(&t.rows)
	if l.Reading() {
		t.checkWeights(l)
	}
}

// restore makes a result of its fields, and copies the bytes that it keeps.
func (t *trainer) restore(unit int, r *result) (err error) {
	if r.head == nil {
		if r.file != nil || r.predictions != nil {
			return errPart
		}
		return nil
	}
	r.head, r.file, r.predictions = bytes.Clone(r.head), bytes.Clone(r.file), bytes.Clone(r.predictions)
	if r.numbers, err = readNumbers(r.head); err != nil {
		return err
	}
	if unit >= len(t.members) {
		if r.file != nil {
			return errPart
		}
		if r.predictions != nil {
			_, err = t.predicted(r.predictions)
		}
		return err
	}
	if r.predictions != nil {
		return errPart
	}
	f, err := modelfile.Decode(r.file)
	if err == nil {
		r.trained, err = t.decode(unit, f)
	}
	return err
}

// checkWeights refuses weights that no run has, and predictions that are left once they are
// known, or lacking before.
func (t *trainer) checkWeights(l *fields.List) {
	known := t.weights != nil
	l.Check((t.kl != nil) == (known && t.job.Config.Weights != weightsMean) && (t.rows > 0) == (t.kl != nil),
		"the saved state has weights of members that do not match the settings")
	if known {
		l.Check(onSimplex(t.weights), "the weights of the members are %v, want numbers of at least 0 that sum to 1",
			t.weights)
	}
	for unit := range t.results {
		r := &t.results[unit]
		inner, later := unit >= len(t.members), t.later(unit)
		l.Check(!known || (r.head != nil || later) && r.predictions == nil,
			"the saved state of the ensemble is inconsistent: it has fitted weights, so it must have a model of each member "+
				"and no predictions")
		l.Check(known || r.head == nil || !inner || r.predictions != nil, "%w", errPart)
		l.Check(!later || r.head == nil || t.wanted(unit), "the saved state has a model that the job does not need")
	}
}
