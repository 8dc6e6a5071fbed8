package ldlscl

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms/kit/blocks"
	"github.com/coppice-ldl/coppice/algorithms/kit/clusters"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/algorithms/kit/simplex"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// opRegression sums the products of features and codes (Round.Op).
const opRegression uint8 = 1

// varOwn has V, then ln c of all samples by number (Var.ID). The effective weights of W are maxent's.
const varOwn = 2

var _ round.ReduceKernel = (*kernel)(nil)

// kernel is the workers' half.
type kernel struct {
	sizes
	lambda1, lambda2 float64
}

// scratch is the working memory of a lane.
type scratch struct {
	unit    round.Task
	scaling scaling.Scratch
	groups  clusters.Scratch
	space   blocks.Space
	block   blocks.Block
	sample  sample
	slopes  []float64 // MaxRows×labels: scores, then derivatives by them
	row     []float64 // features+1: scaled features, and a 1
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any {
	return &scratch{slopes: make([]float64, blocks.MaxRows*k.labels), row: make([]float64, k.features+1),
		sample: newSample(k.labels, k.centres)}
}

// Derive implements round.ReduceKernel.
func (k *kernel) Derive(round.Task, *dataset.Data, round.Vars, any) (round.Derived, error) {
	return nil, nil
}

// Run implements round.ReduceKernel.
func (k *kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, _ round.Derived,
	working any) error {
	s := working.(*scratch)
	s.unit = u
	switch {
	case scaling.Run(dst, &s.unit, d, v, &s.scaling), clusters.Run(dst, &s.unit, d, v, &s.groups):
	case u.Op == fullbatch.OpEvaluate:
		k.evaluate(dst.F64, d, v, s)
	case u.Op == opRegression:
		k.regress(dst.F64, d, v, s)
	default:
		return fmt.Errorf("%s: the task has the unknown operation %d", Name, u.Op)
	}
	return nil
}

// evaluate sums the terms of the objective and their derivatives over a task's samples, weighted: see sizes.evaluation.
func (k *kernel) evaluate(sums []float64, d *dataset.Data, v round.Vars, s *scratch) {
	weights, own, centres := maxent.Weights(v), num.Float64s(v.Get(varOwn)), clusters.Find(v)
	n, matrix := k.labels, k.features*k.labels
	shared, logs := own[:k.centres*n], own[k.centres*n:]
	outers, totals := sums[fullbatch.SumsAt:][:matrix], sums[fullbatch.SumsAt+matrix:][:n]
	terms := sums[fullbatch.SumsAt+matrix+n:]
	byV, byLogs := terms[1:][:len(shared)], terms[1+len(shared):]
	refs := s.unit.Rows(d)
	if d.Manifest.HasWeights {
		sums[2] = float64(len(refs))
	}
	for len(refs) > 0 {
		s.block = blocks.Next(refs, func(i uint32) *dataset.Rows { return d.Shard(int(i)) })
		refs = refs[len(s.block.Refs):]
		scores := s.slopes[:len(s.block.Refs)*n]
		for i := range s.block.Refs {
			copy(scores[i*n:], weights[matrix:])
		}
		s.space.AddProduct(scores, &s.block, weights[:matrix], n)
		for i, ref := range s.block.Refs {
			number := int(s.block.Rows.Row[ref.Pos])
			x := &s.sample
			x.read(s.block.Label(i), logs[number*k.centres:][:k.centres])
			divergence, others := x.evaluate(scores[i*n:][:n], shared, centres, k.lambda1, k.lambda2)
			weight := s.block.Weight(i)
			x.weigh(weight)
			sums[0] += weight
			sums[1] += float64(weight * divergence)
			terms[0] += float64(weight * others)
			num.Add64(totals, x.byScores)
			for l, c := range x.code {
				num.AddScaled64(byV[l*n:][:n], c, x.byScores)
			}
			num.Add64(byLogs[number*k.centres:][:k.centres], x.byLogs)
			copy(scores[i*n:], x.byScores)
		}
		s.space.AddProductT(outers, &s.block, scores, n)
	}
}

// sample is the memory in which a sample is evaluated.
type sample struct {
	degrees, p, b, byScores []float64 // labels
	code, byLogs            []float64 // centres
}

func newSample(labels, centres int) sample {
	v := func(n int) []float64 { return make([]float64, n) }
	return sample{degrees: v(labels), p: v(labels), b: v(labels), byScores: v(labels), code: v(centres),
		byLogs: v(centres)}
}

// read sets the label distribution and the code.
func (x *sample) read(label []float32, logs []float64) {
	maxent.Degrees(x.degrees, label)
	for l, u := range logs {
		x.code[l] = num.Exp(u)
	}
}

// evaluate returns the K-L divergence of a sample with scores Wᵀx, and its other terms. It sets byScores and byLogs to
// the derivatives of both by Wᵀx + Vᵀc and by ln c. shared is V.
func (x *sample) evaluate(scores, shared, centres []float64, lambda1, lambda2 float64) (divergence, others float64) {
	n := len(scores)
	for l, c := range x.code {
		num.AddScaled64(scores, c, shared[l*n:][:n])
	}
	log := softmax(x.p, scores)
	for c, d := range x.degrees {
		if d > 0 {
			divergence += float64(d * (num.Log(d) - (scores[c] - log)))
		}
	}
	clear(x.b)
	for l, code := range x.code {
		centre, far := centres[l*n:][:n], 0.0
		for c, p := range x.p {
			by := p - centre[c]
			far += float64(by * by)
			x.b[c] += float64(2 * lambda1 * code * by)
		}
		barrier := lambda2 / code
		others += float64(lambda1*code*far) + barrier
		x.byLogs[l] = float64(lambda1*code*far) - barrier
	}
	mean := num.Dot64(x.p, x.b)
	for c, p := range x.p {
		x.byScores[c] = p - x.degrees[c] + float64(p*(x.b[c]-mean))
	}
	for l, code := range x.code {
		x.byLogs[l] += float64(code * num.Dot64(shared[l*n:][:n], x.byScores))
	}
	return divergence, others
}

// weigh multiplies byScores and byLogs by the weight of the sample.
func (x *sample) weigh(weight float64) {
	for _, v := range [][]float64{x.byScores, x.byLogs} {
		for i := range v {
			v[i] *= weight
		}
	}
}

// softmax sets p to exp(s_c) / Σ exp(s), and returns ln Σ exp(s).
func softmax(p, scores []float64) (log float64) {
	most, sum := math.Inf(-1), 0.0
	for _, s := range scores {
		most = max(most, s)
	}
	for c, s := range scores {
		p[c] = num.Exp(s - most)
		sum += p[c]
	}
	for c := range p {
		p[c] /= sum
	}
	return most + num.Log(sum)
}

// regress sums the products of scaled features, and of scaled features and ln c, weighted: see sizes.regression.
func (k *kernel) regress(sums []float64, d *dataset.Data, v round.Vars, s *scratch) {
	scale, logs := scaling.Find(v), num.Float64s(v.Get(varOwn))[k.centres*k.labels:]
	columns := simplex.Columns{Features: k.features, Bias: true}
	n := simplex.Triangle(columns.Count())
	for _, ref := range s.unit.Rows(d) {
		rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		columns.Read(s.row, rows, pos, &scale)
		weight := rows.WeightOf(pos)
		simplex.AddGram(sums[:n], s.row, weight)
		simplex.AddOuter(sums[n:], s.row, logs[int(rows.Row[pos])*k.centres:][:k.centres], weight)
	}
}
