package ldlboost

import (
	"slices"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms/kit/binning"
	"github.com/coppice-ldl/coppice/algorithms/kit/boost"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// job is what tasks need to know of a job.
type job struct {
	cfg        *Config
	labels     int
	incomplete bool    // degrees may be missing
	weighted   bool    // rows have weights
	rowKey     num.Key // draws the rows of trees
}

// part is what a kernel keeps of the rows of a task.
type part struct {
	job   *job
	mu    sync.Mutex
	sums  *boost.RowSums
	f     []float64 // of one row
	label []float32 // of one row, without missing degrees
	asked int       // trees of the model when a task asked last; the kernel's mu guards it

	// Of training rows:
	binned  bool
	codes   binning.Codes
	entropy []float64

	known   bool // what follows is of a tree
	tree    uint64
	words   []int64 // rows×stride: of each row 1, g and h by label, packed or weighted
	loss    float64 // of all rows, before the tree
	rows    []uint32
	spare   []uint32
	nodes   []span // of rows, by node
	applied int    // splits
	numbers []int32
}

// span is the rows of a node.
type span struct{ from, to int }

// findBins finds the bins of all rows, and Σ d ln d of their degrees.
func (p *part) findBins(d *dataset.Data, b *binning.Bins) {
	refs := p.sums.Refs
	p.codes = binning.Find(d, refs, b)
	p.entropy = make([]float64, 0, len(refs))
	for _, ref := range refs {
		entropy := 0.0
		for _, degree := range d.Shard(int(ref.Shard)).Label(int(ref.Pos)) {
			if x := float64(degree); x > 0 {
				entropy += float64(x * num.Log(x))
			}
		}
		p.entropy = append(p.entropy, entropy)
	}
	p.binned = true
}

// derive computes the derivatives of all rows before a tree, and draws the rows that the tree is grown on.
func (p *part) derive(d *dataset.Data, s *boost.Scores, tree uint64, unit float64) {
	k := p.job
	words, stride := k.cfg.words(k.labels, k.weighted), k.cfg.stride(k.labels, k.weighted)
	refs := p.sums.Refs
	if p.words == nil {
		p.words, p.rows = make([]int64, len(refs)*stride), make([]uint32, 0, len(refs))
		p.spare, p.numbers = make([]uint32, len(refs)), make([]int32, k.cfg.width(k.labels, false))
	}
	p.loss, p.rows = 0, p.rows[:0]
	limit := uint64(k.cfg.RowFraction * (1 << 32))
	for i, ref := range refs {
		shard := d.Shard(int(ref.Shard))
		label := shard.Label(int(ref.Pos))
		copy(p.f, p.sums.Sums[i*k.labels:])
		s.Apply(p.f)
		var loss float64
		if k.incomplete && dataset.CountMissing(label) > 0 {
			boost.Softmax(p.f)
			loss = mergedLoss(label, p.f)
			label = complete(p.label, label, p.f)
		} else {
			loss = p.entropy[i]
			for c, degree := range label {
				loss -= float64(float64(degree) * p.f[c])
			}
			loss += boost.Softmax(p.f)
		}
		weight := shard.WeightOf(int(ref.Pos))
		p.loss += float64(weight * boost.ExactLoss(min(max(0, loss), mostLoss)))
		if limit < 1<<32 && uint64(num.Philox(k.rowKey, [4]uint32{shard.Row[ref.Pos], uint32(tree), 0, 0})[0]) >= limit {
			continue
		}
		p.rows = append(p.rows, uint32(i))
		quantise(p.numbers, p.f, label)
		if own := p.words[i*stride:][:words]; k.weighted {
			weigh(own, p.numbers, unitsOf(weight, unit))
		} else {
			pack(own, p.numbers)
		}
	}
	p.known, p.tree = true, tree
	p.restart()
}

// restart gives all rows to the root.
func (p *part) restart() {
	slices.Sort(p.rows)
	p.nodes, p.applied = append(p.nodes[:0], span{0, len(p.rows)}), 0
}

// apply divides the rows by the splits of a tree.
func (p *part) apply(splits []division, b *binning.Bins) {
	if p.applied > len(splits) {
		p.restart()
	}
	for _, s := range splits[p.applied:] {
		n := p.nodes[s.node]
		middle := n.from + p.codes.Divide(p.rows[n.from:n.to], p.spare, &b.Columns[s.column], s.bin, b.Dense)
		p.nodes = append(p.nodes, span{n.from, middle}, span{middle, n.to})
	}
	p.applied = len(splits)
}

// validate returns the weight of the rows and the sum of their losses.
func (p *part) validate(d *dataset.Data, s *boost.Scores) (weight, loss float64) {
	labels := len(p.f)
	for i, ref := range p.sums.Refs {
		copy(p.f, p.sums.Sums[i*labels:])
		s.Apply(p.f)
		shard := d.Shard(int(ref.Shard))
		label, own, of := shard.Label(int(ref.Pos)), 0.0, shard.WeightOf(int(ref.Pos))
		if p.job.incomplete && dataset.CountMissing(label) > 0 {
			boost.Softmax(p.f)
			own = mergedLoss(label, p.f)
		} else {
			own = boost.LossOf(label, p.f, boost.LogSumExp(p.f))
		}
		weight += of
		loss += float64(of * boost.ExactLoss(own))
	}
	return weight, loss
}

// sumKnown sets dst to the sums of boost.SumDegrees and, if degrees may be missing, the weights of rows whose degrees
// are known, by label.
func sumKnown(dst []float64, u round.Task, d *dataset.Data) {
	sums := 1 + d.Manifest.Labels
	if d.Manifest.HasWeights {
		sums++
	}
	boost.SumDegrees(dst[:sums], u, d)
	known := dst[sums:]
	if len(known) == 0 {
		return
	}
	for _, ref := range u.Rows(d) {
		shard := d.Shard(int(ref.Shard))
		weight := shard.WeightOf(int(ref.Pos))
		for c, degree := range shard.Label(int(ref.Pos)) {
			if degree == degree {
				known[c] += weight
			}
		}
	}
}

// newPart returns the part of a task, which knows nothing of its rows yet.
func newPart(j *job, u round.Task, d *dataset.Data) *part {
	return &part{job: j, sums: boost.NewRowSums(d.WithWeight(u.Rows(d)), j.labels), f: make([]float64, j.labels),
		label: make([]float32, j.labels)}
}
