package network

import (
	"math"

	"github.com/coppice-ldl/coppice/internal/num"
)

// Start is the law of a layer's first weights. Biases begin at 0.
type Start uint8

// The laws of a layer with n inputs and m outputs.
const (
	Glorot Start = iota // uniform within ±sqrt(6/(n+m)) (Glorot and Bengio 2010)
	He                  // normal with the variance 2/n (He et al. 2015)
	Small               // normal with the deviation 0.01
)

// draw fills weights, inputs×outputs: row i from stream (key, n, i).
func (s Start) draw(w []float32, outputs int, key num.Key, n uint64) {
	inputs := len(w) / outputs
	bound, deviation := math.Sqrt(6/float64(inputs+outputs)), math.Sqrt(2/float64(inputs))
	if s == Small {
		deviation = 0.01
	}
	for i := range inputs {
		stream := num.NewStream(key, n, uint32(i))
		row := w[i*outputs : (i+1)*outputs]
		for j := range row {
			if s == Glorot {
				row[j] = float32(bound * (2*stream.Float64() - 1))
			} else {
				row[j] = float32(deviation * stream.Normal())
			}
		}
	}
}
