package contract

import "github.com/coppice-ldl/coppice/dataset"

// Dense is a small dataset in float32, row-major.
type Dense struct {
	Rows, Features, Labels int
	X, D                   []float32
	Weights                []float64            // of rows; nil: none
	Shard                  func(row, n int) int // the shard, of n, of a row; nil: the remainder of row/n
}

// Data cuts the dataset into shards, each with its last rows first, with the roles of split, in dense or sparse
// storage.
func (p Dense) Data(shards int, sparse bool, split dataset.Split) *dataset.Data {
	m := &dataset.Manifest{Format: dataset.ManifestFormat, Rows: p.Rows, Features: p.Features, Labels: p.Labels,
		Sparse: sparse, HasWeights: p.Weights != nil, Shards: make([]dataset.ShardRef, shards)}
	roles, err := split.Assign(p.Rows, nil)
	if err != nil {
		panic(err)
	}
	all := make([]*dataset.Rows, shards)
	for i := range all {
		all[i] = &dataset.Rows{Features: p.Features, Labels: p.Labels, Sparse: sparse}
		if sparse {
			all[i].Start = []uint32{0}
		}
	}
	for row := p.Rows - 1; row >= 0; row-- {
		i := row % shards
		if p.Shard != nil {
			i = p.Shard(row, shards)
		}
		r, x := all[i], p.X[row*p.Features:][:p.Features]
		r.N++
		r.Row = append(r.Row, uint32(row))
		r.D = append(r.D, p.D[row*p.Labels:][:p.Labels]...)
		if p.Weights != nil {
			r.Weight = append(r.Weight, p.Weights[row])
		}
		for j, v := range x {
			if v != 0 {
				m.NonZeros++
			}
			if v != 0 || !sparse {
				r.X = append(r.X, v)
			}
			if v != 0 && sparse {
				r.Index = append(r.Index, uint32(j))
			}
		}
		if sparse {
			r.Start = append(r.Start, uint32(len(r.X)))
		}
	}
	d := dataset.NewData(m, roles)
	for i, r := range all {
		d.SetShard(i, r)
	}
	return d
}
