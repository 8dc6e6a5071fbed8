package ranking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/linalg"
	"github.com/coppice-ldl/coppice/internal/num"
)

// errNoRows says that a fit has no rows. The rows are collected first, so no job gets there.
var errNoRows = errors.New("ranking: there are no training samples")

// fit runs the alternation on all training rows, which are landmarks too, in the order of their
// numbers. scale has a factor for each feature; nil: none.
func (k *kernel) fit(ctx context.Context, u round.Task, d *dataset.Data, scale []float64) ([]byte, error) {
	all := rows.Gather(u, d, &rows.Wanted{})
	if all.N == 0 {
		return nil, errNoRows
	}
	a := newAlternation(&k.cfg, all.N)
	deviation := deviationOf(all, scale)
	p := k.whole(all, deviation, scale)
	k.setIntervals(p, u.Rows(d), d)
	for a.stage != stageDone {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		q := a.request()
		p.exact(a, &q)
	}
	return encodeFit(a, deviation), nil
}

// Demand implements round.Demanding: the matrices of an exact fit.
func (k *kernel) Demand() (bytes int64, what string) {
	if k.cfg.Landmarks > 0 {
		return 0, ""
	}
	n, matrices := int64(k.rows), int64(k.cfg.Kernels)+2
	if n > 1<<27 { // beyond any memory, and the product would be too large a number
		n = 1 << 27
	}
	return matrices * n * n * 8, fmt.Sprintf("an exact fit needs %d matrices of %d×%d numbers; give landmarks, such as "+
		"1000, to avoid them", matrices, k.rows, k.rows)
}

// whole makes the part of all rows, with the kernels between each two of them.
func (k *kernel) whole(all *dataset.Rows, deviation float64, scale []float64) *part {
	p := newPart(k.cfg.Kernels, all.N, all.N)
	refs := make([]dataset.RowRef, all.N)
	for i := range refs {
		refs[i].Pos = uint32(i)
	}
	d := rows.NewDistances(all, scale)
	d.To(p.k[0], refs, func(uint32) *dataset.Rows { return all }, d.NewScratch())
	setKernels(p.k, widths(&k.cfg, deviation))
	return p
}

// newPart makes a part of some rows, with room for its kernels.
func newPart(n, rows, m int) *part {
	p := &part{
		m: m, low: make([]float64, rows), high: make([]float64, rows), l: make([]float64, rows), r: make([]float64, rows),
		a: make([]float64, rows*m), b: make([]float64, rows*n),
	}
	for range n {
		p.k = append(p.k, make([]float64, rows*m))
	}
	return p
}

// setIntervals sets the intervals of all rows, in the order of their numbers.
func (k *kernel) setIntervals(p *part, refs []dataset.RowRef, d *dataset.Data) {
	refs = slices.Clone(refs)
	number := func(r dataset.RowRef) uint32 { return d.Shard(int(r.Shard)).Row[r.Pos] }
	slices.SortFunc(refs, func(a, b dataset.RowRef) int { return cmp.Compare(number(a), number(b)) })
	for i, ref := range refs {
		p.low[i], p.high[i] = k.cfg.Scale.Interval(d.Shard(int(ref.Shard)), int(ref.Pos))
	}
}

// exact folds the sums of a stage over the part, which has all rows. A stays as it is while a
// solution for u is refined.
func (p *part) exact(a *alternation, q *request) {
	if q.stage == stageGram {
		p.setLabels(q)
		p.combine(q.now.v)
		right, g := make([]float64, p.m), linalg.New(p.m, p.m)
		squares := p.residual(right, q.now.u)
		linalg.Gram(g, linalg.Of(p.a, len(p.l), p.m))
		a.foldGram(squares, right, g)
		return
	}
	sum := make([]float64, a.size())
	p.sums(sum, q)
	a.fold(sum)
}

// sums adds the sums of a stage but stageGram; the part has the rows' numbers and, for
// stageResidual, A.
func (p *part) sums(dst []float64, q *request) {
	switch q.stage {
	case stageResidual:
		dst[0] += p.residual(dst[1:], q.now.u)
	case stageWeights, stageRefine:
		n := len(p.k)
		dst[0] += p.weights(dst[1:1+n], q.now)
		if q.stage == stageWeights {
			p.squareB(dst[1+n:])
		}
	case stageCosts:
		squares, distances := p.costs(q.now)
		dst[0] += squares
		dst[1] += distances
	}
}

// deviationOf returns δ, the root of the sum of the scaled features' variances.
func deviationOf(all *dataset.Rows, scale []float64) float64 {
	sums, room := make([]float64, all.Features), make([]float32, all.Features)
	for i := range all.N {
		addFeatures(sums, all, i)
	}
	for c := range sums {
		sums[c] /= float64(all.N)
	}
	total := 0.0
	for i := range all.N {
		total += squaredFrom(sums, scale, all, i, room)
	}
	return math.Sqrt(total / float64(all.N))
}

// addFeatures adds the features of row i to sums.
func addFeatures(sums []float64, r *dataset.Rows, i int) {
	if !r.Sparse {
		for c, v := range r.Dense(i) {
			sums[c] += float64(v)
		}
		return
	}
	columns, values := r.NonZeros(i)
	for k, c := range columns {
		sums[c] += float64(values[k])
	}
}

// squaredFrom returns the squared distance of row i from a mean, both scaled unless scale is nil.
func squaredFrom(mean, scale []float64, r *dataset.Rows, i int, room []float32) (sum float64) {
	x := room
	if r.Sparse {
		clear(x)
		columns, values := r.NonZeros(i)
		for k, c := range columns {
			x[c] = values[k]
		}
	} else {
		x = r.Dense(i)
	}
	for c, v := range x {
		d := float64(v) - mean[c]
		if scale != nil {
			d *= scale[c]
		}
		sum += float64(d * d)
	}
	return sum
}

// fitHead is how many numbers come first in an encoded fit: the deviation, loops, rounds of EM,
// damped factors and squared distances. v, u and the trace follow.
const fitHead = 5

// encodeFit encodes what a fit found.
func encodeFit(a *alternation, deviation float64) []byte {
	all := []float64{deviation, float64(a.loops), float64(a.rounds), float64(a.damped), a.costs}
	all = append(append(append(all, a.now.v...), a.now.u...), a.trace...)
	return num.Bytes64(all)
}

// Gather implements round.GatherKernel.
func (k *kernel) Gather(ctx context.Context, u round.Task, d *dataset.Data, v round.Vars, _ any) ([]byte, error) {
	switch u.Op {
	case opRows:
		return rows.Collect(u, d, &k.wanted), nil
	case opFit:
		return k.fit(ctx, u, d, scaling.Find(v).Scale)
	}
	return nil, errOperation(u.Op)
}
