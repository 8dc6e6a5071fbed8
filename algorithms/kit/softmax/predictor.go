package softmax

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/dataset"
)

// Predictor is the part of a model that predicts: see algorithms.Model.
type Predictor struct {
	Features, Labels int
	Function         gradient.Function
	Weights          gradient.Weights
}

// predictorScratch is the working memory of a caller of Predict.
type predictorScratch struct {
	gradient.Scratch
	p []float64
}

// Shape implements algorithms.Model.
func (m *Predictor) Shape() (features, labels int) { return m.Features, m.Labels }

// NewScratch implements algorithms.Model.
func (m *Predictor) NewScratch() any {
	return &predictorScratch{gradient.NewScratch(m.Function, m.Labels, block), make([]float64, m.Labels)}
}

// Predict implements algorithms.Model.
func (m *Predictor) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, working any) {
	s := working.(*predictorScratch)
	for from := 0; from < len(refs); from += block {
		part := refs[from:min(from+block, len(refs))]
		s.Batch = s.Batch[:0]
		for _, ref := range part {
			s.Batch = append(s.Batch, gradient.SampleOf(shard(ref.Shard), int(ref.Pos)))
		}
		m.Function.Predict(s.F, s.Batch, &m.Weights, s.Space)
		for i := range part {
			Spread(s.p, s.F[i*m.Labels:(i+1)*m.Labels])
			for c, p := range s.p {
				dst[(from+i)*m.Labels+c] = float32(p)
			}
		}
	}
}
