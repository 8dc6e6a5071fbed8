package boost

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

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
