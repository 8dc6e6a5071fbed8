// Package binning divides the values of features into bins, evenly by the training samples, of data that no worker
// needs to hold. The tasks of a gather round tell the distinct values of their samples (AppendValues). Make divides
// them. Find gives the bins of the samples of a task.
//
// A value that has more samples than a share has a bin of its own. The bins of a feature do not depend on shards, nor
// on dense or sparse storage.
package binning

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Most bounds the bins of a feature: a bin is a byte.
const Most = 256

// sampledValues is how many values other than 0 the bins are made from, about: of more, samples are drawn.
const sampledValues = 4 << 20

// sparseShare is the share of zeros, as a divisor, from which a column is sparse: samples list its other bins only.
const sparseShare = 4

// Column is a feature with at least two bins. Bin b has the values x with Cuts[b-1] <= x < Cuts[b].
type Column struct {
	Feature uint32
	Sparse  bool
	Cuts    []float32 // ascending
	Zero    int       // the bin of 0
	Base    int       // the number of its first bin, counted over all columns
	At      int       // of a dense column: its place among these
}

// Bins is the number of bins.
func (c *Column) Bins() int { return len(c.Cuts) + 1 }

// BinOf returns the bin of a value: the number of cuts that are not above it. It has no branches that a processor would
// guess wrong half of the time.
func (c *Column) BinOf(x float32) (bin int) {
	key, cuts := int64(orderOf(x+0)), c.Cuts // x+0 is not -0
	for n := len(cuts); n > 0; {
		half := (n + 1) / 2
		bin += half & int((int64(orderOf(cuts[bin+half-1]))-key-1)>>63)
		n -= half
	}
	return bin
}

// Gap is what lies between two bins: the greatest sampled value of the lower one, and the least of the upper one.
type Gap struct{ Lower, Upper float32 }

// value is a value of a column and how many sampled rows have it, or their weight.
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

// AppendValues appends what a task tells of the values of its sampled rows: their number or weight, then for each
// feature the number of its distinct values other than 0, these ascending, and the rows of each or their weight. weigh
// returns the weight of a row at a place in a shard; nil: each row counts once.
func AppendValues(dst []byte, key num.Key, refs []dataset.RowRef, d *dataset.Data,
	weigh func(shard *dataset.Rows, pos int) uint32) []byte {
	m, columns := d.Manifest, make([][]value, d.Manifest.Features)
	if values := float64(min(m.NonZeros, sampledValues)) * float64(len(refs)); values > 0 { // one column has about so many
		for c := range columns {
			columns[c] = make([]value, 0, min(len(refs), int(1.05*values/(float64(m.Rows)*float64(m.Features)))))
		}
	}
	rows := uint32(0)
	for _, ref := range refs {
		shard := d.Shard(int(ref.Shard))
		if !sampled(key, shard.Row[ref.Pos], d.Manifest) {
			continue
		}
		n := uint32(1)
		if weigh != nil {
			n = weigh(shard, int(ref.Pos))
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

// ErrBins says that bytes are not bins, nor values of features.
var ErrBins = errors.New("the bins of features are damaged")

// values is a task's list that is read from the first feature on.
type values struct {
	rows uint32
	rest []byte
}

func newValues(b []byte) (values, error) {
	if len(b) < 4 {
		return values{}, ErrBins
	}
	return values{binary.LittleEndian.Uint32(b), b[4:]}, nil
}

// next appends the values of the next feature.
func (v *values) next(dst []value) ([]value, error) {
	if len(v.rest) < 4 {
		return nil, ErrBins
	}
	n := uint64(binary.LittleEndian.Uint32(v.rest))
	if uint64(len(v.rest)) < 4+8*n {
		return nil, ErrBins
	}
	xs, counts := num.Float32s(v.rest[4:4+4*n]), num.Uint32s(v.rest[4+4*n:4+8*n])
	v.rest = v.rest[4+8*n:]
	total := uint64(0)
	for i, x := range xs {
		if x-x != 0 || x == 0 || counts[i] == 0 || i > 0 && !(xs[i-1] < x) {
			return nil, ErrBins
		}
		total += uint64(counts[i])
		dst = append(dst, value{x, counts[i]})
	}
	if total > uint64(v.rows) {
		return nil, ErrBins
	}
	return dst, nil
}

// Make makes the bins of what all tasks told, most for a feature at most. It calls add for each feature with at least
// two bins, with the gaps between them.
func Make(parts [][]byte, features, most int, add func(feature uint32, sparse bool, gaps []Gap)) error {
	lists := make([]values, len(parts))
	rows := uint64(0)
	for i, part := range parts {
		var err error
		if lists[i], err = newValues(part); err != nil {
			return fmt.Errorf("task %d: %w", i, err)
		}
		rows += uint64(lists[i].rows)
	}
	if rows == 0 {
		return algorithms.ErrNoRows
	}
	var all []value
	for feature := range features {
		all = all[:0]
		for i := range lists {
			var err error
			if all, err = lists[i].next(all); err != nil {
				return fmt.Errorf("task %d: feature %d: %w", i, feature, err)
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
		if gaps := divide(all, most); len(gaps) > 0 {
			add(uint32(feature), zeros >= rows-rows/sparseShare, gaps)
		}
	}
	for i := range lists {
		if len(lists[i].rest) > 0 {
			return fmt.Errorf("task %d: %w", i, ErrBins)
		}
	}
	return nil
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

// divide returns the gaps between at most so many bins of distinct values, ascending. Each value has a bin if there
// are enough. Otherwise heavy values have bins of their own (see heavy), and the other values are divided: a bin ends
// where it has its share of the rows that no bin before has.
func divide(all []value, most int) (gaps []Gap) {
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
			gaps = append(gaps, Gap{v.x, all[i+1].x})
		}
	}
	return gaps
}

// heavy returns which of distinct values, ascending, have a bin of their own among at most so many, the rows of the
// others, and the number of shares that divide these rows. Each run of other values between them has a bin at least,
// and there is a share for each bin but one of each run after the first. Values are taken in descending order of their
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
