package edllrl

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/clusters"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/simplex"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// opProducts sums the products of labels of P_g + Λ_g/ρ (Round.Op).
const opProducts uint8 = 1

// varHistory has the steps so far (Var.ID): of each, the effective weights at its end, then T of each group.
const varHistory = 2

var _ round.ReduceKernel = (*kernel)(nil)

// kernel is the workers' half.
type kernel struct {
	shared maxent.Kernel
	groups int
	rho    float64
}

func newKernel(c *Config, m *dataset.Manifest) *kernel {
	return &kernel{maxent.Kernel{Features: m.Features, Labels: m.Labels, Alone: true}, c.Clusters, c.Rho}
}

// scratch is the working memory of a lane.
type scratch struct {
	*maxent.Scratch
	terms   *terms
	groups  clusters.Scratch
	samples samples // of a task without a derived value
}

// samples are the ADMM variables of a task's samples.
type samples struct {
	group      []int
	z, lambdas []float64 // samples×labels
}

// derived is what evaluations of a step have in common.
type derived struct {
	round.Unpooled
	samples
	known round.Derived // of maxent; nil: there was no memory for it
}

// Bytes implements round.Derived.
func (x *derived) Bytes() int {
	n := 8*(len(x.group)+len(x.z)+len(x.lambdas)) + 96
	if x.known != nil {
		n += x.known.Bytes()
	}
	return n
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any {
	t := &terms{rho: k.rho, degrees: make([]float64, k.shared.Labels), slopes: make([]float64, k.shared.Labels)}
	return &scratch{Scratch: k.shared.NewScratch(t), terms: t}
}

// Derive implements round.ReduceKernel for evaluations.
func (k *kernel) Derive(u round.Task, d *dataset.Data, v round.Vars, working any) (round.Derived, error) {
	s, rows := working.(*scratch), len(u.Rows(d))
	if u.Op != fullbatch.OpEvaluate || !u.TryReserve(8*rows*(1+2*k.shared.Labels)+96) {
		return nil, nil
	}
	x := new(derived)
	s.Unit = u
	if err := k.replay(&x.samples, &s.Unit, d, v, s); err != nil {
		return nil, err
	}
	x.known = k.shared.Derive(u, d, s.Scratch)
	return x, nil
}

// replay computes z and Λ of a task's samples after the steps that a round carries.
func (k *kernel) replay(x *samples, u *round.Task, d *dataset.Data, v round.Vars, s *scratch) error {
	refs, centres, n := u.Rows(d), clusters.Find(v), k.shared.Labels
	*x = samples{resized(x.group, len(refs)), resized(x.z, len(refs)*n), resized(x.lambdas, len(refs)*n)}
	clear(x.z)
	clear(x.lambdas)
	for i, ref := range refs {
		maxent.Degrees(s.terms.degrees, d.Shard(int(ref.Shard)).Label(int(ref.Pos)))
		x.group[i], _ = clusters.Nearest(centres, s.terms.degrees)
	}
	history, weights := num.Float64s(v.Get(varHistory)), maxent.Evaluation(k.shared.Features, n)
	per := weights + k.groups*n*n
	if len(history)%per != 0 {
		return fmt.Errorf("%s: the steps have %d values, which is not a multiple of %d", Name, len(history), per)
	}
	sum := s.terms.slopes
	for ; len(history) > 0; history = history[per:] {
		matrices := history[weights:per]
		k.shared.Predict(u, d, history[:weights], s.Scratch, func(i int, p []float64) {
			z, lambdas, t := x.z[i*n:][:n], x.lambdas[i*n:][:n], matrices[x.group[i]*n*n:][:n*n]
			for c := range sum {
				sum[c] = p[c] + lambdas[c]/k.rho
			}
			clear(z)
			for c, a := range sum {
				num.AddScaled64(z, a, t[c*n:][:n])
			}
			for c := range z {
				lambdas[c] += float64(k.rho * (p[c] - z[c]))
			}
		})
	}
	return nil
}

// Run implements round.ReduceKernel.
func (k *kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, of round.Derived,
	working any) error {
	s := working.(*scratch)
	s.Unit = u
	if clusters.Run(dst, &s.Unit, d, v, &s.groups) {
		return nil
	}
	var known round.Derived
	if u.Op == opProducts || u.Op == fullbatch.OpEvaluate {
		x, ok := of.(*derived)
		if ok {
			s.terms.samples, known = x.samples, x.known
		} else {
			if err := k.replay(&s.samples, &s.Unit, d, v, s); err != nil {
				return err
			}
			s.terms.samples = s.samples
		}
	}
	if u.Op == opProducts {
		k.products(dst.F64, d, v, s)
		return nil
	}
	if !k.shared.Run(dst, &s.Unit, d, v, known, s.Scratch) {
		return fmt.Errorf("%s: the task has the unknown operation %d", Name, u.Op)
	}
	return nil
}

// products sums the products of labels of each group: the lower triangle of AᵀA, where A = P + Λ/ρ.
func (k *kernel) products(sums []float64, d *dataset.Data, v round.Vars, s *scratch) {
	x, n := &s.terms.samples, k.shared.Labels
	row := s.terms.slopes
	k.shared.Predict(&s.Unit, d, maxent.Weights(v), s.Scratch, func(i int, p []float64) {
		for c := range row {
			row[c] = p[c] + x.lambdas[i*n+c]/k.rho
		}
		of := simplex.Triangle(n)
		simplex.AddGram(sums[x.group[i]*of:][:of], row, 1)
	})
}

// terms are the losses ½‖p - d‖² + Λ(p - z) + ½ρ‖p - z‖² of a task's samples, in their order: see maxent.Terms.
type terms struct {
	rho             float64
	samples         samples
	at              int       // of the next sample
	degrees, slopes []float64 // labels
}

// Sums implements maxent.Terms.
func (t *terms) Sums() int { return 1 }

// Begin implements maxent.Terms.
func (t *terms) Begin(round.Vars) { t.at = 0 }

// Add implements maxent.Terms. With slopes b by the prediction, the derivative by score c is p_c·(b_c - pᵀb).
func (t *terms) Add(r, sums, p []float64, d []float32) {
	maxent.Degrees(t.degrees, d)
	n := len(p)
	z, lambdas := t.samples.z[t.at*n:][:n], t.samples.lambdas[t.at*n:][:n]
	t.at++
	for c, x := range p {
		error, apart := x-t.degrees[c], x-z[c]
		sums[0] += float64(0.5*error*error) + float64(lambdas[c]*apart) + float64(0.5*t.rho*apart*apart)
		t.slopes[c] = error + lambdas[c] + float64(t.rho*apart)
	}
	mean := num.Dot64(p, t.slopes)
	for c, b := range t.slopes {
		r[c] += float64(p[c] * (b - mean))
	}
}

// resized returns v with n values of any kind.
func resized[T any](v []T, n int) []T {
	if cap(v) < n {
		return make([]T, n)
	}
	return v[:n]
}
