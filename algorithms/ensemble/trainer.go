package ensemble

import (
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/childjob"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/engine/round"
)

var (
	_ round.ResultTaker  = (*trainer)(nil)
	_ round.TaskReporter = (*trainer)(nil)
	_ algorithms.Mixer   = (*trainer)(nil)
)

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	if t.done() {
		return nil, nil
	}
	has := make([]bool, len(t.results))
	var jobs []*round.Job
	for unit := range t.results {
		has[unit] = t.results[unit].head != nil || !t.wanted(unit)
		c, err := child(t.job, t.members, unit)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, c)
	}
	return &round.Round{
		Kind: "member", Tasks: len(t.results), Scope: round.Whole, How: &round.Gather{SubJob: round.Jobs(jobs...), Has: has},
	}, nil
}

// later reports whether a unit waits for the weights: it trains a member on all rows, and
// only the best of these members is wanted.
func (t *trainer) later(unit int) bool {
	return t.job.Config.Weights == WeightsValidated && unit < len(t.members)
}

// wanted reports whether a round has a unit trained: those that wait, once they have a weight.
func (t *trainer) wanted(unit int) bool {
	return !t.later(unit) || t.weights != nil && t.weights[unit] > 0
}

// done reports whether all results are there.
func (t *trainer) done() bool {
	for unit := range t.results {
		if t.wanted(unit) && t.results[unit].head == nil {
			return false
		}
	}
	return t.weights != nil
}

// TakeResult implements round.ResultTaker.
func (t *trainer) TakeResult(unit int, part []byte) error {
	r, err := t.read(unit, part)
	if err != nil {
		return fmt.Errorf("ensemble: the result of %s (sub-job %d) cannot be used: %w",
			t.members[unit%len(t.members)].label, unit, err)
	}
	t.results[unit] = *r
	return nil
}

// Fold implements round.Trainer.
func (t *trainer) Fold(res *round.Result) error {
	if len(res.Gathered) != len(t.results) {
		return fmt.Errorf("ensemble: got %d results, want %d", len(res.Gathered), len(t.results))
	}
	for unit, part := range res.Gathered {
		if part == nil && (t.results[unit].head != nil || !t.wanted(unit)) {
			continue
		}
		if err := t.TakeResult(unit, part); err != nil {
			return err
		}
		res.Gathered[unit] = nil
	}
	if t.weights != nil {
		return nil
	}
	return t.weigh()
}

// weigh computes the weights of the members from their results.
func (t *trainer) weigh() error {
	count := len(t.members)
	if t.job.Config.Weights == weightsMean {
		t.weights = uniform(count)
		return nil
	}
	s, err := t.sample()
	if err != nil {
		return err
	}
	t.rows = uint64(s.rows())
	for m := range count {
		t.kl = append(t.kl, s.divergence(only(m, count)))
	}
	if w := t.job.Config.Weights; w == weightsBest || w == WeightsValidated {
		t.weights = only(least(t.kl), count)
	} else {
		t.weights = s.choose()
	}
	t.kl = append(t.kl, s.divergence(t.weights))
	for i := range t.results {
		t.results[i].predictions = nil
	}
	return nil
}

// Progress implements round.Trainer: the steps and samples of all child jobs.
func (t *trainer) Progress() round.Progress {
	units := make([]round.TaskProgress, len(t.results))
	for i := range t.results {
		if r := &t.results[i]; r.head != nil {
			units[i] = round.TaskProgress{Progress: r.numbers.progress(), Known: true, Done: true}
		}
	}
	p := t.RoundProgress(units)
	if t.done() {
		p.Loss = t.loss()
	}
	return p
}

// loss is the weighted sum of the members' training losses, -1 where one has none.
func (t *trainer) loss() (sum float64) {
	for m, w := range t.weights {
		loss := t.results[m].numbers.Loss
		if loss < 0 {
			return -1
		}
		sum += float64(w * loss)
	}
	return sum
}

// ResultProgress implements round.TaskReporter.
func (t *trainer) ResultProgress(part []byte) (round.Progress, error) {
	o, err := childjob.Decode(part)
	if err != nil {
		return round.Progress{Loss: -1}, err
	}
	n, err := readNumbers(o.Head)
	return n.progress(), err
}

// RoundProgress implements round.TaskReporter. The jobs of one member are alike, and
// the jobs of different members are not. Steps is the sum over the jobs. Step is in proportion to time: the
// members' steps cost differently, so a sum of them would say nothing about the time that is left.
func (t *trainer) RoundProgress(units []round.TaskProgress) round.Progress {
	all, ended, trained, early, count := round.Progress{Loss: -1}, 0, 0, false, len(t.members)
	var kinds [][]round.TaskProgress
	if t.weights == nil && t.later(0) {
		trained++ // the best, which is not known yet
		kinds = append(kinds, make([]round.TaskProgress, 1))
	}
	for m := range count {
		var own []round.TaskProgress
		for u := m; u < len(units); u += count {
			if !t.wanted(u) {
				continue
			}
			at := units[u]
			if r := &t.results[u]; at.Done && !at.Known && r.head != nil { // of an earlier round, or before a restart
				at.Progress, at.Known = r.numbers.progress(), true
			}
			own = append(own, at)
		}
		trained += len(own)
		kinds = append(kinds, own)
		p, done := childjob.Sum(own)
		early = early || p.MostSteps > 0
		all.Step, all.Steps, all.Samples, ended = all.Step+p.Step, all.Steps+max(p.Steps, p.MostSteps), all.Samples+
			p.Samples, ended+done
	}
	if fraction, ok := childjob.Fraction(kinds); ok {
		all.Step = uint64(fraction * float64(all.Steps))
	}
	if early {
		all.MostSteps = all.Steps
	}
	all.Phase = fmt.Sprintf("%d of %d models trained", ended, trained)
	return all
}

// Counters implements algorithms.Trainer: the sums of the child jobs'.
func (t *trainer) Counters() map[string]uint64 {
	var sums map[string]uint64
	for i := range t.results {
		for name, n := range t.results[i].numbers.Counters {
			if sums == nil {
				sums = make(map[string]uint64)
			}
			sums[name] += n
		}
	}
	return sums
}

var errNoModel = errors.New("ensemble: there is no model yet, because some members are not trained")

// Model implements algorithms.Trainer.
func (t *trainer) Model() (algorithms.Model, error) {
	if !t.done() {
		return nil, errNoModel
	}
	m := &model{}
	for i, w := range t.weights {
		if !t.wanted(i) {
			continue
		}
		m.weights = append(m.weights, w)
		m.names = append(m.names, t.members[i].Name())
		m.members = append(m.members, t.results[i].trained)
	}
	return m, m.check()
}

// Mixture implements algorithms.Mixer.
func (t *trainer) Mixture() *algorithms.Mixture {
	x := &algorithms.Mixture{Rows: int(t.rows)}
	for m, w := range t.weights {
		share := algorithms.Share{Member: t.members[m].label, Weight: w}
		if t.kl != nil {
			share.OutOfFoldKL = &t.kl[m]
		}
		x.Members = append(x.Members, share)
	}
	if t.kl != nil {
		x.OutOfFoldKL = &t.kl[len(t.weights)]
	}
	return x
}

// Bytes that each part of an estimate needs in addition to its arrays.
const (
	headBytes = 1 << 10 // of a child's numbers
	fileBytes = 8 << 10 // of a model file: names and shapes
	nameBytes = 32      // of a row: its name, and its number on a scale
)

// memory estimates the memory of a trainer: the members' models, as files and to predict with,
// and until the weights are known the predictions of all rows by each member, encoded and
// decoded.
func (k kin) memory(c *Config, m *dataset.Manifest) algorithms.Footprint {
	members, err := k.resolve(c.Members, m)
	if err != nil {
		return algorithms.Footprint{} // fits has refused the job
	}
	f := algorithms.Footprint{Model: 16 + 8*int64(len(members))}
	for i := range members {
		own, err := members[i].Footprint(&round.Job{Params: members[i].resolved.Params}, m)
		if err == nil {
			f.Model += own.Model
		}
	}
	f.State = 2*f.Model + int64(len(members))*fileBytes + int64(c.units(len(members), c.InnerFolds))*headBytes
	if c.heldOut(c.InnerFolds) > 0 {
		f.State += 2 * int64(len(members)) * int64(m.Rows) * (predictions.RowBytes(m.Labels) + nameBytes)
	}
	return f
}
