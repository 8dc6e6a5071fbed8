package network

import (
	"fmt"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
)

// Describe says in one line what a function is, layers that belong to training left out: "1x8x8,
// convolution 3x3 of 16, ReLU, max of 2x2, dense 128, ReLU, dense 64".
func Describe(f gradient.Function) string {
	n, ok := f.(*Network)
	if !ok {
		return Linear
	}
	from, _ := n.Layers[0].Shapes()
	words := []string{from.describe()}
	for _, l := range n.Layers {
		if !trainsOnly(l) {
			words = append(words, describe(l))
		}
	}
	return strings.Join(words, ", ")
}

// describe returns the shape, or the number of values where there is no image.
func (s Shape) describe() string {
	if s.Area() == 1 {
		return fmt.Sprintf("%d features", s.Channels)
	}
	return s.String()
}

func describe(l Layer) string {
	switch l := l.(type) {
	case *Dense:
		return fmt.Sprintf("dense %d", l.Outputs)
	case *Convolution:
		return fmt.Sprintf("convolution %dx%d of %d", l.Size, l.Size, l.Outputs)
	case *ReLU:
		return "ReLU"
	case *Logistic:
		return LogisticUnits
	case *Pool:
		if l.Average {
			return fmt.Sprintf("mean of %dx%d", l.Size, l.Size)
		}
		return fmt.Sprintf("max of %dx%d", l.Size, l.Size)
	case *Crop:
		return fmt.Sprintf("crop %dx%d", l.Side, l.Side)
	case *Norm:
		return "layer normalisation"
	}
	return fmt.Sprintf("%T", l)
}
