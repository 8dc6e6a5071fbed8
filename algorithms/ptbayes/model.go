package ptbayes

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// model implements algorithms.Model.
type model struct {
	features, labels int
	prior            []float64 // labels: π
	mean             []float64 // features×labels: μ
	variance         []float64 // features×labels: σ²
}

func newModel(features, labels int) model {
	return model{features: features, labels: labels, prior: make([]float64, labels),
		mean: make([]float64, features*labels), variance: make([]float64, features*labels)}
}

// Bounds of the values of a model: no score is infinite.
const (
	leastVariance    = 1e-60
	greatestVariance = 1e90
	greatestMean     = 1e40
)

// set makes the model of moments and a smoothing.
func (m *model) set(of *moments, smoothing float64) {
	whole, greatest := 0.0, 0.0
	for _, w := range of.weight {
		whole += w
	}
	for c, w := range of.weight {
		m.prior[c] = w / whole
	}
	for _, v := range of.variance {
		greatest = max(greatest, v)
	}
	copy(m.mean, of.ofLabel)
	add := float64(smoothing * greatest)
	for i, v := range of.variances {
		v = max(0, v) + add
		if v < leastVariance { // all features are constant
			v = 1
		}
		m.variance[i] = min(v, greatestVariance)
	}
}

// tensors lists the tensors.
func (m *model) tensors(l *learner.Tensors) {
	l.Settings(1, learner.Within(&m.features, 1, dataset.MaxFeatures), learner.Within(&m.labels, 1, dataset.MaxLabels))
	l.Check(int64(m.features)*int64(m.labels) <= maxMoments,
		"the model has %d features and %d labels, which is too many", m.features, m.labels)
	l.F64("prior", &m.prior, m.labels)
	l.F64("mean", &m.mean, m.features, m.labels)
	l.F64("variance", &m.variance, m.features, m.labels)
	sum := 0.0
	for _, v := range m.prior {
		l.Check(v >= 0 && v <= 1, "the model has the prior %v", v)
		sum += v
	}
	l.Check(sum > 0.5, "the model's priors have the sum %v", sum)
	for i, v := range m.variance {
		l.Check(v >= leastVariance && v <= greatestVariance && math.Abs(m.mean[i]) <= greatestMean,
			"the model has the mean %v and the variance %v", m.mean[i], v)
	}
}

// Tensors implements algorithms.Model.
func (m *model) Tensors() []algorithms.Tensor { return learner.ListTensors(m.tensors) }

// Shape implements algorithms.Model.
func (m *model) Shape() (features, labels int) { return m.features, m.labels }

// Describe implements algorithms.Model.
func (m *model) Describe() [][2]string {
	return [][2]string{{"features", fmt.Sprint(m.features)}, {"labels", fmt.Sprint(m.labels)}}
}

// NewScratch implements algorithms.Model.
func (m *model) NewScratch() any {
	s := newPredictor(m.features, m.labels)
	s.read(m)
	return s
}

// Predict implements algorithms.Model.
func (m *model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, working any) {
	s := working.(*predictor)
	for i, ref := range refs {
		s.predict(s.p, shard(ref.Shard), int(ref.Pos))
		for c, x := range s.p {
			dst[i*m.labels+c] = float32(x)
		}
	}
}

// predictor is a model that is ready to predict.
type predictor struct {
	model     *model
	constant  []float64 // labels: ln π_c - ½ Σ ln σ²; -Inf if π_c is 0
	ofZeros   []float64 // labels: constant, and the terms of a sample of zeros
	precision []float64 // features×labels: 1/σ²
	p         []float64 // labels
}

func newPredictor(features, labels int) *predictor {
	return &predictor{constant: make([]float64, labels), ofZeros: make([]float64, labels),
		precision: make([]float64, features*labels), p: make([]float64, labels)}
}

// read takes the values of a model.
func (s *predictor) read(m *model) {
	s.model = m
	for c, prior := range m.prior {
		s.constant[c] = math.Inf(-1)
		if prior > 0 {
			s.constant[c] = num.Log(prior)
		}
	}
	copy(s.ofZeros, s.constant)
	for k := range m.features {
		for c, v := range m.variance[k*m.labels:][:m.labels] {
			i := k*m.labels + c
			s.precision[i] = 1 / v
			half := float64(0.5 * num.Log(v))
			s.constant[c] -= half
			s.ofZeros[c] -= half + float64(float64(0.5*s.precision[i])*float64(m.mean[i]*m.mean[i]))
		}
	}
}

// predict sets p to the prediction of a row.
func (s *predictor) predict(p []float64, rows *dataset.Rows, pos int) {
	n := s.model.labels
	if rows.Sparse {
		copy(p, s.ofZeros)
		columns, values := rows.NonZeros(pos)
		for j, column := range columns {
			x := float64(values[j])
			precision, mean := s.precision[int(column)*n:][:n], s.model.mean[int(column)*n:][:n]
			for c := range p {
				p[c] -= float64(float64(0.5*precision[c]) * float64(x*(x-2*mean[c])))
			}
		}
	} else {
		copy(p, s.constant)
		for k, v := range rows.Dense(pos) {
			x := float64(v)
			precision, mean := s.precision[k*n:][:n], s.model.mean[k*n:][:n]
			for c := range p {
				by := x - mean[c]
				p[c] -= float64(float64(0.5*precision[c]) * float64(by*by))
			}
		}
	}
	most, sum := math.Inf(-1), 0.0
	for _, v := range p {
		most = max(most, v)
	}
	for c, v := range p {
		if v = v - most; v < -700 || v != v {
			p[c] = 0
			continue
		}
		p[c] = num.Exp(v)
		sum += p[c]
	}
	for c := range p {
		p[c] /= sum
	}
}

// Graph implements graph.Model: the terms of features are added one by one.
func (m *model) Graph(b *graph.Builder, x graph.Value) (graph.Value, error) {
	s, n := newPredictor(m.features, m.labels), m.labels
	s.read(m)
	halves := make([]float64, len(s.precision))
	for i, v := range s.precision {
		halves[i] = 0.5 * v
	}
	columns := b.Unsqueeze(b.Transpose(b.Cast(x, graph.Float64), 1, 0), 2)
	scores := b.Scan(graph.Repeat(b, b.F64(s.constant, n), x, n), func(b *graph.Builder, scores graph.Value,
		of []graph.Value) graph.Value {
		by := b.Op("Sub", of[0], of[1])
		return b.Op("Sub", scores, b.Op("Mul", of[2], b.Op("Mul", by, by)))
	}, columns, b.F64(m.mean, m.features, n), b.F64(halves, m.features, n))
	return b.Cast(b.Softmax(scores), graph.Float32), nil
}
