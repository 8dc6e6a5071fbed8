package ldsvr

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/linalg"
)

// The stages of a descent.
const (
	stageBegin   byte = iota // the first point is to be evaluated
	stageWhole               // the solution of the last system is
	stageShorter             // a point between is
	stageHere                // a point between was taken: its system is wanted
	stageEnd
	stages
)

// leastStep is the share of a direction below which no point is tried.
const leastStep = 1e-10

// descent is iteratively reweighted least squares with shorter steps where the objective does not
// fall, as a state machine: one evaluation of a point at a time. A point is β, then b.
type descent struct {
	iterations uint64 // at most
	tolerance  float64

	stage     byte
	done      uint64  // iterations
	value     float64 // of the objective at the point; known after stageBegin
	step      float64 // of the trial
	point     []float64
	direction []float64
}

func newDescent(c *Config, n int) *descent {
	return &descent{
		iterations: uint64(c.Iterations), tolerance: c.Tolerance,
		point: make([]float64, n), direction: make([]float64, n),
	}
}

// state lists the fields of a state.
func (x *descent) state(l *fields.List) {
	l.Byte(&x.stage)
	l.Uint64(&x.done)
	l.Float64(&x.value, &x.step)
	l.Float64s(x.point, x.direction)
	l.Check(x.stage < stages && x.done <= x.iterations, "stage %d of the fit is not possible at iteration %d",
		x.stage, x.done)
	l.Check(finite(x.value) && x.value >= 0 && x.step >= 0 && x.step <= 1,
		"the fit has the objective %v and the step size %v, which is not possible", x.value, x.step)
	for _, v := range [][]float64{x.point, x.direction} {
		for _, w := range v {
			l.Check(w >= -mostValue && w <= mostValue, "the fit has the value %v, which is not possible", w)
		}
	}
}

// mostValue is greater than any value of a fit.
const mostValue = 1e100

func finite(x float64) bool { return x-x == 0 }

// trial sets p to the point that is evaluated next.
func (x *descent) trial(p []float64) {
	for i, v := range x.point {
		p[i] = v
		if x.stage == stageWhole || x.stage == stageShorter {
			p[i] += float64(x.step * x.direction[i])
		}
	}
}

// wantsSystem reports whether the evaluation of the trial also wants the least-squares system
// there.
func (x *descent) wantsSystem() bool { return x.stage != stageShorter }

// take takes the objective at the trial. It reports whether the solution of the system there is
// wanted: turn takes it.
func (x *descent) take(value float64) bool {
	switch x.stage {
	case stageBegin:
		x.value = value
		return true
	case stageHere:
		return true
	}
	if !(value < x.value) {
		if x.step /= 10; x.step < leastStep {
			x.stage = stageEnd
		} else {
			x.stage = stageShorter
		}
		return false
	}
	x.trial(x.point)
	last, whole := x.value-value <= float64(x.tolerance*x.value), x.stage == stageWhole
	x.value, x.stage = value, stageHere
	if x.done++; last || x.done == x.iterations {
		x.stage = stageEnd
	}
	return whole && x.stage != stageEnd
}

// turn goes from the point to a solution. If the solution is the point, the descent has ended.
func (x *descent) turn(solution []float64) {
	moves := false
	for i, v := range solution {
		x.direction[i] = v - x.point[i]
		moves = moves || x.direction[i] != 0
	}
	if x.stage, x.step = stageWhole, 1; !moves {
		x.stage = stageEnd
	}
}

// kernelRows is how many rows of a kernel matrix are made at a time.
const kernelRows = 256

// kernelMatrix returns k(r_i, r_j) of all pairs of rows.
func kernelMatrix(r *dataset.Rows, from *rows.Distances, width float64) linalg.Matrix {
	k := linalg.New(r.N, r.N)
	eachBlock(r, from, func(at int, squares []float64) { copy(k.V[at*r.N:], squares) })
	rows.Gaussian(k.V, gaussian(width))
	return k
}

// gaussian is what squared distances are divided by.
func gaussian(width float64) float64 { return 2 * width * width }

// eachBlock calls f with the squared distances of some rows, from row at on, to all.
func eachBlock(r *dataset.Rows, from *rows.Distances, f func(at int, squares []float64)) {
	s, shard := from.NewScratch(), func(uint32) *dataset.Rows { return r }
	squares := make([]float64, min(kernelRows, r.N)*r.N)
	var refs []dataset.RowRef
	for at := 0; at < r.N; at += kernelRows {
		refs = refs[:0]
		for i := at; i < min(at+kernelRows, r.N); i++ {
			refs = append(refs, dataset.RowRef{Pos: uint32(i)})
		}
		from.To(squares[:len(refs)*r.N], refs, shard, s)
		f(at, squares[:len(refs)*r.N])
	}
}

// meanDistance returns the mean Euclidean distance between two of the rows; 1 where all are the
// same.
func meanDistance(r *dataset.Rows, scale []float64) float64 {
	sum := 0.0
	eachBlock(r, rows.NewDistances(r, scale), func(at int, squares []float64) {
		for i := 0; i*r.N < len(squares); i++ {
			for _, d := range squares[i*r.N:][:at+i] {
				sum += math.Sqrt(d)
			}
		}
	})
	if sum == 0 {
		return 1
	}
	n := float64(r.N)
	return sum / (n * (n - 1) / 2)
}

// penalty returns ½ Σ_c β_cᵀ K β_c, given Kβ.
func penalty(beta, product []float64) (sum float64) {
	for i, v := range beta {
		sum += float64(v * product[i])
	}
	return max(0, sum/2)
}

// ridge is added to the diagonal of the landmarks' system, in shares of its mean element: equal
// landmarks, or near ones, make it singular. Where it does not do, more is added.
const (
	ridge     = 1e-10
	mostRidge = 1e-4
)

// systemSums are what the least-squares system at a point needs of all training rows, where a are
// what Config.weigh returns of them, k their kernels to the landmarks and z their targets.
type systemSums struct {
	landmarks, labels int
	bias              []float64 // Σ a·z, then Σ a
	right             []float64 // landmarks×(labels+1): Σ k·(a·z, a)ᵀ
	gram              []float64 // Σ a·k·kᵀ, on and below the diagonal
}

// The head of every round's sums, which are weighted.
const (
	sumRows       = iota
	sumLoss       // Σ L(u)
	sumDivergence // Σ K-L
	headSums
)

// gramSums returns the number of sums of a round that wants the system.
func gramSums(landmarks, labels int) int {
	return headSums + (labels + 1) + landmarks*(labels+1) + landmarks*(landmarks+1)/2
}

// systemOf cuts the sums after the head.
func systemOf(v []float64, landmarks, labels int) *systemSums {
	next := func(n int) []float64 {
		head := v[:n:n]
		v = v[n:]
		return head
	}
	return &systemSums{
		landmarks: landmarks, labels: labels,
		bias: next(labels + 1), right: next(landmarks * (labels + 1)), gram: next(landmarks * (landmarks + 1) / 2),
	}
}

// solve sets solution to β and b with (Σ a k kᵀ + K) β + (Σ a k) bᵀ = Σ a k zᵀ and
// (Σ a k)ᵀβ + Σ a b = Σ a z, where K is the kernel matrix of the landmarks. Without weights β is
// 0 and b stays.
func (s *systemSums) solve(solution []float64, k linalg.Matrix) error {
	total := s.bias[s.labels]
	if !(total > 0) {
		clear(solution[:s.landmarks*s.labels])
		return nil
	}
	y := linalg.Of(append([]float64(nil), s.right...), s.landmarks, s.labels+1)
	if err := s.factor(k, y); err != nil {
		return err
	}
	g := func(m int) float64 { return s.right[m*(s.labels+1)+s.labels] }
	border(solution, y, s.bias, total, g)
	return nil
}

// factor replaces y by S⁻¹y with S = Σ a k kᵀ + K.
func (s *systemSums) factor(k, y linalg.Matrix) (err error) {
	for share := ridge; share <= mostRidge; share *= 100 {
		a, trace, at := linalg.New(s.landmarks, s.landmarks), 0.0, 0
		for i := range s.landmarks {
			for j := range i + 1 {
				a.Set(i, j, s.gram[at]+k.At(i, j))
				at++
			}
			trace += a.At(i, i)
		}
		for i := range s.landmarks {
			a.Set(i, i, a.At(i, i)+float64(share*trace)/float64(s.landmarks))
		}
		if err = linalg.Cholesky(a); err == nil {
			linalg.SolveLower(y, a)
			linalg.SolveUpper(y, a.T())
			return nil
		}
	}
	return fmt.Errorf("%s: the equations of the landmarks cannot be solved: %w", Name, err)
}

// border solves for b and β: y has S⁻¹ of the right sides of all labels, and in its last column of
// g, the column that belongs to b; bias are the right sides of b.
func border(solution []float64, y linalg.Matrix, bias []float64, total float64, g func(row int) float64) {
	n, labels := y.Rows, y.Columns-1
	dot := func(c int) (sum float64) {
		for m := range n {
			sum += float64(g(m) * y.At(m, c))
		}
		return sum
	}
	left := total - dot(labels)
	for c := range labels {
		b := bias[c] / total
		if left > 0 {
			b = (bias[c] - dot(c)) / left
		}
		solution[n*labels+c] = b
		for m := range n {
			solution[m*labels+c] = y.At(m, c) - float64(b*y.At(m, labels))
		}
	}
}
