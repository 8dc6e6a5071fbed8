package boost

import (
	"math"

	"github.com/coppice-ldl/coppice/internal/num"
)

// leastDegree is the least predicted degree in a K-L divergence, and the least mean degree that
// training starts from.
const leastDegree = 1e-12

// leastLog is ln leastDegree.
const leastLog = -27.631021115928547

// roundToInt returns the whole number nearest to x, which is less than 2^51 in size; the even one
// of two.
func roundToInt(x float64) int64 {
	const shift = 0x1.8p52 // numbers from 2^52 to 2^53 are whole, and their bits count them
	return int64(math.Float64bits(x+shift)) - 0x4338000000000000
}

// lossOf returns the K-L divergence, in nats, of a distribution from the prediction. f is
// F of the prediction, and logSum is ln Σ exp F.
func lossOf(label []float32, f []float64, logSum float64) (loss float64) {
	for c, d := range label {
		if d > 0 {
			x := float64(d)
			loss += float64(x * (num.Log(x) - max(f[c]-logSum, leastLog)))
		}
	}
	return loss
}

// lossBits says in which units, 2^-lossBits, the losses of rows are summed, so that sums of 2^20
// rows are exact: a loss is at most 28 or so.
const lossBits = 26

// exactLoss returns a row's loss as a multiple of 2^-lossBits.
func exactLoss(loss float64) float64 {
	return float64(float64(roundToInt(float64(loss*(1<<lossBits)))) / (1 << lossBits))
}

// scores make a distribution of the sums of leaves.
type scores struct {
	start  []float64 // F before the first round, by label
	factor float64   // of the sums
}

// apply makes F of a row's sums of leaves, in place.
func (s *scores) apply(f []float64) {
	mean := 0.0
	for _, sum := range f {
		mean += sum
	}
	mean /= float64(len(f))
	for c, sum := range f {
		f[c] = s.start[c] + float64(s.factor*(sum-mean))
	}
}

// softmax replaces F by p, and returns ln Σ exp F.
func softmax(f []float64) float64 {
	most, sum := f[0], 0.0
	for _, x := range f[1:] {
		most = max(most, x)
	}
	for c, x := range f {
		f[c] = num.Exp(x - most)
		sum += f[c]
	}
	for c := range f {
		f[c] /= sum
	}
	return most + num.Log(sum)
}

// logSumExp returns ln Σ exp F.
func logSumExp(f []float64) float64 {
	most, sum := f[0], 0.0
	for _, x := range f[1:] {
		most = max(most, x)
	}
	for _, x := range f {
		sum += num.Exp(x - most)
	}
	return most + num.Log(sum)
}
