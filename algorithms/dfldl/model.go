package dfldl

import (
	"fmt"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/blocks"
	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// modelFormat is the version of the tensors: settings, weights, then the tensors of the gate. Their names begin with
// gatePrefix.
const modelFormat = 1

const gatePrefix = "gate/"

// headTensors are those before the gate's.
const headTensors = 2

// model implements algorithms.Model.
type model struct {
	features, labels int
	weights          []float64 // models×(features+1)×labels, by task
	gate             algorithms.Model
}

// head lists the tensors before the gate's.
func (m *model) head(l *learner.Tensors) {
	l.Settings(modelFormat, learner.Within(&m.features, 1, dataset.MaxFeatures), learner.Within(&m.labels, 2, MaxLabels))
	n := models(m.labels)
	l.Check(int64(n)*int64(m.features+1)*int64(m.labels) <= maxent.MaxWeights,
		"the model has %d features and %d labels, which is too many", m.features, m.labels)
	l.F64("weights", &m.weights, n, m.features+1, m.labels)
	l.Check(num.Finite64(m.weights), "the model has a weight that is not finite")
}

// Tensors implements algorithms.Model.
func (m *model) Tensors() []algorithms.Tensor {
	all := learner.ListTensors(m.head)
	for _, t := range m.gate.Tensors() {
		t.Name = gatePrefix + t.Name
		all = append(all, t)
	}
	return all
}

// decodeModel makes a model of its tensors. It keeps their memory.
func decodeModel(tensors []algorithms.Tensor) (algorithms.Model, error) {
	m, rest := new(model), tensors[min(headTensors, len(tensors)):]
	if err := learner.ReadTensors(tensors[:len(tensors)-len(rest)], m.head); err != nil {
		return nil, err
	}
	gate := make([]algorithms.Tensor, len(rest))
	for i, t := range rest {
		name, ok := strings.CutPrefix(t.Name, gatePrefix)
		if !ok {
			return nil, fmt.Errorf("found tensor %q, want a tensor of the nearest neighbours", t.Name)
		}
		gate[i], gate[i].Name = t, name
	}
	var err error
	if m.gate, err = nearest.DecodeModel(gate); err != nil {
		return nil, err
	}
	if features, labels := m.gate.Shape(); features != m.features || labels != m.labels {
		return nil, fmt.Errorf("the nearest neighbours have %d features and %d labels, but the models have %d and %d",
			features, labels, m.features, m.labels)
	}
	return m, nil
}

// Shape implements algorithms.Model.
func (m *model) Shape() (features, labels int) { return m.features, m.labels }

// Describe implements algorithms.Model.
func (m *model) Describe() [][2]string {
	return append([][2]string{
		{"features", fmt.Sprint(m.features)}, {"labels", fmt.Sprint(m.labels)},
		{"models", fmt.Sprint(models(m.labels))}, {"weights", fmt.Sprint(len(m.weights))},
	}, m.gate.Describe()...)
}

// scratch is the working memory of one caller of Predict.
type scratch struct {
	gate     any
	q        []float32 // MaxRows×labels: of the gate
	sums     []float64 // MaxRows×labels
	multiply blocks.Space
	scores   []float64        // MaxRows×labels
	refs     []dataset.RowRef // of the rows for which the gate chooses a model
	at       []int            // their positions in the block
}

// NewScratch implements algorithms.Model.
func (m *model) NewScratch() any {
	n := blocks.MaxRows * m.labels
	return &scratch{
		gate: m.gate.NewScratch(), q: make([]float32, n), sums: make([]float64, n), scores: make([]float64, n),
		refs: make([]dataset.RowRef, 0, blocks.MaxRows), at: make([]int, 0, blocks.MaxRows),
	}
}

// Predict implements algorithms.Model. The predictions of a row are added in the order of pairs, in float64.
func (m *model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, working any) {
	s, n := working.(*scratch), models(m.labels)
	for len(refs) > 0 {
		block := refs[:min(len(refs), blocks.MaxRows)]
		m.gate.Predict(s.q[:len(block)*m.labels], block, shard, s.gate)
		sums := s.sums[:len(block)*m.labels]
		clear(sums)
		for task := range n {
			a, b, less := pairOf(task, m.labels)
			s.refs, s.at = s.refs[:0], s.at[:0]
			for i, ref := range block {
				if q := s.q[i*m.labels:]; (q[a] < q[b]) == less {
					s.refs, s.at = append(s.refs, ref), append(s.at, i)
				}
			}
			m.add(sums, task, shard, s)
		}
		for i, sum := range sums {
			dst[i] = float32(sum / float64(n/2))
		}
		dst, refs = dst[len(sums):], refs[len(block):]
	}
}

// add adds what the model of a task predicts of the rows that s lists to their sums.
func (m *model) add(sums []float64, task int, shard func(uint32) *dataset.Rows, s *scratch) {
	size := m.features * m.labels
	weights := m.weights[task*(size+m.labels):]
	offsets := weights[size : size+m.labels]
	for refs, at := s.refs, s.at; len(refs) > 0; {
		b := blocks.Next(refs, shard)
		scores := s.scores[:len(b.Refs)*m.labels]
		for i := range b.Refs {
			copy(scores[i*m.labels:], offsets)
		}
		s.multiply.AddProduct(scores, &b, weights[:size], m.labels)
		for i := range b.Refs {
			addSoftmax(sums[at[i]*m.labels:][:m.labels], scores[i*m.labels:][:m.labels])
		}
		refs, at = refs[len(b.Refs):], at[len(b.Refs):]
	}
}

// addSoftmax adds exp(s_c) / Σ exp(s_c) of a row's scores, which it changes, to sums. Scores beyond all numbers count
// as equal ones.
func addSoftmax(sums, scores []float64) {
	most, total := scores[0], 0.0
	for _, x := range scores[1:] {
		most = max(most, x)
	}
	for c := range scores {
		scores[c] -= most
	}
	num.Exps(scores, scores)
	for _, x := range scores {
		total += x
	}
	for c, x := range scores {
		if total-total != 0 { // not a number
			sums[c] += 1 / float64(len(scores))
			continue
		}
		sums[c] += x / total
	}
}

// Graph implements graph.Model: the predictions of all models are models×samples×labels.
func (m *model) Graph(b *graph.Builder, x graph.Value) (graph.Value, error) {
	q, err := graph.Of(m.gate, b, x)
	if err != nil {
		return "", err
	}
	n, size := models(m.labels), m.features*m.labels
	var first, second []int
	var matrices, offsets, signs []float64
	for task := range n {
		i, j, less := pairOf(task, m.labels)
		sign := 0.0
		if less {
			sign = 1
		}
		first, second, signs = append(first, i), append(second, j), append(signs, sign)
		own := m.weights[task*(size+m.labels):][:size+m.labels]
		matrices, offsets = append(matrices, own[:size]...), append(offsets, own[size:]...)
	}
	less := b.Cast(b.Op("Less", b.Gather(q, 1, first...), b.Gather(q, 1, second...)), graph.Float64)
	chosen := b.Cast(b.Op("Equal", less, b.F64(signs, n)), graph.Float64)
	chosen = b.Unsqueeze(b.Transpose(chosen, 1, 0), 2)
	scores := b.Op("MatMul", b.Cast(x, graph.Float64), b.F64(matrices, n, m.features, m.labels))
	p := b.Softmax(b.Op("Add", scores, b.F64(offsets, n, 1, m.labels)))
	sums := b.Reshape(b.Sum(b.Op("Mul", chosen, p), 0), -1, m.labels)
	return b.Cast(b.Op("Div", sums, b.Number(float64(n/2))), graph.Float32), nil
}
