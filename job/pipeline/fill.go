package pipeline

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The rounds of fill, and their variables.
const (
	opSums   = 248 // of the values of each feature in training rows, and how many are missing
	opDigits = 249 // how often each digit of the values of some features occurs

	varFill   = 0xff02
	varDigits = 0xff03
)

// The keys of a feature's values, whole numbers in the order of the values, have keyDigits digits of
// base digitBase.
const (
	keyDigits = 4
	digitBase = 256
	// digitSlots bounds the F64 values of a round of digits: 8 MiB.
	digitSlots = 1 << 20
)

// fill computes what takes the place of missing features: the mean or the median of the values
// in the training rows of the job, feature by feature. The rounds come before the algorithm's.
type fill struct {
	by       string
	manifest *dataset.Manifest
	values   []float64 // nil until all are known; each is a float32

	sums    []float64 // of opSums, once known
	medians []float64 // of the features below column
	column  int       // the first feature of the chunk
	digit   int       // of the chunk's keys, from the first
	// of each feature of the chunk, of its lower and its upper middle value: the digits that are
	// known, and the place among the values that have them
	prefix []uint32
	place  []float64
	vars   [1]round.Var
}

// done reports whether the last round has ended.
func (f *fill) done() bool { return f == nil || f.values != nil }

// next sets what is fill's own in the next round.
func (f *fill) next(r *round.Round) {
	r.Kind, r.Roles = "missing values", dataset.Train
	if f.sums == nil {
		r.Op, r.How = opSums, round.Sums(2*f.manifest.Features+1)
		return
	}
	n := f.chunk()
	r.Op, r.How = opDigits, round.Sums(2*digitBase*n)
	data := binary.LittleEndian.AppendUint32(nil, uint32(f.column))
	data = binary.LittleEndian.AppendUint32(data, uint32(f.digit))
	for _, p := range f.prefix {
		data = binary.LittleEndian.AppendUint32(data, p)
	}
	f.vars[0] = round.Var{ID: varDigits, Version: uint64(keyDigits*f.column + f.digit + 1), Data: data}
	r.Vars = f.vars[:]
}

// chunk returns the number of features of the chunk.
func (f *fill) chunk() int {
	return min(f.manifest.Features-f.column, digitSlots/(2*digitBase))
}

// fold takes the sums of a round.
func (f *fill) fold(sum []float64) error {
	if f.sums != nil {
		f.foldDigits(sum)
		return nil
	}
	f.sums = append([]float64{}, sum...)
	features := f.manifest.Features
	if sum[2*features] == 0 {
		return algorithms.ErrNoRows
	}
	for i := range features {
		if f.count(i) == 0 {
			return &dataset.RowError{Row: -1, Column: i, Kind: "feature", Name: f.manifest.FeatureName(i),
				Reason: errtext.Sprintf(
					"the feature has no value in the training samples, so missing values cannot be replaced by the %s; {drop} "+
						"leaves the feature out", f.by)}
		}
	}
	if f.by == dataset.FillMedian {
		f.beginChunk()
		return nil
	}
	means := make([]float64, features)
	for i := range means {
		means[i] = float64(float32(sum[i] / f.count(i)))
	}
	f.values = means
	return nil
}

// count returns how many training rows have a value of feature i.
func (f *fill) count(i int) float64 {
	n := f.manifest.Features
	return f.sums[2*n] - f.sums[n+i]
}

func (f *fill) beginChunk() {
	n := f.chunk()
	f.digit, f.prefix, f.place = 0, make([]uint32, 2*n), make([]float64, 2*n)
	for i := range n {
		k := f.count(f.column + i)
		f.place[2*i], f.place[2*i+1] = k/2, k/2
	}
}

// foldDigits finds the next digit of each middle value of the chunk. Half of the weight is at or below the lower one,
// and more than half at or below the upper one.
func (f *fill) foldDigits(counts []float64) {
	for i := range f.prefix {
		last := 0 // digit that occurs
		for digit, n := range counts[digitBase*i:][:digitBase] {
			if n == 0 {
				continue
			}
			last = digit
			if f.place[i] < n || i%2 == 0 && f.place[i] == n {
				break
			}
			f.place[i] -= n
		}
		f.prefix[i] = f.prefix[i]*digitBase + uint32(last)
	}
	if f.digit++; f.digit < keyDigits {
		return
	}
	for i := 0; i < len(f.prefix); i += 2 {
		middle := (float64(valueOf(f.prefix[i])) + float64(valueOf(f.prefix[i+1]))) / 2
		f.medians = append(f.medians, float64(float32(middle)))
	}
	if f.column = len(f.medians); f.column == f.manifest.Features {
		f.values = f.medians
		return
	}
	f.beginChunk()
}

// variable is what kernels fill with.
func (f *fill) variable() round.Var {
	return round.Var{ID: varFill, Version: 1, Data: num.Bytes64(f.values)}
}

// state lists the fields of a training state. A state from before the values are known begins
// with the first round again.
func (f *fill) state(l *fields.List) {
	if f == nil {
		return
	}
	l.Known(&f.values, f.manifest.Features)
	for i, v := range f.values {
		l.Check(v-v == 0, "the fill value of feature %d is %v, which is not possible", i, v)
	}
}

// sumFeatures adds to dst the sum of the values of each feature in the task's rows, then how many are
// missing of each, then the number of rows, all weighted.
func sumFeatures(dst []float64, u round.Task, d *dataset.Data) {
	features := d.Manifest.Features
	eachRow(u, d, func(weight float64, sparse bool, columns []uint32, values []float32) {
		for i, v := range values {
			if sparse {
				i = int(columns[i])
			}
			if v != v {
				dst[features+i] += weight
			} else {
				dst[i] += float64(weight * float64(v))
			}
		}
		dst[2*features] += weight
	})
}

// eachRow calls f with the weight and the features of each of the task's rows. Only a sparse row has columns.
func eachRow(u round.Task, d *dataset.Data, f func(weight float64, sparse bool, columns []uint32,
	values []float32)) {
	for _, ref := range u.Rows(d) {
		shard, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		if shard.Sparse {
			columns, values := shard.NonZeros(pos)
			f(shard.WeightOf(pos), true, columns, values)
		} else {
			f(shard.WeightOf(pos), false, nil, shard.Dense(pos))
		}
	}
}

// countDigits adds to dst how often each digit follows the known digits of the middle values of the
// features that varDigits lists, weighted.
func countDigits(dst []float64, u round.Task, d *dataset.Data, v round.Vars) {
	b := v.Get(varDigits)
	from, digit := int(binary.LittleEndian.Uint32(b)), int(binary.LittleEndian.Uint32(b[4:]))
	prefix := make([]uint32, len(b)/4-2)
	for i := range prefix {
		prefix[i] = binary.LittleEndian.Uint32(b[8+4*i:])
	}
	n, shift := len(prefix)/2, 8*(keyDigits-1-digit)
	add := func(i int, x float32, times float64) {
		key := keyOf(x) >> shift
		for at := 2 * i; at < 2*i+2; at++ {
			if key/digitBase == prefix[at] {
				dst[digitBase*at+int(key%digitBase)] += times
			}
		}
	}
	rows, listed := 0.0, make([]float64, n) // in sparse rows
	eachRow(u, d, func(weight float64, sparse bool, columns []uint32, values []float32) {
		if !sparse {
			for i, x := range values[from : from+n] {
				if x == x {
					add(i, x, weight)
				}
			}
			return
		}
		rows += weight
		for k, x := range values {
			i := int(columns[k]) - from
			if i < 0 || i >= n {
				continue
			}
			if listed[i] += weight; x == x {
				add(i, x, weight)
			}
		}
	})
	for i, k := range listed {
		if rows > k {
			add(i, 0, rows-k)
		}
	}
}

// keyOf returns a whole number that is the greater the greater x is.
func keyOf(x float32) uint32 {
	b := math.Float32bits(x)
	if b>>31 == 0 {
		return b | 1<<31
	}
	return ^b
}

// valueOf is the inverse of keyOf.
func valueOf(key uint32) float32 {
	if key>>31 == 1 {
		return math.Float32frombits(key &^ (1 << 31))
	}
	return math.Float32frombits(^key)
}

// filledData are the rows of a job with their missing features filled.
func (k *kernel) filledData(d *dataset.Data, v round.Vars) *dataset.Data {
	if !k.fills && !k.scales {
		return d
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.filled.made(d, func() *dataset.Data {
		made := d
		if k.fills {
			made = made.Filled(num.Float64s(v.Get(varFill)))
		}
		if k.scales {
			b := boundsOf(v)
			made = made.Scaled(&dataset.Bounds{Low: slices.Clone(b.Low), High: slices.Clone(b.High)})
		}
		return made
	})
}
