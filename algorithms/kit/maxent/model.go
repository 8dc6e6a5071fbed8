package maxent

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/blocks"
	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// MaxWeights is the greatest number of weights of a model: 512 MiB.
const MaxWeights = 1 << 26

// Size returns the number of weights of a model, offsets included, or an error that says that
// there are too many.
func Size(m *dataset.Manifest) (int, error) {
	if n := int64(m.Features+1) * int64(m.Labels); n > MaxWeights {
		return 0, fmt.Errorf("the model would hold %d weights ((%d features + 1) × %d labels), at most %d are possible",
			n, m.Features, m.Labels, MaxWeights)
	}
	return (m.Features + 1) * m.Labels, nil
}

// Model is a trained model.
type Model struct {
	Features, Labels int
	Weights          []float64 // (features+1)×labels
}

// Decode makes a model of its tensors, whose memory it keeps.
func Decode(tensors []algorithms.Tensor) (algorithms.Model, error) {
	m := new(Model)
	return m, learner.ReadTensors(tensors, m.tensors)
}

func (m *Model) tensors(l *learner.Tensors) {
	l.Settings(1, learner.Within(&m.Features, 1, dataset.MaxFeatures), learner.Within(&m.Labels, 1, dataset.MaxLabels))
	l.Check(int64(m.Features+1)*int64(m.Labels) <= MaxWeights,
		"the model has %d features and %d labels, which is too many", m.Features, m.Labels)
	l.F64("weights", &m.Weights, m.Features+1, m.Labels)
	l.Check(num.Finite64(m.Weights), "the model has a weight that is not finite")
}

// Tensors implements algorithms.Model.
func (m *Model) Tensors() []algorithms.Tensor { return learner.ListTensors(m.tensors) }

// Shape implements algorithms.Model.
func (m *Model) Shape() (features, labels int) { return m.Features, m.Labels }

// Linear is implemented by models whose prediction depends on the features by scores that are linear functions of them.
type Linear interface {
	// Linear returns the weights ((features+1)×labels, the offsets last), which read features as samples have them. link
	// says in words how the scores become the prediction.
	Linear() (weights []float64, link string)
}

var _ Linear = (*Model)(nil)

// Linear implements Linear.
func (m *Model) Linear() (weights []float64, link string) {
	return m.Weights, "softmax: only differences between the weights of labels matter"
}

// NewScratch implements algorithms.Model.
func (m *Model) NewScratch() any {
	s := newSpace(m.Features, m.Labels)
	s.read(m.Weights, false)
	return &s
}

// Predict implements algorithms.Model.
func (m *Model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, scratch any) {
	s := scratch.(*space)
	for len(refs) > 0 {
		b := blocks.Next(refs, shard)
		s.predict(&b)
		p := s.rows(&b)
		for i, x := range p {
			if x != x { // weights and features whose products are beyond all numbers
				x = 1 / float64(m.Labels)
			}
			dst[i] = float32(x)
		}
		dst, refs = dst[len(p):], refs[len(b.Refs):]
	}
}

// Describe implements algorithms.Model.
func (m *Model) Describe() [][2]string {
	return [][2]string{{"features", fmt.Sprint(m.Features)}, {"labels", fmt.Sprint(m.Labels)},
		{"weights", fmt.Sprint(len(m.Weights))}}
}

// Graph implements graph.Model.
func (m *Model) Graph(b *graph.Builder, x graph.Value) (graph.Value, error) {
	return b.Cast(b.Softmax(graph.Linear(b, x, m.Weights, m.Features, m.Labels)), graph.Float32), nil
}

// space is the memory in which blocks of rows are evaluated. Features are float32 and are read in the shards'
// memory. All else is float64.
type space struct {
	features, labels int
	weights          []float64 // (features+1)×labels
	packed           []float64 // the same for dense rows, once there are any
	at               [blocks.MaxRows]int
	values           []float64 // num.ScoreValues: scores, then predictions
	of               num.SoftmaxRows
	totals           []float64 // labels×num.TotalLanes: sums of predictions
	weighted         []float64 // labels: weighted sums of values
	turned           []float64 // MaxRows×labels: values, a row after the other
	sums             []float64 // of dense rows: labels×stride, Σ p xᵀ
	folded           []float64 // stride×labels: sums, a feature after the other
	spans            [blocks.MaxRows]num.Span
}

func newSpace(features, labels int) space {
	return space{
		features: features, labels: labels, values: make([]float64, num.ScoreValues(labels)),
		totals: make([]float64, labels*num.TotalLanes), weighted: make([]float64, labels),
		turned: make([]float64, blocks.MaxRows*labels),
	}
}

// read sets the weights; again is true if their values are the same as in the last call.
func (s *space) read(weights []float64, again bool) {
	s.weights = weights
	if !again {
		s.packed = s.packed[:0]
	}
}

// stride is the number of sums of a label: one for each feature, then working memory.
func (s *space) stride() int { return (s.features + 7) &^ 7 }

// place sets s.at to the beginnings of the block's rows, which are dense.
func (s *space) place(b *blocks.Block) []int {
	for i, ref := range b.Refs {
		s.at[i] = int(ref.Pos) * s.features
	}
	return s.at[:len(b.Refs)]
}

// score sets s.values to w_c·x + b_c of the block's rows.
func (s *space) score(b *blocks.Block) {
	n := s.labels
	matrix, offsets := s.weights[:s.features*n], s.weights[s.features*n:]
	if !b.Rows.Sparse {
		if len(s.packed) == 0 {
			s.packed = resized(s.packed, num.PackedLen(s.features, n))
			num.PackWeights(s.packed, matrix, offsets, s.features, n)
		}
		num.ScoreRows(s.values, b.Rows.X, s.place(b), s.features, s.packed, n)
		return
	}
	num.ScoreEntries(s.values, b.Spans(&s.spans), b.Rows.X, b.Rows.Index, matrix, offsets, n)
}

// predict sets s.values to the predictions of the block's rows, adds these to s.totals, and returns the weighted sum of
// ln Σ exp(s_c).
func (s *space) predict(b *blocks.Block) float64 {
	s.score(b)
	return s.distribute(b)
}

// distribute is predict after score.
func (s *space) distribute(b *blocks.Block) float64 {
	num.Softmax(s.values, s.labels, len(b.Refs), s.totals, &s.of)
	if b.Rows.Weight == nil {
		return s.of.LogSum(len(b.Refs))
	}
	sum := 0.0
	for i := range b.Refs {
		sum += float64(b.Weight(i) * (s.of.Most[i] + num.Log(s.of.Sum[i])))
	}
	return sum
}

// weigh multiplies s.values of the block's rows by their weights, and adds them to s.weighted.
func (s *space) weigh(b *blocks.Block) {
	for c := range s.labels {
		values := s.values[c*blocks.MaxRows:][:len(b.Refs)]
		for i, x := range values {
			values[i] = float64(x * b.Weight(i))
			s.weighted[c] += values[i]
		}
	}
}

// rows returns s.values a row after the other (rows×labels).
func (s *space) rows(b *blocks.Block) []float64 {
	num.Transpose64(s.turned, s.values[:len(s.turned)], blocks.MaxRows)
	return s.turned[:len(b.Refs)*s.labels]
}

// begin makes all sums 0.
func (s *space) begin() {
	clear(s.totals)
	clear(s.weighted)
	s.sums = s.sums[:0]
}

// add adds Σ x s.valuesᵀ over the block's rows to outers (features×labels), or to what fold adds to it.
func (s *space) add(outers []float64, b *blocks.Block) {
	if b.Rows.Sparse {
		num.AddEntryOuters(outers, b.Spans(&s.spans), b.Rows.X, b.Rows.Index, s.values, s.labels)
		return
	}
	if len(s.sums) == 0 {
		s.sums = resized(s.sums, s.labels*s.stride())
		clear(s.sums)
	}
	num.AddRowOuters(s.sums, s.stride(), b.Rows.X, s.place(b), s.features, s.values, s.labels)
}

// fold adds the sums of dense rows to outers (features×labels), and the totals to total (labels).
func (s *space) fold(outers, total []float64) {
	if len(s.sums) > 0 {
		s.folded = resized(s.folded, len(s.sums))
		num.Transpose64(s.folded, s.sums, s.stride())
		num.Add64(outers, s.folded[:len(outers)])
	}
	for c := range total {
		for _, x := range s.totals[c*num.TotalLanes:][:num.TotalLanes] {
			total[c] += x
		}
	}
}

// resized returns v with n values of any kind.
func resized(v []float64, n int) []float64 {
	if cap(v) < n {
		return make([]float64, n)
	}
	return v[:n]
}
