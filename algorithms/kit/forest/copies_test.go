package forest

import (
	"math"
	"testing"
)

// TestCopies: copies are in proportion to weights, whole weights of a small sum stay, and the copies of few rows are
// few, since each takes memory.
func TestCopies(t *testing.T) {
	for _, weights := range [][]float64{{1, 0, 3}, {0.25, 0.5, 0, 1}, {3e7, 1e7, 2e7}, {1e12, 0, 1e12}, {1e-9, 3e-9}} {
		sums, sum := []float64(nil), 0.0
		for _, w := range weights {
			sum += w
			sums = append(sums, sum)
		}
		copies, total := copiesOf(sums)
		if total > 1<<20+len(weights) || total < 2 || weights[0] == 1 && total != 4 {
			t.Errorf("weights %v: %d copies", weights, total)
		}
		for i, w := range weights {
			if share := float64(copies[i]) / float64(total); math.Abs(share-w/sum) > 1e-5 {
				t.Errorf("weights %v: %d copies of row %d", weights, copies[i], i)
			}
		}
	}
}
