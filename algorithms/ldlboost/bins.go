package ldlboost

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/binning"
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// appendBins appends the encoded columns: for each its feature, 1 if it is sparse, the number of cuts, and these.
func appendBins(dst []byte, b *binning.Bins) []byte {
	for i := range b.Columns {
		c := &b.Columns[i]
		sparse := uint32(0)
		if c.Sparse {
			sparse = 1
		}
		for _, x := range []uint32{c.Feature, sparse, uint32(len(c.Cuts))} {
			dst = binary.LittleEndian.AppendUint32(dst, x)
		}
		dst = append(dst, num.Bytes32(c.Cuts)...)
	}
	return dst
}

// decodeBins reads what appendBins wrote, for data of m with so many bins of a feature at most.
func decodeBins(b []byte, m *dataset.Manifest, most int) (*binning.Bins, error) {
	bins := new(binning.Bins)
	next := uint32(0)
	for len(b) > 0 {
		if len(b) < 12 {
			return nil, binning.ErrBins
		}
		c := binning.Column{Feature: binary.LittleEndian.Uint32(b), Sparse: b[4] == 1}
		n := binary.LittleEndian.Uint32(b[8:])
		if c.Feature < next || c.Feature >= uint32(m.Features) || binary.LittleEndian.Uint32(b[4:]) > 1 || n < 1 ||
			n >= uint32(most) || uint64(len(b)) < 12+4*uint64(n) {
			return nil, binning.ErrBins
		}
		c.Cuts = slices.Clone(num.Float32s(b[12 : 12+4*n]))
		if !(c.Cuts[0] >= -math.MaxFloat32 && c.Cuts[n-1] <= math.MaxFloat32) {
			return nil, binning.ErrBins
		}
		for i := range c.Cuts[1:] {
			if !(c.Cuts[i] < c.Cuts[i+1]) {
				return nil, binning.ErrBins
			}
		}
		next = c.Feature + 1
		bins.Add(c)
		b = b[12+4*n:]
	}
	return bins, bins.Check(m, most)
}

// binUnits is how many units of weight (see unitOf) are one unit here. All rows together have less than 2^31 of these.
const binUnits = 64

// appendValues appends what a task tells of the values of its rows, given the unit of weights.
func appendValues(dst []byte, key num.Key, u round.Task, d *dataset.Data, unit float64) []byte {
	var weigh func(shard *dataset.Rows, pos int) uint32
	if d.Manifest.HasWeights {
		weigh = func(shard *dataset.Rows, pos int) uint32 { return uint32(unitsOf(shard.WeightOf(pos), binUnits*unit)) }
	}
	return binning.AppendValues(dst, key, d.WithWeight(u.Rows(d)), d, weigh)
}

// makeBins makes the bins of what all tasks told of data of m. A cut is half way between the values of two bins.
func makeBins(parts [][]byte, m *dataset.Manifest, most int) (*binning.Bins, error) {
	bins := new(binning.Bins)
	err := binning.Make(parts, m.Features, most, func(feature uint32, sparse bool, gaps []binning.Gap) {
		c := binning.Column{Feature: feature, Sparse: sparse}
		for _, g := range gaps {
			c.Cuts = append(c.Cuts, between(g.Lower, g.Upper))
		}
		bins.Add(c)
	})
	if err != nil {
		return nil, err
	}
	return bins, bins.Check(m, most)
}

// between is forest.Between in float32: above lower, and at most upper.
func between(lower, upper float32) float32 {
	if x := float32(forest.Between(float64(lower), float64(upper))); x > lower {
		return x
	}
	return upper
}
