package ldlf

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// trainer is the coordinator's half: see algorithms.Trainer. Algorithm 1 is a gradient.Descent
// with leaf_batches steps to an interval, whose own rounds are the iterations of Eq. 12.
type trainer struct {
	*gradient.Descent
	cfg  *Config
	size sizes
	phi  []uint32
	q    *gradient.Vector // trees×leaves×labels
	turn turns

	leafUpdates uint64 // leaf updates done
	iteration   uint64 // of the leaf update under way

	mean  []float32 // the label distribution of the last leaf update's rows; nil without shrink
	parts uint8     // of it, mixed into the model's leaves; 0 before the choice
}

// fitsWeights returns an error if the weights to begin from are not of the job's network.
func fitsWeights(c *Config, m *dataset.Manifest, file []byte) error {
	return c.Network.Initial.Fits(c.Network.Layers(m.Features, c.Bias, outputLayer(c.Outputs)), file)
}

// newTrainer makes the trainer of a job.
func newTrainer(j *learner.Job[Config]) (learner.Trainer, error) {
	c, m := j.Config, j.Manifest
	z := newSizes(c, m.Features, m.Labels)
	q := make([]float32, z.q())
	fillUniform(q, z.labels)
	f := newFunction(c, z, m.Sparse, j.Seed)
	t := &trainer{
		Descent: gradient.NewDescent(descentSettings(c, f), f, num.NewKey(j.Seed, "ldlf/theta"), m, q),
		cfg:     c, size: z, phi: drawPhi(z, j.Seed, c.OwnUnits), turn: newTurns(c, j.Seed),
	}
	t.q = &t.Vectors[1]
	if c.Shrink {
		t.mean = make([]float32, z.labels)
		fillUniform(t.mean, z.labels)
	}
	t.Restart = func() {
		fillUniform(q, z.labels)
		fillUniform(t.mean, z.labels)
	}
	t.Flat = t.flat
	if !t.turn.all() {
		x := &idler{turns: t.turn, size: z, phi: t.phi, idle: make([]bool, z.outputs)}
		t.Idle = x.units
	}
	return t, c.Network.Initial.Give(f, j.WeightsFile)
}

// flat reports that no step moves Θ before the next leaf update: the trees that learn have uniform
// leaves only.
func (t *trainer) flat() bool {
	first, end := 0, t.size.trees
	if t.turn.strategy == strategyRotate {
		first, end = t.turn.at(t.Step)
	}
	n := t.size.treeQ()
	return isUniform(t.q.Data[first*n:end*n], t.size.labels)
}

func descentSettings(c *Config, f gradient.Function) gradient.Settings {
	turn := newTurns(c, 0)
	first, end := turn.at(0)
	set := gradient.Settings{
		Rule: gradient.Rule{
			Adam: c.Optimizer == optimizerAdam, Rate: c.LearningRate, RateStep: uint64(c.LearningRateStep),
			RateDecay: c.LearningRateDecay,
			Warmup:    uint64(c.Warmup), Momentum: c.Momentum, Decay: c.WeightDecay,
		},
		StopRule: gradient.StopRule{Validates: c.ValidationFraction > 0, Patience: uint64(c.Patience),
			Margin: c.ValidationMargin},
		Scaling: c.Scaling, BatchSize: c.BatchSize, Steps: uint64(c.Steps), Interval: uint64(c.LeafBatches), Refit: c.Refit,
		Terms: end - first, OwnKind: "leaf update", OwnFirst: c.LeafFirst,
		FreshMoments: c.ResetMomentum && !turn.all(),
	}
	if c.Shrink {
		set.ChoiceKind = "validation"
	}
	if c.Cosine {
		set.Cosine = set.Steps
	}
	if n, ok := f.(*network.Network); ok {
		set.Factors = c.Network.Factors(n.Layers)
	}
	return set
}

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	r, err := t.Descent.Next()
	switch {
	case err != nil:
	case t.Phase == gradient.PhaseOwn:
		t.leafRound(r)
	case t.Phase == gradient.PhaseChoice:
		t.choiceRound(r)
	}
	return r, err
}

// leafRound completes the round of an iteration of Eq. 12.
func (t *trainer) leafRound(r *round.Round) {
	// Its mini-batches are the last leaf_batches, or, for an update that begins the job, the first ones to come.
	n := uint64(t.cfg.LeafBatches)
	to := max(t.Step, n)
	how := r.Reduce()
	r.Op, how.Steps = opLeaves, [2]uint64{to - n, to}
	how.Shape.F64 = leafAt + t.size.q()
	if !t.tellsLoss() {
		how.Shape.F64++ // by which kernels know
	}
	how.DerivedVersion = t.leafUpdates + 1 // Θ and the window are functions of it
}

// tellsLoss reports whether an iteration of Eq. 12 computes the K-L: the last one of an
// update, and the first one of all, so that there is a loss to show.
func (t *trainer) tellsLoss() bool {
	return t.Samples == 0 || t.iteration+1 == uint64(t.cfg.LeafIterations)
}

// Fold implements round.Trainer.
func (t *trainer) Fold(r *round.Result) error {
	if err := t.fold(r); err != nil {
		return fmt.Errorf("ldlf: %w", err)
	}
	return nil
}

func (t *trainer) fold(r *round.Result) error {
	switch {
	case t.Phase == gradient.PhaseOwn:
		return t.foldLeaves(r.Sum.F64)
	case t.Phase == gradient.PhaseChoice:
		t.foldChoice(r.Sum.F64)
		return nil
	}
	return t.Descent.Fold(r)
}

// foldLeaves takes one iteration of Eq. 12.
func (t *trainer) foldLeaves(sum []float64) error {
	if sum[0] == 0 {
		return algorithms.ErrNoRows
	}
	first, end := t.turn.updated(t.Step)
	n := t.size.treeQ()
	if t.cfg.Shrink && t.iteration == 0 { // it is the same in all of them
		takeMean(t.mean, t.q.Data[first*n:(first+1)*n], sum[leafAt+first*n:leafAt+(first+1)*n])
	}
	updateLeaves(t.q.Data[first*n:end*n], sum[leafAt+first*n:leafAt+end*n], t.size.labels)
	t.q.Version++
	if t.tellsLoss() && sum[1] > 0 {
		t.Loss = sum[2] / (sum[1] * float64(t.size.trees))
	}
	t.Samples += uint64(sum[0])
	if t.iteration++; t.iteration == uint64(t.cfg.LeafIterations) {
		t.iteration = 0
		t.leafUpdates++
		t.Resume()
	}
	return nil
}

// stateFormat is the version of the fields of a state.
const stateFormat = 4

// State implements learner.Trainer.
func (t *trainer) State(l *fields.List) {
	l.Uint64(&t.leafUpdates, &t.iteration)
	l.Check(t.iteration < uint64(t.cfg.LeafIterations),
		"the saved state is at iteration %d of %d of a leaf update, which is not possible", t.iteration, t.cfg.LeafIterations)
	t.Descent.State(l)
	if t.cfg.Shrink {
		l.Float32s(t.mean)
		l.Byte(&t.parts)
		l.Check(t.parts <= shrinkParts && (t.parts == 0 || t.Refitting || t.Phase == gradient.PhaseDone),
			"the saved state has %d losses for the weight of the mean distribution, want none", t.parts)
	}
}

// Model implements algorithms.Trainer.
func (t *trainer) Model() (algorithms.Model, error) {
	v, err := t.Trained()
	if err != nil {
		return nil, fmt.Errorf("ldlf: %w", err)
	}
	return t.model(v[0].Data, shrunk(v[1].Data, t.mean, int(t.parts))), nil
}

// model returns the forest with these parameters and leaves.
func (t *trainer) model(theta, q []float32) *model {
	return &model{
		sizes: t.size, kind: t.cfg.Scaling, phi: t.phi, q: q,
		weights: gradient.Weights{Theta: theta, Input: t.Fit.Values()}, f: t.Function,
	}
}

// memory estimates the memory of a trainer: a descent with vectors of its own, q and the mean distribution, and what a
// model has of the trees. A node of the reduction may hold the sums of a leaf update.
func memory(c *Config, m *dataset.Manifest) algorithms.Footprint {
	z := newSizes(c, m.Features, m.Labels)
	function := newFunction(c, z, m.Sparse, 0)
	set := descentSettings(c, function)
	f := gradient.Memory(&set, function, m, z.q())
	f.Node = max(f.Node, 8*int64(leafAt+z.q()+1))
	if c.Shrink {
		f.State += 4 * int64(m.Labels)
	}
	f.Model += 4*int64(z.q()+modelSettings+z.trees*z.splits) + network.TableBytes(function)
	if n, ok := function.(*network.Network); ok {
		f.Weights = c.Network.Initial.Memory(n)
	}
	return f
}

// modelSettings is the length of a model's tensor of settings.
const modelSettings = 8

// choiceRound completes the round that chooses the weight of the mean.
func (t *trainer) choiceRound(r *round.Round) {
	r.Op, r.How = opShrink, round.Sums(shrinkParts+1)
	r.Vars = append(r.Vars, round.Var{ID: varMean, Data: num.Bytes32(t.mean)})
}

// foldChoice takes the weight of the least loss, among equal ones the least. The loss of the best validation becomes
// the loss with the weight.
func (t *trainer) foldChoice(losses []float64) {
	for parts, loss := range losses {
		if loss < losses[t.parts] {
			t.parts = uint8(parts)
		}
	}
	if losses[0] > 0 {
		t.Stopping.Best.Loss *= losses[t.parts] / losses[0]
	}
	t.Chosen()
}
