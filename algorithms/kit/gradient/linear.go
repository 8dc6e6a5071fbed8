package gradient

import (
	"math"
	"math/bits"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Linear is the linear feature function, f(x; Θ) = Θᵀx + bias. Θ is (features, then the bias's
// row if there is one)×outputs, row-major.
type Linear struct {
	Features, Outputs int
	Bias              bool
	Sparse            bool    // rows are sparse
	Scaled            bool    // inputs are scaled
	Normal            bool    // Θ begins as N(0, Deviation²), else uniform (Xavier)
	Deviation         float64 // with Normal
}

// linearSpace is the working memory of Linear.
type linearSpace struct {
	row     []float32 // a scaled row, or its non-zeros
	matrix  []float32 // scaled dense rows, one behind the other
	start   []float32 // outputs: what every sparse row begins with
	started bool
	version uint64 // of start
	sum     []float64

	touched []uint64   // a bit for each feature
	slot    []uint32   // where a touched feature's row is in Partial.Values, or its first term
	outers  num.Outers // the sums of these rows
	listed  bool       // whether they are lists of terms: where Backward sees all samples at once
	later   bool       // whether they may be computed later
}

// NewWorkspace implements Function.
func (f *Linear) NewWorkspace() Workspace {
	return &linearSpace{
		start: make([]float32, f.Outputs), sum: make([]float64, f.Outputs),
	}
}

// Layout implements Function.
func (f *Linear) Layout() []Layer {
	rows := f.Features
	if f.Bias {
		rows++
	}
	return []Layer{{Name: "theta", Dims: []int{rows, f.Outputs}}}
}

// OutputsFrom implements Function.
func (f *Linear) OutputsFrom() (first, units int) { return 0, f.Outputs }

// split returns Θ's feature rows and its bias row (nil without a bias).
func (f *Linear) split(theta []float32) (rows, bias []float32) {
	n := f.Features * f.Outputs
	return theta[:n:n], theta[n:]
}

// Initialise implements Function: it draws row i of Θ from stream (key, 0, i): uniform within
// ±sqrt(3/fan-in), the fan-in being the number of features (Xavier as in Caffe), or
// normal. The bias begins at 0.
func (f *Linear) Initialise(theta []float32, key num.Key) {
	rows, bias := f.split(theta)
	bound := math.Sqrt(3 / float64(f.Features))
	for i := range f.Features {
		s := num.NewStream(key, 0, uint32(i))
		row := rows[i*f.Outputs : (i+1)*f.Outputs]
		for j := range row {
			if f.Normal {
				row[j] = float32(f.Deviation * s.Normal())
			} else {
				row[j] = float32(bound * (2*s.Float64() - 1))
			}
		}
	}
	clear(bias)
}

// Forward implements Function.
func (f *Linear) Forward(dst []float32, samples []Sample, w *Weights, _ uint64, ws Workspace) {
	f.Predict(dst, samples, w, ws)
}

// Predict implements Function.
func (f *Linear) Predict(dst []float32, samples []Sample, w *Weights, ws Workspace) {
	s := ws.(*linearSpace)
	if f.together(samples) {
		f.predictDense(dst, samples, w, s)
		return
	}
	rows, bias := f.split(w.Theta)
	for i := range samples {
		x, out := &samples[i], dst[i*f.Outputs:(i+1)*f.Outputs]
		if x.Sparse {
			copy(out, f.sparseStart(s, w))
			num.MulAddRowsAt(out, s.scaled(x, &w.Input), x.Columns, rows)
			continue
		}
		clear(out[copy(out, bias):]) // outputs begin with the bias, or with 0
		num.MulAddRows(out, s.scaled(x, &w.Input), rows)
	}
}

// gatheredValues bounds the values of dense rows that are multiplied together.
const gatheredValues = 1 << 17

// together reports whether several of the samples, which are dense, make one product.
func (f *Linear) together(samples []Sample) bool {
	return len(samples) > 1 && !samples[0].Sparse && 2*f.Features <= gatheredValues
}

// eachDense calls do with dense rows as a matrix, scaled, some at a time; from is the
// first one's number. again tells that Predict has just had the same ones.
func (f *Linear) eachDense(samples []Sample, input *scaling.Values, s *linearSpace, again bool,
	do func(from, n int, x []float32)) {
	most := gatheredValues / max(1, f.Features)
	for from := 0; from < len(samples); from += most {
		part := samples[from:min(from+most, len(samples))]
		if !again || len(part) < len(samples) {
			s.gather(part, input, f.Features)
		}
		do(from, len(part), s.matrix)
	}
}

// gather sets s.matrix to dense rows, scaled.
func (s *linearSpace) gather(samples []Sample, input *scaling.Values, features int) {
	s.matrix = slices.Grow(s.matrix[:0], len(samples)*features)[:len(samples)*features]
	for i := range samples {
		if row := s.matrix[i*features : (i+1)*features]; input.None() {
			copy(row, samples[i].X)
		} else {
			input.Dense(row, samples[i].X)
		}
	}
}

// predictDense is Predict of dense rows as products of matrices.
func (f *Linear) predictDense(dst []float32, samples []Sample, w *Weights, s *linearSpace) {
	rows, bias := f.split(w.Theta)
	f.eachDense(samples, &w.Input, s, false, func(from, n int, x []float32) {
		out := dst[from*f.Outputs : (from+n)*f.Outputs]
		for i := range n {
			row := out[i*f.Outputs : (i+1)*f.Outputs]
			clear(row[copy(row, bias):])
		}
		num.AddProduct(out, x, rows, f.Features, f.Outputs)
	})
}

// scaled returns the scaled features of a dense row, or the scaled non-zeros of a sparse one.
func (s *linearSpace) scaled(x *Sample, input *scaling.Values) []float32 {
	if input.None() {
		return x.X
	}
	s.row = slices.Grow(s.row[:0], len(x.X))[:len(x.X)]
	if x.Sparse {
		input.NonZeros(s.row, x.X, x.Columns)
	} else {
		input.Dense(s.row, x.X)
	}
	return s.row
}

// sparseStart returns bias_j - Σ_i shift_i scale_i Θ_ij, the part of f that every
// sparse row shares, so that scaled rows stay sparse. It is computed once for each
// version of Θ, in float64, i in order.
func (f *Linear) sparseStart(s *linearSpace, w *Weights) []float32 {
	if s.started && s.version == w.Version {
		return s.start
	}
	rows, bias := f.split(w.Theta)
	clear(s.sum)
	for j, b := range bias {
		s.sum[j] = float64(b)
	}
	for i, shift := range w.Input.Shift {
		a := shift * w.Input.Scale[i]
		for j, v := range rows[i*f.Outputs : (i+1)*f.Outputs] {
			s.sum[j] -= float64(a * float64(v))
		}
	}
	for j, v := range s.sum {
		s.start[j] = float32(v)
	}
	s.started, s.version = true, w.Version
	return s.start
}

// GradientShape implements Function: dense data sum into the whole of Θ's shape; sparse data into the
// rows that the samples touch, and Σ df, from which the bias's row and the part
// of the scaling's shift follow, into F64.
func (f *Linear) GradientShape() round.Shape {
	biases := 0
	if f.Bias {
		biases = f.Outputs
	}
	if !f.Sparse {
		return round.Shape{F32: f.Features*f.Outputs + biases}
	}
	shape := round.Shape{Rows: f.Features, Width: f.Outputs, F64: biases}
	if f.Scaled {
		shape.F64 = f.Outputs
	}
	return shape
}

// addedOutputs is up to how many outputs a unit's rows are added to, sample after sample: they stay
// in a processor's first cache. More are sums of lists.
const addedOutputs = 64

// Begin implements Function.
func (f *Linear) Begin(dst *round.Partial, u *round.Task, samples []Sample, most int, ws Workspace) {
	if !f.Sparse {
		return
	}
	s := ws.(*linearSpace)
	if s.touched == nil {
		s.touched = make([]uint64, (f.Features+63)/64)
		s.slot = make([]uint32, f.Features)
	}
	before := s.listed
	s.later = u.Later
	if s.listed = len(samples) <= most && f.Outputs > addedOutputs; s.listed {
		if !before {
			clear(s.slot)
		}
		return
	}
	for i := range samples {
		for _, c := range samples[i].Columns {
			s.touched[c/64] |= 1 << (c % 64)
		}
	}
	for i, word := range s.touched {
		for s.touched[i] = 0; word != 0; word &= word - 1 {
			c := uint32(i*64 + bits.TrailingZeros64(word))
			s.slot[c] = uint32(len(dst.Index))
			dst.Index = append(dst.Index, c)
		}
	}
	n := len(dst.Index) * f.Outputs
	dst.Values = slices.Grow(dst.Values[:0], n)[:n]
	clear(dst.Values)
}

// Backward implements Function.
func (f *Linear) Backward(dst *round.Partial, df []float32, samples []Sample, w *Weights, ws Workspace) {
	s := ws.(*linearSpace)
	if !f.Sparse && f.together(samples) {
		f.backwardDense(dst, df, samples, w, s)
		return
	}
	if f.Sparse {
		f.backwardSparse(dst, df, samples, &w.Input, s)
		return
	}
	for i := range samples {
		x, d := &samples[i], df[i*f.Outputs:(i+1)*f.Outputs]
		rows, bias := f.split(dst.F32)
		num.AddOuter(rows, s.scaled(x, &w.Input), d)
		if f.Bias {
			num.Add32(bias, d)
		}
	}
}

// backwardDense is Backward of dense rows as products of matrices.
func (f *Linear) backwardDense(dst *round.Partial, df []float32, samples []Sample, w *Weights, s *linearSpace) {
	rows, bias := f.split(dst.F32)
	f.eachDense(samples, &w.Input, s, true, func(from, n int, x []float32) {
		d := df[from*f.Outputs : (from+n)*f.Outputs]
		num.AddProductT(rows, x, d, n, f.Outputs)
		if f.Bias {
			for i := range n {
				num.Add32(bias, d[i*f.Outputs:(i+1)*f.Outputs])
			}
		}
	})
}

var one = []float32{1} // by which rows are added to float64 sums

func (f *Linear) backwardSparse(dst *round.Partial, df []float32, samples []Sample, input *scaling.Values,
	s *linearSpace) {
	if s.listed {
		f.sumRows(dst, df, samples, input, s)
	}
	for i := range samples {
		x, d := &samples[i], df[i*f.Outputs:(i+1)*f.Outputs]
		if !s.listed {
			num.AddOuterVia(dst.Values, s.slot, x.Columns, s.scaled(x, input), d)
		}
		if f.Bias || f.Scaled {
			num.AddOuter64(dst.F64[GradientAt:], one, d)
		}
	}
}

// GradientRows implements Function: all but the bias's row, where inputs are sparse and not
// scaled.
func (f *Linear) GradientRows(input *scaling.Values) int {
	if !f.Sparse || !input.None() {
		return 0
	}
	return f.Features * f.Outputs
}

// Stride implements Function.
func (f *Linear) Stride() int { return f.Outputs }

// Gradient implements Function.
func (f *Linear) Gradient(g []float32, from int, sum *round.Partial, factor float32, input *scaling.Values) {
	if f.Sparse {
		f.sparseGradient(g, from/f.Outputs, sum, input)
	} else {
		copy(g, sum.F32[from:])
	}
	num.Scale32(g, factor)
}

// sparseGradient sets g to some of the gradient's rows, from row on.
func (f *Linear) sparseGradient(g []float32, row int, sum *round.Partial, input *scaling.Values) {
	n := f.Outputs
	end := row + len(g)/n
	clear(g)
	at, _ := slices.BinarySearch(sum.Index, uint32(row))
	for ; at < len(sum.Index) && int(sum.Index[at]) < end; at++ {
		copy(g[(int(sum.Index[at])-row)*n:][:n], sum.Values[at*n:])
	}
	if !input.None() {
		for i := row; i < min(end, f.Features); i++ {
			a, part := input.Shift[i]*input.Scale[i], g[(i-row)*n:][:n]
			for j, v := range part {
				part[j] = float32(float64(v) - float64(a*sum.F64[GradientAt+j]))
			}
		}
	}
	if end > f.Features { // the bias's
		for j := range n {
			g[len(g)-n+j] = float32(sum.F64[GradientAt+j])
		}
	}
}

// sumRows sets dst's rows to Σ x df over samples, all of the unit's that there are: of each
// feature that they have, its samples in order. Where they may be computed later, it leaves
// them so, with a copy of df.
func (f *Linear) sumRows(dst *round.Partial, df []float32, samples []Sample, input *scaling.Values, s *linearSpace) {
	o := &s.outers
	if s.later {
		if before, ok := dst.Before.(*num.Outers); ok {
			o = before
		} else {
			o = new(num.Outers)
		}
	}
	o.Terms = f.list(o.Terms, samples, input, s)
	rows := num.CountBits(s.touched)
	dst.Index = slices.Grow(dst.Index[:0], rows)[:rows]
	o.First = slices.Grow(o.First[:0], rows)[:rows]
	num.ListRows(dst.Index, o.First, s.touched, s.slot)
	o.Width = f.Outputs
	df = df[:len(samples)*f.Outputs]
	if s.later {
		o.X = append(o.X[:0], df...)
		dst.Later = o
		return
	}
	o.X = df
	dst.Values = slices.Grow(dst.Values[:0], rows*f.Outputs)[:rows*f.Outputs]
	o.Compute(dst.Values, 0)
}

// list makes a list of terms of each feature that samples have, in the place of terms: s.slot
// begins it. The last term comes first, so that each is put before those that follow it.
func (f *Linear) list(terms []num.OuterTerm, samples []Sample, input *scaling.Values, s *linearSpace) []num.OuterTerm {
	n := 0
	for i := range samples {
		n += len(samples[i].Columns)
	}
	terms = slices.Grow(terms[:0], n)[:n]
	slot, touched := s.slot, s.touched
	for i := len(samples) - 1; i >= 0; i-- {
		x := s.scaled(&samples[i], input)
		columns := samples[i].Columns[:len(x)]
		for k := len(x) - 1; k >= 0; k-- {
			c := columns[k]
			n--
			terms[n] = num.OuterTerm{A: x[k], X: uint32(i), Next: slot[c]}
			slot[c] = uint32(n + 1)
			touched[c/64] |= 1 << (c % 64)
		}
	}
	return terms
}
