// Package scaling maps each feature x_i to (x_i - shift_i)·scale_i, with shifts and scales
// that are computed from the training rows in rounds before training:
//
//	standard   the mean and one over the population deviation
//	minmax     the least value and one over the range
//
// The trainer's half is Fit, a state machine that a trainer embeds; the workers' half is
// Run; Values are what both apply to dense and sparse rows; Tensors are what a model has of
// them. A constant column is shifted only. Rows hold no missing values: an import refuses
// them, fills them or drops their rows (dataset.Missing).
//
// The rounds have the operations 200 to 202 and the variables 0xfe00 to 0xfe02.
package scaling

import (
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The kinds of scaling, as settings name them.
const (
	None     = "none"
	Standard = "standard"
	MinMax   = "minmax"
)

// Kinds lists the kinds in the order of their numbers in model files.
var Kinds = []string{None, Standard, MinMax}

// denseShare is the share of non-zero entries from which Rule standardises: mostly binary
// features are harmed by it.
const denseShare = 0.2

// Setting is the setting scaling of an algorithm.
func Setting[C any](field func(*C) *string) *param.Of[C, string] {
	return param.Word("scaling", "scaling of each feature, fitted on the training samples: none, standard (mean 0, "+
		"standard deviation 1) or minmax (0 to 1)",
		field, Kinds...).Says("auto: standard if at least 20 % of the feature values are non-zero, else none; paper: none")
}

// Rule returns the kind of scaling for a dataset where a spec names none and the preset is auto.
func Rule(m *dataset.Manifest) string {
	if m.Density() >= denseShare {
		return Standard
	}
	return None
}

// Values map a feature x_i to (x_i - Shift_i)·Scale_i. The zero value maps nothing. Values are
// float64, so that a column far from zero keeps its digits. What is called for each row takes
// a pointer: a copy by vectors waits for the stores of its words.
type Values struct {
	Shift, Scale []float64 // features each
}

// Of views a vector of all shifts followed by all scales; an empty one maps nothing.
func Of(v []float64) Values {
	n := len(v) / 2
	if n == 0 {
		return Values{}
	}
	return Values{Shift: v[:n:n], Scale: v[n:]}
}

// Find returns the values that a round carries; without scaling the round has none.
func Find(v round.Vars) Values {
	for i := range v {
		if v[i].ID == varValues {
			return Of(num.Float64s(v[i].Data))
		}
	}
	return Values{}
}

// None reports whether x maps nothing.
func (x *Values) None() bool { return x.Scale == nil }

// Dense sets dst to the scaled features of a dense row.
func (x *Values) Dense(dst, row []float32) {
	num.Standardise(dst, row, x.Shift, x.Scale)
}

// NonZeros sets dst to x_i·Scale_i of a sparse row's non-zeros: what is left of
// (x_i - Shift_i)·Scale_i once the constant part, which every row shares, is
// taken out.
func (x *Values) NonZeros(dst, values []float32, columns []uint32) {
	for i, c := range columns {
		dst[i] = float32(float64(values[i]) * x.Scale[c])
	}
}

// Tensors lists what a model has of x: nothing with kind None, else shifts and scales,
// features each.
func (x *Values) Tensors(l *learner.Tensors, kind string, features int) {
	if kind != None {
		l.F64("scaling.shift", &x.Shift, features)
		l.F64("scaling.scale", &x.Scale, features)
	}
}

// The stages of a Fit.
const (
	stageSums     uint8 = iota // standard: sums
	stageSquares               // standard: squared deviations
	stageExtremes              // minmax: least and greatest values of some columns
	stageDone
	stages
)

// slotLimit bounds the F64 values of a minmax round: 8 MiB.
const slotLimit = 1 << 20

// Fit computes the scaling of a job's features, round after round. The trainer that has it
// calls Begin, then Next and Fold in turn until Done.
type Fit struct {
	kind             string
	features, shards int
	nothing          error // if no row counts

	stage   uint8
	column  uint64    // minmax: columns done
	version uint64    // of values: how often Begin was called
	values  []float64 // shifts, then scales; nil with None

	reduce  round.Reduce // of the round
	vars    [1]round.Var // of the round
	columns [2]float64   // varColumns of the round
}

// NewFit returns the fit of a kind of scaling to the features of a dataset.
func NewFit(kind string, m *dataset.Manifest) *Fit {
	f := &Fit{kind: kind, features: m.Features, shards: len(m.Shards), stage: stageDone, nothing: algorithms.Nothing(m)}
	if kind != None {
		f.values = make([]float64, 2*m.Features)
	}
	return f
}

// Begin begins with the first round, or, in a refit, begins again.
func (f *Fit) Begin() {
	f.version++
	f.column = 0
	switch f.kind {
	case Standard:
		f.stage = stageSums
	case MinMax:
		f.stage = stageExtremes
	}
}

// Done reports whether all rounds are over; the values are then the values of the rows.
func (f *Fit) Done() bool { return f.stage == stageDone }

// Values returns the shifts and scales.
func (f *Fit) Values() Values { return Of(f.values) }

// AppendVar appends to vars the variable that Find finds, where the job scales.
func (f *Fit) AppendVar(vars []round.Var) []round.Var {
	if f.values == nil {
		return vars
	}
	return append(vars, round.Var{ID: varValues, Version: f.version, Data: num.Bytes64(f.values)})
}

// Next sets what is scaling's own in the next round: Op, Kind, Tasks, How and Vars. The
// caller sets Roles to those of the rows that it trains on.
func (f *Fit) Next(r *round.Round) {
	r.Kind = "scaling"
	r.Tasks, f.reduce.Shape.F64, r.How = f.shards, 1+f.features, &f.reduce
	switch f.stage {
	case stageSums:
		r.Op = opSums
	case stageSquares:
		r.Op = opSquares
		f.vars[0] = round.Var{ID: varMeans, Version: f.version, Data: num.Bytes64(f.Values().Shift)}
		r.Vars = f.vars[:]
	case stageExtremes:
		from, to := f.chunk()
		f.columns = [2]float64{float64(from), float64(to)}
		f.vars[0] = round.Var{ID: varColumns, Version: uint64(from), Data: num.Bytes64(f.columns[:])}
		r.Op, f.reduce.Shape.F64, r.Vars = opExtremes, f.shards*(1+2*(to-from)), f.vars[:]
	}
}

// chunk returns the columns [from, to) of a minmax round: as many as keep its
// partials bounded.
func (f *Fit) chunk() (from, to int) {
	from = int(f.column)
	return from, min(f.features, from+mostColumns(f.shards))
}

// mostColumns returns how many columns a minmax round takes at the most.
func mostColumns(shards int) int { return max(1, slotLimit/(2*shards)) }

// MostSums returns the greatest number of F64 values of a round of a kind of scaling.
func MostSums(kind string, m *dataset.Manifest) int {
	switch kind {
	case None:
		return 0
	case MinMax:
		return len(m.Shards) * (1 + 2*min(m.Features, mostColumns(len(m.Shards))))
	}
	return 1 + m.Features
}

// Fold takes the sums of the round that Next described. The error is algorithms.ErrNoRows
// or ErrNoWeights.
func (f *Fit) Fold(sum []float64) error {
	if f.stage == stageExtremes {
		return f.foldExtremes(sum)
	}
	if sum[0] == 0 {
		return f.nothing
	}
	x := f.Values()
	if f.stage == stageSums { // the shifts are the means
		for i, v := range sum[1:] {
			x.Shift[i] = v / sum[0]
		}
		f.stage = stageSquares
		return nil
	}
	for i, v := range sum[1:] {
		deviation := math.Sqrt(v / sum[0])
		x.Scale[i] = 1
		if deviation > constantShare*math.Abs(x.Shift[i]) {
			x.Scale[i] = 1 / deviation
		}
	}
	f.stage = stageDone
	return nil
}

// constantShare is the deviation, as a share of the mean, up to which a column
// counts as constant: float64 sums err by less, and float32 values that differ at
// all deviate by more.
const constantShare = 1e-9

// foldExtremes sets shifts and scales of a chunk of columns so that training rows
// span 0 to 1; a constant column is shifted only.
func (f *Fit) foldExtremes(sum []float64) error {
	from, to := f.chunk()
	x := f.Values()
	counts, slots := sum[:f.shards], sum[f.shards:]
	rows := 0.0
	for _, n := range counts {
		rows += n
	}
	if rows == 0 {
		return f.nothing
	}
	for i := range to - from {
		least, greatest := math.Inf(1), math.Inf(-1)
		for u, n := range counts {
			if n > 0 {
				pair := slots[2*((to-from)*u+i):][:2]
				least, greatest = min(least, pair[0]), max(greatest, pair[1])
			}
		}
		x.Shift[from+i], x.Scale[from+i] = least, 1
		if greatest > least {
			x.Scale[from+i] = 1 / (greatest - least)
		}
	}
	if f.column = uint64(to); to == f.features {
		f.stage = stageDone
	}
	return nil
}

// State lists the fields of a training state.
func (f *Fit) State(l *fields.List) {
	if f.kind == None {
		return
	}
	l.Byte(&f.stage)
	l.Uint64(&f.column, &f.version)
	l.Float64s(f.values)
	kinds := [stages]string{Standard, Standard, MinMax, f.kind}
	l.Check(f.stage < stages && kinds[min(f.stage, stageDone)] == f.kind,
		"the saved state has stage %d of feature scaling, which does not exist", f.stage)
	l.Check(f.column <= uint64(f.features) && (f.stage != stageExtremes || f.column < uint64(f.features)),
		"the saved state scales column %d of %d, which is not possible", f.column, f.features)
}

// The operations of rounds (Round.Op). All are float64 sums over the training rows.
const (
	opSums     uint8 = iota + 200 // sums of features
	opSquares                     // squared deviations from the means
	opExtremes                    // least and greatest values
)

// The values that rounds carry (Var.ID).
const (
	varValues  uint16 = iota + 0xfe00 // shifts, then scales (float64)
	varMeans                          // means of features (float64)
	varColumns                        // range [from, to) of columns (float64); version: from
)

// Scratch is the working memory of one lane.
type Scratch struct {
	counts []float64
	refs   []dataset.RowRef
}

// zero returns n counts of 0.
func (s *Scratch) zero(n int) []float64 {
	s.counts = slices.Grow(s.counts[:0], n)[:n]
	clear(s.counts)
	return s.counts
}

// Run computes a unit of a round of Fit's into dst; it reports false, and does nothing, where
// the round is another's.
func Run(dst *round.Partial, u *round.Task, d *dataset.Data, v round.Vars, s *Scratch) bool {
	switch u.Op {
	case opSums:
		sums(dst, u, d)
	case opSquares:
		squares(dst, u, d, num.Float64s(v.Get(varMeans)), s)
	case opExtremes:
		extremes(dst, u, d, num.Float64s(v.Get(varColumns)), s)
	default:
		return false
	}
	return true
}

// sums adds up the unit's rows: F64 holds the number of rows and Σ x_i. A weight counts its row several times.
func sums(dst *round.Partial, u *round.Task, d *dataset.Data) {
	total := dst.F64[1:]
	for _, ref := range u.Rows(d) {
		rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		weight := rows.WeightOf(pos)
		dst.F64[0] += weight
		if rows.Sparse {
			columns, values := rows.NonZeros(pos)
			for i, c := range columns {
				total[c] += float64(weight * float64(values[i]))
			}
			continue
		}
		for i, v := range rows.Dense(pos) {
			total[i] += float64(weight * float64(v))
		}
	}
}

// squares adds up squared deviations: F64 holds the number of rows and
// Σ (x_i - mean_i)², both weighted. A sparse column's zeros add (zeros)·mean_i² at the end.
func squares(dst *round.Partial, u *round.Task, d *dataset.Data, mean []float64, s *Scratch) {
	total, present := dst.F64[1:], s.zero(len(mean))
	for _, ref := range u.Rows(d) {
		rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		weight := rows.WeightOf(pos)
		dst.F64[0] += weight
		if !rows.Sparse {
			for i, v := range rows.Dense(pos) {
				total[i] += float64(weight * square(float64(v)-mean[i]))
			}
			continue
		}
		columns, values := rows.NonZeros(pos)
		for i, c := range columns {
			total[c] += float64(weight * square(float64(values[i])-mean[c]))
			present[c] += weight
		}
	}
	if d.Manifest.Sparse {
		for c, n := range present {
			total[c] += float64((dst.F64[0] - n) * square(mean[c]))
		}
	}
}

func square(x float64) float64 { return float64(x * x) }

// extremes finds the least and the greatest value of the columns [from, to). These
// are no sums, so each unit writes to its own slots and leaves the others zero:
// F64 holds a number of rows for each unit, then for each unit a (least, greatest)
// pair for each column. Rows of weight 0 do not count.
func extremes(dst *round.Partial, u *round.Task, d *dataset.Data, columns []float64, s *Scratch) {
	from, to := int(columns[0]), int(columns[1])
	refs := u.Rows(d)
	if d.Manifest.HasWeights {
		refs = s.weighted(refs, d)
	}
	dst.F64[u.ID] = float64(len(refs))
	if len(refs) == 0 {
		return
	}
	n := to - from
	slots := dst.F64[u.Of+2*n*u.ID:][:2*n]
	for i := range n {
		slots[2*i], slots[2*i+1] = math.Inf(1), math.Inf(-1)
	}
	if d.Manifest.Sparse {
		sparseExtremes(slots, refs, d, from, s)
		return
	}
	for _, ref := range refs {
		x := d.Shard(int(ref.Shard)).Dense(int(ref.Pos))
		for i, v := range x[from:to] {
			widen(slots, i, v)
		}
	}
}

// weighted returns the refs whose weight is above 0.
func (s *Scratch) weighted(refs []dataset.RowRef, d *dataset.Data) []dataset.RowRef {
	s.refs = s.refs[:0]
	for _, ref := range refs {
		if d.Shard(int(ref.Shard)).WeightOf(int(ref.Pos)) > 0 {
			s.refs = append(s.refs, ref)
		}
	}
	return s.refs
}

// sparseExtremes widens the pairs of the columns from first on; a column with
// fewer non-zeros than rows has a zero.
func sparseExtremes(slots []float64, refs []dataset.RowRef, d *dataset.Data, first int, s *Scratch) {
	n := len(slots) / 2
	present := s.zero(n)
	for _, ref := range refs {
		columns, values := d.Shard(int(ref.Shard)).NonZeros(int(ref.Pos))
		for k, c := range columns {
			if i := int(c) - first; i >= 0 && i < n {
				widen(slots, i, values[k])
				present[i]++
			}
		}
	}
	for i, count := range present {
		if int(count) < len(refs) {
			widen(slots, i, 0)
		}
	}
}

func widen(slots []float64, i int, v float32) {
	slots[2*i], slots[2*i+1] = min(slots[2*i], float64(v)), max(slots[2*i+1], float64(v))
}
