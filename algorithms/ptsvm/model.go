package ptsvm

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/linalg"
	"github.com/coppice-ldl/coppice/internal/num"
)

// model implements algorithms.Model. Pairs of labels are in the order (0, 1), (0, 2), ..., (1, 2), ...
type model struct {
	features, labels int
	weights          []float64 // (features+1)×pairs: the offsets last
	sigmoids         []float64 // 2×pairs: A, then B
}

func newModel(features, labels int) model {
	n := pairs(labels)
	return model{features: features, labels: labels, weights: make([]float64, (features+1)*n),
		sigmoids: make([]float64, 2*n)}
}

// set takes the values of machines, one machine after the other.
func (m *model) set(machines []float64) {
	n, size := pairs(m.labels), m.features+machineMore
	for pair := range n {
		own := machines[pair*size:][:size]
		for k, w := range own[:m.features+1] {
			m.weights[k*n+pair] = w
		}
		m.sigmoids[pair], m.sigmoids[n+pair] = own[size-2], own[size-1]
	}
}

// greatest bounds the values of a model.
const greatest = 1e200

// tensors lists the tensors.
func (m *model) tensors(l *learner.Tensors) {
	l.Settings(1, learner.Within(&m.features, 1, dataset.MaxFeatures), learner.Within(&m.labels, 2, maxLabels))
	n := pairs(m.labels)
	l.Check(int64(m.features+1)*int64(n) <= maxValues, "the model has %d features and %d labels, which is too many",
		m.features, m.labels)
	l.F64("weights", &m.weights, m.features+1, n)
	l.F64("sigmoids", &m.sigmoids, 2, n)
	for _, v := range [][]float64{m.weights, m.sigmoids} {
		for _, x := range v {
			l.Check(math.Abs(x) <= greatest, "the model has the value %v", x)
		}
	}
}

// Tensors implements algorithms.Model.
func (m *model) Tensors() []algorithms.Tensor { return learner.ListTensors(m.tensors) }

// Shape implements algorithms.Model.
func (m *model) Shape() (features, labels int) { return m.features, m.labels }

// Describe implements algorithms.Model.
func (m *model) Describe() [][2]string {
	return [][2]string{{"features", fmt.Sprint(m.features)}, {"labels", fmt.Sprint(m.labels)},
		{"machines", fmt.Sprint(pairs(m.labels))}}
}

// NewScratch implements algorithms.Model.
func (m *model) NewScratch() any { return newSpace(m.labels) }

// Predict implements algorithms.Model.
func (m *model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, working any) {
	s := working.(*space)
	for i, ref := range refs {
		for c, x := range m.predict(s, shard(ref.Shard), int(ref.Pos)) {
			dst[i*m.labels+c] = float32(x)
		}
	}
}

// space is the memory of a prediction.
type space struct {
	labels int
	scores []float64     // pairs
	system linalg.Matrix // labels×labels
	p      linalg.Matrix // labels×1
	upper  linalg.Matrix // system, turned
}

func newSpace(labels int) *space {
	s := &space{labels: labels, scores: make([]float64, pairs(labels)), system: linalg.New(labels, labels),
		p: linalg.New(labels, 1)}
	s.upper = s.system.T()
	return s
}

// predict returns the prediction of a row, which is valid until the next call.
func (m *model) predict(s *space, rows *dataset.Rows, pos int) []float64 {
	n := len(s.scores)
	copy(s.scores, m.weights[m.features*n:])
	if rows.Sparse {
		columns, values := rows.NonZeros(pos)
		for j, k := range columns {
			num.AddScaled64(s.scores, float64(values[j]), m.weights[int(k)*n:][:n])
		}
	} else {
		for k, x := range rows.Dense(pos) {
			num.AddScaled64(s.scores, float64(x), m.weights[k*n:][:n])
		}
	}
	for i, f := range s.scores {
		z := float64(m.sigmoids[i]*f) + m.sigmoids[n+i]
		if z != z { // values beyond all numbers, which no training gives
			z = 0
		}
		r := 1 / (1 + num.Exp(min(max(z, -700), 700)))
		s.scores[i] = min(max(r, leastShare), 1-leastShare)
	}
	return s.couple()
}

// leastShare bounds the probabilities of pairs.
const leastShare = 1e-7

// couple returns the label distribution of the probabilities of pairs in scores: Eq. 21 of Wu, Lin and Weng 2004, of
// which the solution without the condition Σ p = 1 is a multiple.
func (s *space) couple() []float64 {
	q, n, i := s.system, s.labels, 0
	clear(q.V)
	for a := range n {
		for b := a + 1; b < n; b++ {
			r := s.scores[i] // of a; b has the rest
			i++
			q.Set(a, a, q.At(a, a)+float64((1-r)*(1-r)))
			q.Set(b, b, q.At(b, b)+float64(r*r))
			q.Set(b, a, -float64(r*(1-r)))
		}
	}
	p := s.p.V
	for c := range p {
		p[c] = 1
		q.Set(c, c, q.At(c, c)*(1+ridge))
	}
	if err := linalg.Cholesky(q); err == nil {
		linalg.SolveLower(s.p, q)
		linalg.SolveUpper(s.p, s.upper)
	}
	sum := 0.0
	for c, x := range p {
		p[c] = max(0, x)
		sum += p[c]
	}
	for c := range p {
		p[c] /= sum
	}
	return p
}

// ridge is added to the diagonal of a system, as a share.
const ridge = 1e-10
