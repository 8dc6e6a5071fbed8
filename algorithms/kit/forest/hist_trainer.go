package forest

import (
	"encoding/binary"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/binning"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// countedTrainer implements round.Trainer: it grows trees by the counts of their nodes' bins, which rounds sum over
// all shards.
type countedTrainer struct {
	learner.Base
	variant  Variant
	cfg      *Config
	manifest *dataset.Manifest
	key      num.Key // of features
	edges    *edges
	growth   growth
	trees    []*Tree // complete
	rounds   uint64  // of counts and rows

	round   round.Round
	vars    [2]round.Var
	encoded struct{ bins, nodes []byte }
}

func newCountedTrainer(v Variant, c *Config, m *dataset.Manifest, seed uint64) *countedTrainer {
	classes := v.Classes(m.Labels)
	limits := usualLimits
	limits.trees, limits.numbers = treesAtWork(c, m, classes), roundNumbers(m)
	return &countedTrainer{
		variant: v, cfg: c, manifest: m, key: num.NewKey(seed, v.Name+"/features"),
		growth: growth{cfg: c, classes: classes, search: newCountedSearch(c),
			limits: limits},
	}
}

// setEdges sets the bins of the job and begins trees.
func (t *countedTrainer) setEdges(e *edges) {
	t.edges, t.encoded.bins = e, e.append(nil)
	t.growth.layouts = newLayouts(t.cfg, e, t.growth.classes, t.key)
	listed := int64(0)
	for i := range e.Columns {
		if e.Columns[i].Sparse {
			listed++
		}
	}
	perRow := 4 * min(listed, t.manifest.NonZeros/int64(max(1, t.manifest.Rows)))
	t.growth.rowSize = rowHead + int64(e.Dense) + perRow
	dense := int64(e.Dense) * int64(t.cfg.tried(t.manifest.Features)) / int64(t.manifest.Features)
	t.growth.rowWork = rowHead + dense + perRow
	t.begin()
}

// begin begins the next trees.
func (t *countedTrainer) begin() {
	g := &t.growth
	roots := max(1, g.limits.numbers/g.layouts.usual())
	g.begin(len(t.trees), min(t.cfg.Trees-len(t.trees), g.limits.trees, roots))
}

// tasks is the number of tasks of a round. No tree depends on it. All tasks of a round of roots together send at most
// smallSums numbers for a root, or one for each value of the data.
func (t *countedTrainer) tasks() int {
	const smallSums = 1 << 16
	most := max(smallSums, t.manifest.NonZeros) / int64(t.growth.layouts.usual())
	tasks := len(t.manifest.Shards)
	for tasks > 1 && int64(tasks) > most {
		tasks /= 2
	}
	return tasks
}

// Next implements round.Trainer.
func (t *countedTrainer) Next() (*round.Round, error) {
	r := &t.round
	*r = round.Round{Tasks: len(t.manifest.Shards), Scope: round.Sharded, Roles: dataset.Train}
	switch {
	case t.edges == nil:
		r.Op, r.Kind, r.How = opBins, "bins", &round.Gather{}
		return r, nil
	case len(t.trees) == t.cfg.Trees:
		return nil, nil
	}
	asks, numbers := t.growth.next()
	t.encoded.nodes = t.growth.appendNodes(t.encoded.nodes[:0], asks)
	t.vars = [2]round.Var{{ID: varBins, Version: 1, Data: t.encoded.bins},
		{ID: varNodes, Version: t.rounds + 1, Data: t.encoded.nodes}}
	r.Tasks, r.Vars = t.tasks(), t.vars[:]
	if r.Op, r.Kind, r.How = opCounts, "histogram", round.Sums(numbers); numbers == 0 {
		r.Op, r.Kind, r.How = opRows, "samples", &round.Gather{}
	}
	return r, nil
}

// Fold implements round.Trainer.
func (t *countedTrainer) Fold(res *round.Result) error {
	if t.edges == nil {
		e, err := t.makeEdges(res.Gathered)
		if err == nil {
			t.setEdges(e)
		}
		return err
	}
	if len(t.trees) == t.cfg.Trees {
		return fmt.Errorf("all %d trees are grown: results can no longer be added", len(t.trees))
	}
	if _, numbers := t.growth.next(); numbers > 0 {
		if err := t.growth.foldCounts(res.Sum.F64); err != nil {
			return err
		}
	} else if err := t.growth.foldRows(res.Gathered); err != nil {
		return err
	}
	if t.rounds++; t.growth.done() {
		t.trees = t.growth.finish(t.trees, t.variant.Counted, t.manifest.Labels)
		if t.growth.trees = nil; len(t.trees) < t.cfg.Trees {
			t.begin()
		}
	}
	return nil
}

// makeEdges makes the bins of what all tasks told. Trees may need more training rows than these are: if the folds or
// groups are a list, only the workers knew.
func (t *countedTrainer) makeEdges(parts [][]byte) (*edges, error) {
	rows, values := 0, make([][]byte, len(parts))
	for i, part := range parts {
		if len(part) < 4 {
			return nil, fmt.Errorf("task %d: %w", i, binning.ErrBins)
		}
		rows, values[i] = rows+int(binary.LittleEndian.Uint32(part)), part[4:]
	}
	e := newEdges(t.manifest.Features)
	if err := binning.Make(values, t.manifest.Features, t.cfg.Bins, e.add); err != nil {
		return nil, err
	}
	if err := e.Check(t.manifest, t.cfg.Bins); err != nil {
		return nil, err
	}
	return e, t.cfg.checkDraws(rows)
}

// Progress implements round.Trainer: a step is a tree, a sample a draw.
func (t *countedTrainer) Progress() round.Progress {
	p := round.Progress{Step: uint64(len(t.trees)), Steps: uint64(t.cfg.Trees), Loss: -1, Phase: "growing trees"}
	if t.edges == nil {
		p.Phase = "bins"
	}
	for _, tree := range t.trees {
		samples, loss := tree.Training()
		p.Samples += uint64(samples)
		p.Loss = max(0, p.Loss) + loss
	}
	if len(t.trees) > 0 {
		p.Loss /= float64(len(t.trees))
	}
	return p
}

// StepLosses implements curve.Stepped: after each tree, the mean loss of the trees so far.
func (t *countedTrainer) StepLosses() []float64 {
	return (&Collected[*Tree]{Trees: t.trees}).StepLosses()
}

// Counters implements algorithms.Trainer.
func (t *countedTrainer) Counters() map[string]uint64 {
	evaluations := uint64(0)
	for _, tree := range t.trees {
		evaluations += tree.Evaluations
	}
	for i := range t.growth.trees {
		evaluations += t.growth.trees[i].evaluations
	}
	return map[string]uint64{"gain_evaluations": evaluations}
}

// Model implements algorithms.Trainer.
func (t *countedTrainer) Model() (algorithms.Model, error) {
	if len(t.trees) < t.cfg.Trees {
		return nil, fmt.Errorf("forest: there is no model yet, because %d of %d trees are grown", len(t.trees), t.cfg.Trees)
	}
	return newModel(t.trees, t.manifest.Features, t.manifest.Labels), nil
}

// State implements learner.Trainer: the bins once they are known, the complete trees, and the trees at work.
func (t *countedTrainer) State(l *fields.List) {
	reading := l.Reading()
	known := t.edges != nil
	if l.Bool(&known); !known || reading && !l.Reading() {
		return
	}
	l.Uint64(&t.rounds)
	trees := uint64(len(t.trees))
	l.Uint64(&trees)
	l.Check(trees <= uint64(t.cfg.Trees), "the saved state has %d trees, want at most %d", trees, t.cfg.Trees)
	for i := uint64(0); i < trees && !(reading && !l.Reading()); i++ {
		size, encode := 0, func(dst []byte) []byte { return dst }
		if !reading {
			size, encode = t.trees[i].Size(), t.trees[i].AppendBinary
		}
		l.Part(size, encode, func(b []byte) error {
			tree, err := DecodeTree(append([]byte(nil), b...), t.manifest.Features, t.manifest.Labels)
			t.trees = append(t.trees, tree)
			return err
		})
	}
	if reading && !l.Reading() {
		return
	}
	l.Part(len(t.encoded.bins), func(dst []byte) []byte { return append(dst, t.encoded.bins...) }, func(b []byte) error {
		e, err := decodeEdges(b, t.manifest, t.cfg.Bins)
		if err == nil && len(t.trees) < t.cfg.Trees {
			t.setEdges(e)
		} else {
			t.edges, t.encoded.bins = e, append([]byte(nil), b...)
		}
		return err
	})
	if len(t.trees) == t.cfg.Trees || reading && !l.Reading() {
		return
	}
	var work []byte
	if !reading {
		work = t.growth.append(nil)
	}
	l.Part(len(work), func(dst []byte) []byte { return append(dst, work...) }, t.growth.decode)
}
