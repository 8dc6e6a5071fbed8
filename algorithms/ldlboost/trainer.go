package ldlboost

import (
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/boost"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// stateFormat is the version of the fields of a state.
const stateFormat = 1

// trainer implements round.Trainer. A boosting round is several summed rounds, one for each level of a tree, and one
// that validates.
type trainer struct {
	learner.Base
	boost.Course
	cfg        *Config
	manifest   *dataset.Manifest
	incomplete bool    // degrees may be missing
	key        num.Key // of columns
	bins       *binning
	tree       growth

	round   round.Round
	vars    []round.Var
	request request
	encoded struct{ bins, request []byte }
}

func newTrainer(c *Config, m *dataset.Manifest, seed uint64, incomplete bool) *trainer {
	return &trainer{
		cfg: c, manifest: m, incomplete: incomplete, key: columnKey(seed),
		tree: growth{cfg: c, search: newSearch(c, m.Labels)},
		Course: boost.Course{MaxRounds: c.Rounds, Patience: c.Patience, Validates: c.ValidationFraction > 0, Refit: c.Refit,
			Form: boost.VectorForm(m.Features, m.Labels, c.Leaves), First: make([]float64, m.Labels), Loss: -1},
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
		r.Op, r.Kind, r.How = opBins, "bins", &round.Gather{}
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
		return 1 + 2*t.manifest.Labels
	}
	return 1 + t.manifest.Labels
}

// means returns the rows and sums of degrees, as if those that are missing were the mean of the others of their label.
func (t *trainer) means(sums []float64) []float64 {
	if !t.incomplete {
		return sums
	}
	rows, degrees, known := sums[0], sums[1:1+t.manifest.Labels], sums[1+t.manifest.Labels:]
	for c := range degrees {
		degrees[c] = min(rows, float64(degrees[c]*rows)/max(known[c], 1))
	}
	return sums[:1+len(degrees)]
}

// nextHistogram describes the next round of the tree at work.
func (t *trainer) nextHistogram(r *round.Round) {
	t.request.tree = t.number()
	t.tree.ask(&t.request)
	t.encoded.request = t.request.append(t.encoded.request[:0])
	t.vars = append(t.AppendVars(t.vars[:0]), round.Var{ID: varBins, Version: 1, Data: t.encoded.bins},
		round.Var{ID: varRequest, Version: t.request.tree*(maxLeaves+1) + t.tree.step + 1, Data: t.encoded.request})
	r.Op, r.Kind, r.Tasks, r.Vars = opHistogram, "histogram", t.tasks(), t.vars
	r.How = round.Sums(1 + len(t.request.build)*t.tree.layout.size())
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
	taskShare = 64
)

// tasks is the number of tasks of a round of histograms. No sum depends on it.
func (t *trainer) tasks() int {
	width := int64(t.cfg.width(t.manifest.Labels))
	most := max(smallSums, t.manifest.NonZeros*width/taskShare) / (int64(1+t.bins.bins) * width)
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
		if err := t.FoldStart(t.means(res.Sum.F64), t.cfg.Start == startMean); err != nil {
			return err
		}
		if t.bins != nil {
			t.begin()
		}
	case t.Phase == boost.PhaseGrow && t.bins == nil:
		bins, err := makeBinning(res.Gathered, t.manifest.Features, t.cfg.Bins)
		if err != nil {
			return err
		}
		return t.setBins(bins)
	case t.Phase == boost.PhaseGrow:
		t.foldHistogram(res.Sum.F64)
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
func (t *trainer) setBins(b *binning) error {
	if n := int64(1+b.bins) * int64(t.cfg.width(t.manifest.Labels)); n >= maxPartial {
		return fmt.Errorf("the features have %d bins, which need %d numbers for a node, more than %d: use fewer bins", b.bins,
			n, maxPartial-1)
	}
	t.bins, t.encoded.bins = b, b.append(nil)
	t.begin()
	return nil
}

// begin begins a tree.
func (t *trainer) begin() {
	t.tree.begin(t.bins, newLayout(t.cfg, t.bins, t.manifest.Labels, t.key, t.number()))
}

// foldHistogram takes the loss and the sums of nodes.
func (t *trainer) foldHistogram(sums []float64) {
	if t.tree.step == 0 {
		t.Loss = sums[0] / float64(t.Rows)
	}
	if !t.tree.fold(sums[1:]) {
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
	known := t.bins != nil
	l.Bool(&known)
	l.Check(known || t.Trees.Rounds == 0 && !t.Refitting && t.Phase <= boost.PhaseGrow,
		"the saved state has no bins of features, but %d trees", t.Trees.Rounds)
	l.Check(!known || t.Phase != boost.PhaseStart || t.Refitting, "the saved state has bins before the first round")
	if !known || reading && !l.Reading() {
		return
	}
	l.Part(len(t.encoded.bins), func(dst []byte) []byte { return append(dst, t.encoded.bins...) }, func(b []byte) error {
		bins, err := decodeBinning(b, t.manifest.Features, t.cfg.Bins)
		if err != nil {
			return err
		}
		return t.setBins(bins)
	})
	if t.Phase == boost.PhaseGrow && !(reading && !l.Reading()) {
		t.tree.List(l)
	}
}
