package maxent

import (
	"math"

	"github.com/coppice-ldl/coppice/algorithms/kit/blocks"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// merged computes the K-L divergences of samples in which degrees are missing. Their missing labels are one label,
// whose degree is known: r = 1 - Σ_observed d. It has the probability m = Σ_missing p, so the divergence Σ_observed d
// ln(d/p) + r ln(r/m) is
//
//	ln Σ exp(s_c) - Σ_observed d_c s_c - r ln Σ_missing exp(s_c) + Σ_observed d ln d + r ln r
//
// Without the third term and the last, it is as of complete labels, with the degree 0 of missing labels. The derivative
// of the third term by the score of a missing label is -r p_c/m. A sample in which no degree is missing has the
// arithmetic of complete labels. Nil: labels are complete.
type merged struct {
	labels int
	rows   []int     // of the block, in which degrees are missing
	shares []float64 // labels for each of rows: r p_c/m of missing labels, 0 of others
}

func newMerged(labels int) *merged {
	return &merged{labels, make([]int, 0, blocks.MaxRows), make([]float64, blocks.MaxRows*labels)}
}

// degrees sets dst to a label distribution as Degrees does, or to its observed degrees as they are and zeros. It
// returns what the missing degrees sum to.
func (m *merged) degrees(dst []float64, label []float32) (missing float64) {
	if m == nil || dataset.CountMissing(label) == 0 {
		Degrees(dst, label)
		return 0
	}
	for c, d := range label {
		if dst[c] = 0; d == d {
			dst[c] = float64(d)
		}
	}
	return dataset.Unassigned(label)
}

// read notes the rows of a block in which degrees are missing, and returns the weighted sum of -r ln Σ_missing
// exp(s_c). scores are as space.score sets them.
func (m *merged) read(scores []float64, b *blocks.Block) (loss float64) {
	m.rows = m.rows[:0]
	for i := range b.Refs {
		label := b.Label(i)
		if dataset.CountMissing(label) == 0 {
			continue
		}
		rest := dataset.Unassigned(label)
		if rest == 0 {
			continue // the missing degrees are 0
		}
		shares := m.shares[len(m.rows)*m.labels:][:m.labels]
		m.rows = append(m.rows, i)
		most, sum := math.Inf(-1), 0.0
		for c, d := range label {
			if d != d {
				most = max(most, scores[c*blocks.MaxRows+i])
			}
		}
		for c, d := range label {
			if shares[c] = 0; d != d {
				shares[c] = num.Exp(scores[c*blocks.MaxRows+i] - most)
				sum += shares[c]
			}
		}
		factor := rest / sum
		for c := range shares {
			shares[c] *= factor
		}
		loss -= float64(b.Weight(i) * float64(rest*(most+num.Log(sum))))
	}
	return loss
}

// subtract subtracts the shares from the predictions of the block and from total.
func (m *merged) subtract(predictions, total []float64) {
	for k, i := range m.rows {
		for c, x := range m.shares[k*m.labels:][:m.labels] {
			predictions[c*blocks.MaxRows+i] -= x
			total[c] -= x
		}
	}
}

// Degrees sets dst to a label distribution, divided by its sum.
func Degrees(dst []float64, label []float32) {
	share := 1 / num.Sum64(label)
	for c, x := range label {
		dst[c] = float64(x) * share
	}
}
