package ldlldm

import (
	"context"
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The operations (Round.Op) of the rounds before the fit.
const (
	opStart uint8 = iota + 1 // collected: rows that may be the first centres
	opMeans                  // for each cluster: rows, and Σ d, both weighted
	opGram                   // Σ d dᵀ of all rows, then of each cluster, weighted
)

// The values that rounds carry (Var.ID), beside maxent's.
const (
	varCentres  = 2 // float64, clusters×labels
	varMatrices = 3 // float64, M_g of each cluster, labels×labels
)

var (
	_ round.ReduceKernel = (*kernel)(nil)
	_ round.GatherKernel = (*kernel)(nil)
)

// kernel is the workers' half.
type kernel struct {
	shared   maxent.Kernel
	clusters int
	key      num.Key // of the draw of the first centres
}

func newKernel(j *learner.Job[Config]) *kernel {
	return &kernel{
		maxent.Kernel{Features: j.Manifest.Features, Labels: j.Manifest.Labels},
		j.Config.Clusters, num.NewKey(j.Seed, "ldl-ldm/start"),
	}
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any {
	return k.shared.NewScratch(&terms{labels: k.shared.Labels, product: make([]float64, k.shared.Labels)})
}

// Derive implements round.ReduceKernel.
func (k *kernel) Derive(u round.Task, d *dataset.Data, _ round.Vars, scratch any) (round.Derived, error) {
	return k.shared.Derive(u, d, scratch.(*maxent.Scratch)), nil
}

// Gather implements round.GatherKernel.
func (k *kernel) Gather(_ context.Context, u round.Task, d *dataset.Data, _ round.Vars, _ any) ([]byte, error) {
	if u.Op != opStart {
		return nil, fmt.Errorf("ldl-ldm: the task has the unknown operation %d", u.Op)
	}
	return appendEntries(nil, draw(k.clusters, k.key, &u, d)), nil
}

// Run implements round.ReduceKernel.
func (k *kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, derived round.Derived,
	scratch any) error {
	s := scratch.(*maxent.Scratch)
	s.Unit = u
	switch u.Op {
	case opMeans:
		k.means(dst.F64, &s.Unit, d, v)
	case opGram:
		k.gram(dst.F64, &s.Unit, d, v)
	default:
		if !k.shared.Run(dst, &s.Unit, d, v, derived, s) {
			return fmt.Errorf("ldl-ldm: the task has the unknown operation %d", u.Op)
		}
	}
	return nil
}

// nearest returns the cluster whose centre is nearest to a label distribution, among equally near ones
// the first.
func nearest(centres []float64, label []float32) int {
	best, least := 0, math.Inf(1)
	for g := range len(centres) / len(label) {
		far := 0.0
		for c, x := range centres[g*len(label):][:len(label)] {
			by := float64(label[c]) - x
			far += float64(by * by)
		}
		if far < least {
			best, least = g, far
		}
	}
	return best
}

// means sums the labels of each cluster: its rows, then Σ d.
func (k *kernel) means(sums []float64, u *round.Task, d *dataset.Data, v round.Vars) {
	centres := num.Float64s(v.Get(varCentres))
	for _, ref := range u.Rows(d) {
		rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		label, weight := rows.Label(pos), rows.WeightOf(pos)
		own := sums[nearest(centres, label)*(1+len(label)):][:1+len(label)]
		own[0] += weight
		for c, x := range label {
			own[1+c] += float64(weight * float64(x))
		}
	}
}

// gram sums the products of labels of all rows, and of each cluster.
func (k *kernel) gram(sums []float64, u *round.Task, d *dataset.Data, v round.Vars) {
	centres := num.Float64s(v.Get(varCentres))
	for _, ref := range u.Rows(d) {
		rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		label, weight := rows.Label(pos), rows.WeightOf(pos)
		n := len(label) * len(label)
		own := sums[(1+nearest(centres, label))*n:][:n]
		for i, x := range label {
			for j, y := range label {
				product := float64(weight * float64(float64(x)*float64(y)))
				sums[i*len(label)+j] += product
				own[i*len(label)+j] += product
			}
		}
	}
}

// terms are pᵀ·M_g·p of a row's prediction in cluster g: see maxent.Terms.
type terms struct {
	labels            int
	centres, matrices []float64
	product           []float64 // M_g·p
}

// Sums implements maxent.Terms.
func (t *terms) Sums() int { return 1 }

// Begin implements maxent.Terms.
func (t *terms) Begin(v round.Vars) {
	t.centres, t.matrices = num.Float64s(v.Get(varCentres)), num.Float64s(v.Get(varMatrices))
}

// Add implements maxent.Terms: with b = 2·M_g·p, the derivative by score c is p_c·(b_c - pᵀb).
func (t *terms) Add(r, sums, p []float64, d []float32) {
	n := t.labels
	m := t.matrices[nearest(t.centres, d)*n*n:][:n*n]
	term := 0.0
	for c := range n {
		sum := 0.0
		for k, x := range m[c*n : c*n+n : c*n+n] {
			sum += float64(x * p[k])
		}
		t.product[c] = sum
		term += float64(p[c] * sum)
	}
	sums[0] += term
	for c, b := range t.product {
		r[c] += float64(2 * float64(p[c]*(b-term)))
	}
}
