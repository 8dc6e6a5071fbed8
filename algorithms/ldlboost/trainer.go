package ldlboost

import (
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/binning"
	"github.com/coppice-ldl/coppice/algorithms/kit/boost"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// stateFormat is the version of the fields of a state.
const stateFormat = 2

// trainer implements round.Trainer. A boosting round is several summed rounds, one for each level of a tree, and one
// that validates.
type trainer struct {
	learner.Base
	boost.Course
	cfg        *Config
	manifest   *dataset.Manifest
	incomplete bool    // degrees may be missing
	key        num.Key // of columns
	bins       *binning.Bins
	tree       growth

	round   round.Round
	vars    []round.Var
	request request
	encoded struct{ bins, request []byte }
}

func newTrainer(c *Config, m *dataset.Manifest, seed uint64, incomplete bool) *trainer {
	return &trainer{
		cfg: c, manifest: m, incomplete: incomplete, key: columnKey(seed),
		tree: growth{cfg: c, rows: m.Rows, search: newSearch(c, m.Labels, m.HasWeights)},
		Course: boost.Course{MaxRounds: c.Rounds, Patience: c.Patience, Validates: c.ValidationFraction > 0, Refit: c.Refit,
			Weighted: m.HasWeights, Form: boost.VectorForm(m.Features, m.Labels, c.Leaves),
			First: make([]float64, m.Labels), Loss: -1},
	}
}

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	r := &t.round
	*r = round.Round{Tasks: len(t.manifest.Shards), Scope: round.Sharded, Roles: t.Roles()}
	switch {
	case t.Phase == boost.PhaseStart:
		r.Op, r.Kind, r.How = opStart, "mean", round.Sums(t.starts())
	case t.Phase == boost.PhaseGrow && t.bins == nil:
		t.vars = t.appendWeight(t.vars[:0])
		r.Op, r.Kind, r.How, r.Vars = opBins, "bins", &round.Gather{}, t.vars
	case t.Phase == boost.PhaseGrow:
		t.nextHistogram(r)
	case t.Phase == boost.PhaseValidate:
		t.vars = t.AppendVars(t.vars[:0])
		r.Op, r.Kind, r.How, r.Roles, r.Vars = opValidate, "validation", round.Sums(2), dataset.Validation, t.vars
	default:
		return nil, nil
	}
	return r, nil
}

// starts is how many numbers the first round sums: see sumKnown.
func (t *trainer) starts() int {
	if t.incomplete {
		return t.Starts() + t.manifest.Labels
	}
	return t.Starts()
}

// foldStart takes the sums of the first round. A missing degree counts as the mean of the known degrees of its
// label.
func (t *trainer) foldStart(sums []float64) error {
	degrees, weight := sums[1:1+t.manifest.Labels], sums[0]
	if t.Weighted {
		weight = sums[1+len(degrees)]
	}
	for c, known := range sums[t.Starts():] {
		if known > 0 {
			degrees[c] = min(weight, float64(degrees[c]*weight)/known)
		}
	}
	if err := t.FoldStart(sums, t.cfg.Start == startMean); err != nil {
		return err
	}
	t.setUnit()
	return nil
}

// setUnit sets the unit of weights, once the weight of the training rows is known.
func (t *trainer) setUnit() {
	if t.Weighted && t.Weight > 0 {
		t.tree.search.setUnit(unitOf(t.Weight))
	}
}

// appendWeight appends the variable of the weight of the training rows, if rows have weights.
func (t *trainer) appendWeight(vars []round.Var) []round.Var {
	if !t.Weighted {
		return vars
	}
	version := uint64(1)
	if t.Refitting {
		version++
	}
	return append(vars, round.Var{ID: varWeight, Version: version, Data: num.Bytes64([]float64{t.Weight})})
}

// nextHistogram describes the next round of the tree at work.
func (t *trainer) nextHistogram(r *round.Round) {
	t.request.tree = t.number()
	narrow := t.tree.ask(&t.request)
	t.encoded.request = t.request.encode(t.encoded.request[:0])
	t.vars = append(t.appendWeight(t.AppendVars(t.vars[:0])), round.Var{ID: varBins, Version: 1, Data: t.encoded.bins},
		round.Var{ID: varRequest, Version: t.request.tree*(maxLeaves+1) + t.tree.step + 1, Data: t.encoded.request})
	r.Op, r.Kind, r.Tasks, r.Vars = opHistogram, "histogram", t.tasks(), t.vars
	shape := round.Shape{F64: 1}
	if n := len(t.request.build) * t.tree.layout.size(); narrow {
		shape.I32 = n
	} else {
		shape.F64 += n
	}
	r.How = &round.Reduce{Shape: shape, Exact: !t.Weighted}
}

// number is the number of the tree at work, counted over training and refit.
func (t *trainer) number() uint64 {
	n := uint64(t.Trees.Rounds)
	if t.Refitting {
		n += maxRounds
	}
	return n
}

// All tasks of a round together send at most smallSums numbers for a node. They send more if the rows add more than
// taskShare numbers for each number that is sent.
const (
	smallSums = 1 << 16
	taskShare = 128
)

// tasks is the number of tasks of a round of histograms. No sum depends on it.
func (t *trainer) tasks() int {
	width := int64(t.cfg.width(t.manifest.Labels, t.Weighted))
	most := max(smallSums, t.manifest.NonZeros*width/taskShare) / (int64(1+t.bins.All) * width)
	tasks := len(t.manifest.Shards)
	for tasks > 1 && int64(tasks) > most {
		tasks /= 2
	}
	return tasks
}

// Fold implements round.Trainer.
func (t *trainer) Fold(res *round.Result) error {
	switch {
	case t.Phase == boost.PhaseStart:
		if err := t.foldStart(res.Sum.F64); err != nil {
			return err
		}
		if t.bins != nil {
			t.begin()
		}
	case t.Phase == boost.PhaseGrow && t.bins == nil:
		bins, err := makeBins(res.Gathered, t.manifest, t.cfg.Bins)
		if err != nil {
			return err
		}
		return t.setBins(bins)
	case t.Phase == boost.PhaseGrow:
		t.foldHistogram(res.Sum)
	case t.Phase == boost.PhaseValidate:
		if t.FoldValidation(res.Sum.F64); t.Phase == boost.PhaseGrow {
			t.begin()
		}
	default:
		return errors.New("training is over: results can no longer be added")
	}
	return nil
}

// setBins sets the bins of the job and begins a tree. A refit has the bins of the training before.
func (t *trainer) setBins(b *binning.Bins) error {
	if n := int64(1+b.All) * int64(t.cfg.width(t.manifest.Labels, t.Weighted)); n >= maxPartial {
		return fmt.Errorf("the features have %d bins, which need %d numbers for a node, more than %d: use fewer bins", b.All,
			n, maxPartial-1)
	}
	t.bins, t.encoded.bins = b, appendBins(nil, b)
	t.begin()
	return nil
}

// begin begins a tree.
func (t *trainer) begin() {
	t.tree.begin(t.bins, newLayout(t.cfg, t.bins, t.manifest.Labels, t.Weighted, t.key, t.number()))
}

// foldHistogram takes the loss and the sums of nodes.
func (t *trainer) foldHistogram(p *round.Partial) {
	if t.tree.step == 0 {
		t.Loss = p.F64[0] / t.Weight
	}
	if !t.tree.fold(sumsOf(p)) {
		return
	}
	var tree forest.Tree
	t.tree.finish(&tree, t.manifest.Labels, t.Loss)
	encoded := tree.Encode()
	if t.Add(boost.AppendTree(nil, encoded)); t.Phase == boost.PhaseGrow {
		t.begin()
	}
}

// Model implements algorithms.Trainer.
func (t *trainer) Model() (algorithms.Model, error) {
	used, err := t.Used()
	if err != nil {
		return nil, err
	}
	return t.Trees.NewVectorModel(&t.Form, used, boost.Scores{Start: t.First, Factor: t.cfg.LearningRate})
}

// State implements learner.Trainer. A job whose bins are not known yet has none, and no tree at work.
func (t *trainer) State(l *fields.List) {
	reading := l.Reading()
	t.List(l)
	t.setUnit()
	known := t.bins != nil
	l.Bool(&known)
	l.Check(known || t.Trees.Rounds == 0 && !t.Refitting && t.Phase <= boost.PhaseGrow,
		"the saved state has no bins of features, but %d trees", t.Trees.Rounds)
	l.Check(!known || t.Phase != boost.PhaseStart || t.Refitting, "the saved state has bins before the first round")
	if !known || reading && !l.Reading() {
		return
	}
	l.Part(len(t.encoded.bins), func(dst []byte) []byte { return append(dst, t.encoded.bins...) }, func(b []byte) error {
		bins, err := decodeBins(b, t.manifest, t.cfg.Bins)
		if err != nil {
			return err
		}
		return t.setBins(bins)
	})
	if t.Phase == boost.PhaseGrow && !(reading && !l.Reading()) {
		t.tree.List(l)
	}
}
