package boost

import (
	"math"

	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
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

// rowSums are sums of leaves of some rows, with the number of rounds that made them.
type rowSums struct {
	refs   []dataset.RowRef
	rounds int
	sums   []float64 // rows×labels
}

func newRowSums(refs []dataset.RowRef, labels int) *rowSums {
	return &rowSums{refs: refs, sums: make([]float64, len(refs)*labels)}
}

// advance adds the trees of the rounds that v has and s has not. If s has more rounds than v, it
// begins with the first tree. The sums have the same bits either way.
func (s *rowSums) advance(f *form, d *dataset.Data, v round.Vars) error {
	total := 0
	for i := range v {
		if _, end, ok := groupOf(&v[i]); ok {
			total = max(total, end)
		}
	}
	if s.rounds == total {
		return nil
	}
	if s.rounds > total {
		s.rounds = 0
		clear(s.sums)
	}
	var trees []*forest.Tree
	for i := range v {
		first, end, ok := groupOf(&v[i])
		if !ok || end <= s.rounds {
			continue
		}
		b, err := v[i].Data, error(nil)
		for ; first < end; first++ {
			if first < s.rounds {
				b, err = f.skip(b)
			} else {
				trees, b, err = f.next(trees, b)
			}
			if err != nil {
				return err
			}
		}
	}
	s.add(f, d, trees)
	s.rounds = total
	return nil
}

// add adds the leaves of trees.
func (s *rowSums) add(f *form, d *dataset.Data, trees []*forest.Tree) {
	var e forest.Ensemble
	e.Join(trees, f.features, f.labels)
	e.AddSums(s.sums, s.refs, func(i uint32) *dataset.Rows { return d.Shard(int(i)) }, e.NewScratch())
}

// lossOf returns the K-L divergence, in nats, of a distribution from the prediction, of which f is
// F and logSum is ln Σ exp F.
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
