package ldlboost

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/boost"
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// sampledValues is how many values other than 0 the bins are made from, about: of more, rows are drawn.
const sampledValues = 4 << 20

// sparseShare is the share of zeros, as a divisor, from which a column is sparse: rows list its other bins only.
const sparseShare = 4

// column is a feature with at least two bins. Bin b has the values x with Cuts[b-1] <= x < Cuts[b].
type column struct {
	feature uint32
	sparse  bool
	cuts    []float32 // ascending
	zero    int       // the bin of 0
	base    int       // the number of its first bin, counted over all columns
	at      int       // of a dense column: its place among these
}

func (c *column) bins() int { return len(c.cuts) + 1 }

// binOf returns the bin of a value: the number of cuts that are not above it. It has no branches that a processor would
// guess wrong half of the time.
func (c *column) binOf(x float32) (bin int) {
	key, cuts := int64(orderOf(x+0)), c.cuts // x+0 is not -0
	for n := len(cuts); n > 0; {
		half := (n + 1) / 2
		bin += half & int((int64(orderOf(cuts[bin+half-1]))-key-1)>>63)
		n -= half
	}
	return bin
}

// binning is the columns of a job, features ascending.
type binning struct {
	columns []column
	dense   int // columns that are not sparse
	bins    int // of all columns
}

// add adds a column of at least one cut.
func (b *binning) add(c column) {
	c.base, c.zero = b.bins, c.binOf(0)
	if !c.sparse {
		c.at = b.dense
		b.dense++
	}
	b.bins += c.bins()
	b.columns = append(b.columns, c)
}

// append appends the encoded columns: for each its feature, 1 if it is sparse, the number of cuts, and these.
func (b *binning) append(dst []byte) []byte {
	for i := range b.columns {
		c := &b.columns[i]
		sparse := uint32(0)
		if c.sparse {
			sparse = 1
		}
		for _, x := range []uint32{c.feature, sparse, uint32(len(c.cuts))} {
			dst = binary.LittleEndian.AppendUint32(dst, x)
		}
		dst = append(dst, num.Bytes32(c.cuts)...)
	}
	return dst
}

var errBins = errors.New("the bins of features are damaged")

// decodeBinning reads what append wrote, for rows of so many features with so many bins each at most.
func decodeBinning(b []byte, features, most int) (*binning, error) {
	bins := new(binning)
	next := uint32(0)
	for len(b) > 0 {
		if len(b) < 12 {
			return nil, errBins
		}
		c := column{feature: binary.LittleEndian.Uint32(b), sparse: b[4] == 1}
		n := binary.LittleEndian.Uint32(b[8:])
		if c.feature < next || c.feature >= uint32(features) || binary.LittleEndian.Uint32(b[4:]) > 1 || n < 1 ||
			n >= uint32(most) || uint64(len(b)) < 12+4*uint64(n) {
			return nil, errBins
		}
		c.cuts = slices.Clone(num.Float32s(b[12 : 12+4*n]))
		if !(c.cuts[0] >= -math.MaxFloat32 && c.cuts[n-1] <= math.MaxFloat32) {
			return nil, errBins
		}
		for i := range c.cuts[1:] {
			if !(c.cuts[i] < c.cuts[i+1]) {
				return nil, errBins
			}
		}
		next = c.feature + 1
		bins.add(c)
		b = b[12+4*n:]
	}
	return bins, nil
}

// value is a value of a column and how many sampled rows have it, or their weight in units of binUnits.
type value struct {
	x float32
	n uint32
}

// sampled reports whether the bins are made from a row. This depends on its number alone, so shards do not matter.
func sampled(key num.Key, row uint32, m *dataset.Manifest) bool {
	if m.NonZeros <= sampledValues {
		return true
	}
	limit := float64(float64(sampledValues)/float64(m.NonZeros)) * (1 << 32)
	return float64(num.Philox(key, [4]uint32{row, 0, 0, 0})[0]) < limit
}

// binUnits is how many units of weight (see unitOf) are one unit here. All rows together have less than 2^31 of these.
const binUnits = 64

// appendValues appends what a task tells of the values of its sampled rows: their number or weight, then for each
// feature the number of its distinct values other than 0, these ascending, and the rows of each or their weight.
func appendValues(dst []byte, key num.Key, u round.Task, d *dataset.Data, unit float64) []byte {
	columns := make([][]value, d.Manifest.Features)
	rows := uint32(0)
	for _, ref := range boost.WeightedRows(u, d) {
		shard := d.Shard(int(ref.Shard))
		if !sampled(key, shard.Row[ref.Pos], d.Manifest) {
			continue
		}
		n := uint32(1)
		if d.Manifest.HasWeights {
			n = uint32(unitsOf(shard.WeightOf(int(ref.Pos)), binUnits*unit))
		}
		rows += n
		if shard.Sparse {
			index, values := shard.NonZeros(int(ref.Pos))
			for i, c := range index {
				columns[c] = append(columns[c], value{values[i], n})
			}
			continue
		}
		for c, x := range shard.Dense(int(ref.Pos)) {
			if x != 0 {
				columns[c] = append(columns[c], value{x, n})
			}
		}
	}
	dst = binary.LittleEndian.AppendUint32(dst, rows)
	for _, c := range columns {
		distinct := joined(c)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(distinct)))
		for _, v := range distinct {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v.x))
		}
		for _, v := range distinct {
			dst = binary.LittleEndian.AppendUint32(dst, v.n)
		}
	}
	return dst
}

// values is a task's list that is read from the first feature on.
type values struct {
	rows uint32
	rest []byte
}

func newValues(b []byte) (values, error) {
	if len(b) < 4 {
		return values{}, errBins
	}
	return values{binary.LittleEndian.Uint32(b), b[4:]}, nil
}

// next appends the values of the next feature.
func (v *values) next(dst []value) ([]value, error) {
	if len(v.rest) < 4 {
		return nil, errBins
	}
	n := uint64(binary.LittleEndian.Uint32(v.rest))
	if uint64(len(v.rest)) < 4+8*n {
		return nil, errBins
	}
	xs, counts := num.Float32s(v.rest[4:4+4*n]), num.Uint32s(v.rest[4+4*n:4+8*n])
	v.rest = v.rest[4+8*n:]
	total := uint64(0)
	for i, x := range xs {
		if x-x != 0 || x == 0 || counts[i] == 0 || i > 0 && !(xs[i-1] < x) {
			return nil, errBins
		}
		total += uint64(counts[i])
		dst = append(dst, value{x, counts[i]})
	}
	if total > uint64(v.rows) {
		return nil, errBins
	}
	return dst, nil
}

// makeBinning makes the bins of what all tasks told.
func makeBinning(parts [][]byte, features, most int) (*binning, error) {
	lists := make([]values, len(parts))
	rows := uint64(0)
	for i, part := range parts {
		var err error
		if lists[i], err = newValues(part); err != nil {
			return nil, fmt.Errorf("task %d: %w", i, err)
		}
		rows += uint64(lists[i].rows)
	}
	if rows == 0 {
		return nil, algorithms.ErrNoRows
	}
	bins := new(binning)
	var all []value
	for feature := range features {
		all = all[:0]
		for i := range lists {
			var err error
			if all, err = lists[i].next(all); err != nil {
				return nil, fmt.Errorf("task %d: feature %d: %w", i, feature, err)
			}
		}
		zeros := rows
		for _, v := range all {
			zeros -= uint64(v.n)
		}
		if zeros > 0 {
			all = append(all, value{0, uint32(zeros)})
		}
		all = joined(all)
		if cuts := cut(all, most); len(cuts) > 0 {
			bins.add(column{feature: uint32(feature), sparse: zeros >= rows-rows/sparseShare, cuts: cuts})
		}
	}
	for i := range lists {
		if len(lists[i].rest) > 0 {
			return nil, fmt.Errorf("task %d: %w", i, errBins)
		}
	}
	return bins, nil
}

// joined sorts values and adds up the rows of equal ones.
func joined(all []value) []value {
	sortValues(all)
	n := 0
	for _, v := range all {
		if n > 0 && all[n-1].x == v.x {
			all[n-1].n += v.n
			continue
		}
		all[n] = v
		n++
	}
	return all[:n]
}

// fewValues is how many values sort faster by comparisons than by digits.
const fewValues = 512

// sortValues sorts values, without -0 and NaN: many by three digits of their bits, the lowest first.
func sortValues(all []value) {
	if len(all) < fewValues {
		slices.SortFunc(all, func(a, b value) int { return cmp.Compare(a.x, b.x) })
		return
	}
	const digits, width = 3, 11
	var counts [digits][1 << width]uint32
	for _, v := range all {
		k := orderOf(v.x)
		for d := range digits {
			counts[d][k>>(d*width)&(1<<width-1)]++
		}
	}
	from, to := all, make([]value, len(all))
	for d := range digits {
		at := uint32(0)
		for i, n := range counts[d] {
			counts[d][i] = at
			at += n
		}
		for _, v := range from {
			next := &counts[d][orderOf(v.x)>>(d*width)&(1<<width-1)]
			to[*next] = v
			*next++
		}
		from, to = to, from
	}
	copy(all, from)
}

// orderOf returns a number that is greater for a greater value.
func orderOf(x float32) uint32 {
	b := math.Float32bits(x)
	return b ^ (uint32(int32(b)>>31) | 1<<31)
}

// cut returns the cuts between at most so many bins of distinct values, ascending. Each value has a bin if there are
// enough. Otherwise heavy values have bins of their own (see heavy), and the other values are divided: a bin ends where
// it has its share of the rows that no bin before has. A cut is half way between the values of two bins.
func cut(all []value, most int) (cuts []float32) {
	alone, rest, shares := heavy(all, most)
	left, own, open := most, uint64(0), 0 // of the other values: bins, rows of the bin at work, and values to come
	for _, is := range alone {
		if is {
			left--
		} else {
			open++
		}
	}
	for i, v := range all[:len(all)-1] {
		ends := alone[i] || alone[i+1]
		if !alone[i] {
			own, open = own+uint64(v.n), open-1
			if ends = ends || own*uint64(shares) >= rest || open < left; ends {
				rest, left, own = rest-own, left-1, 0
				if !alone[i+1] {
					shares--
				}
			}
		}
		if ends {
			cuts = append(cuts, between(v.x, all[i+1].x))
		}
	}
	return cuts
}

// heavy returns which of distinct values, ascending, have a bin of their own among at most so many, the rows of the
// others, and in how many shares these are divided. Each run of others between such values has a bin at least, and
// there is a share for each bin but one of each run after the first. Values are taken in descending order of their
// rows, the lower one first among equal ones, while they have more rows than a share and bins suffice.
func heavy(all []value, most int) (alone []bool, rest uint64, shares int) {
	alone = make([]bool, len(all))
	if len(all) <= most {
		num.Fill(alone, true)
		return alone, 0, 0
	}
	var order []int // a share has more than one row, since there are more of the others than bins for them
	for i, v := range all {
		if rest += uint64(v.n); v.n > 1 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(all[b].n, all[a].n), cmp.Compare(a, b)) })
	shares = most
	for _, i := range order {
		n, after := uint64(all[i].n), shares
		if i > 0 && !alone[i-1] {
			after--
		}
		if i+1 < len(all) && !alone[i+1] {
			after--
		}
		if n*uint64(shares) <= rest || after < 1 {
			break
		}
		alone[i], rest, shares = true, rest-n, after
	}
	return alone, rest, shares
}

// between is forest.Between in float32: above lower, and at most upper.
func between(lower, upper float32) float32 {
	if x := float32(forest.Between(float64(lower), float64(upper))); x > lower {
		return x
	}
	return upper
}
