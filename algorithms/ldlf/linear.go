package ldlf

import (
	"math"
	"math/bits"
	"slices"

	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/round"
)

// linear is the feature function of the shallow forest, f(x; Θ) = Θᵀx + bias
// (section 4.1). Θ is (features, then the bias's row if there is one)×outputs,
// row-major.
type linear struct {
	features, outputs int
	bias              bool
	sparse            bool // gradients are row-sparse
	scaled            bool // inputs are scaled
	normal            bool // Θ begins as N(0, deviation²), else uniform (Xavier)
	deviation         float64
}

func newLinear(c *Config, z sizes, sparse bool) *linear {
	return &linear{
		features: z.features, outputs: z.outputs, bias: z.bias, sparse: sparse,
		scaled: c.Scaling != scalingNone, normal: c.Init == initNormal, deviation: c.InitStd,
	}
}

// linearSpace is the working memory of linear.
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
	listed  bool       // whether they are lists of terms: where backward sees all samples at once
	later   bool       // whether they may be computed later
}

func (f *linear) workspace() workspace {
	return &linearSpace{
		start: make([]float32, f.outputs), sum: make([]float64, f.outputs),
	}
}

func (f *linear) parameters() int {
	n := f.features * f.outputs
	if f.bias {
		n += f.outputs
	}
	return n
}

// split returns Θ's feature rows and its bias row (nil without a bias).
func (f *linear) split(theta []float32) (rows, bias []float32) {
	n := f.features * f.outputs
	return theta[:n:n], theta[n:]
}

// initialise draws row i of Θ from stream (key, 0, i): uniform within
// ±sqrt(3/fan-in), the fan-in being the number of features (Xavier as in Caffe), or
// normal. The bias begins at 0.
func (f *linear) initialise(theta []float32, key num.Key) {
	rows, bias := f.split(theta)
	bound := math.Sqrt(3 / float64(f.features))
	for i := range f.features {
		s := num.NewStream(key, 0, uint32(i))
		row := rows[i*f.outputs : (i+1)*f.outputs]
		for j := range row {
			if f.normal {
				row[j] = float32(f.deviation * s.Normal())
			} else {
				row[j] = float32(bound * (2*s.Float64() - 1))
			}
		}
	}
	clear(bias)
}

func (f *linear) forward(dst []float32, samples []sample, w *weights, ws workspace) {
	s := ws.(*linearSpace)
	if f.together(samples) {
		f.forwardDense(dst, samples, w, s)
		return
	}
	rows, bias := f.split(w.theta)
	for i := range samples {
		x, out := &samples[i], dst[i*f.outputs:(i+1)*f.outputs]
		if x.sparse {
			copy(out, f.sparseStart(s, w))
			num.MulAddRowsAt(out, s.nonZeros(x, &w.input), x.columns, rows)
			continue
		}
		f.startDense(out, bias)
		num.MulAddRows(out, s.dense(x, &w.input), rows)
	}
}

// startDense sets what the outputs of a dense row begin with.
func (f *linear) startDense(out, bias []float32) {
	if f.bias {
		copy(out, bias)
	} else {
		clear(out)
	}
}

// gatheredValues bounds the values of dense rows that are multiplied together.
const gatheredValues = 1 << 17

// together reports whether several of the samples, which are dense, make one product.
func (f *linear) together(samples []sample) bool {
	return len(samples) > 1 && !samples[0].sparse && 2*f.features <= gatheredValues
}

// eachDense calls do with dense rows as a matrix, scaled, some at a time; from is the
// first one's number. again tells that forward has just had the same ones.
func (f *linear) eachDense(samples []sample, input scaling, s *linearSpace, again bool, do func(from, n int, x []float32)) {
	most := gatheredValues / max(1, f.features)
	for from := 0; from < len(samples); from += most {
		part := samples[from:min(from+most, len(samples))]
		if !again || len(part) < len(samples) {
			s.gather(part, input, f.features)
		}
		do(from, len(part), s.matrix)
	}
}

// gather sets s.matrix to dense rows, scaled.
func (s *linearSpace) gather(samples []sample, input scaling, features int) {
	s.matrix = slices.Grow(s.matrix[:0], len(samples)*features)[:len(samples)*features]
	for i := range samples {
		if row := s.matrix[i*features : (i+1)*features]; input.none() {
			copy(row, samples[i].x)
		} else {
			input.dense(row, samples[i].x)
		}
	}
}

// forwardDense is forward of dense rows as products of matrices.
func (f *linear) forwardDense(dst []float32, samples []sample, w *weights, s *linearSpace) {
	rows, bias := f.split(w.theta)
	f.eachDense(samples, w.input, s, false, func(from, n int, x []float32) {
		out := dst[from*f.outputs : (from+n)*f.outputs]
		for i := range n {
			f.startDense(out[i*f.outputs:(i+1)*f.outputs], bias)
		}
		num.AddProduct(out, x, rows, f.features, f.outputs)
	})
}

// dense returns the scaled features of a dense row.
func (s *linearSpace) dense(x *sample, input *scaling) []float32 {
	if input.none() {
		return x.x
	}
	s.row = slices.Grow(s.row[:0], len(x.x))[:len(x.x)]
	input.dense(s.row, x.x)
	return s.row
}

// nonZeros returns the scaled non-zeros of a sparse row.
func (s *linearSpace) nonZeros(x *sample, input *scaling) []float32 {
	if input.none() {
		return x.x
	}
	s.row = slices.Grow(s.row[:0], len(x.x))[:len(x.x)]
	input.nonZeros(s.row, x.x, x.columns)
	return s.row
}

// sparseStart returns bias_j - Σ_i shift_i scale_i Θ_ij, the part of f that every
// sparse row shares, so that scaled rows stay sparse. It is computed once for each
// version of Θ, in float64, i in order.
func (f *linear) sparseStart(s *linearSpace, w *weights) []float32 {
	if s.started && s.version == w.version {
		return s.start
	}
	rows, bias := f.split(w.theta)
	clear(s.sum)
	for j, b := range bias {
		s.sum[j] = float64(b)
	}
	for i, shift := range w.input.shift {
		a := shift * w.input.scale[i]
		for j, v := range rows[i*f.outputs : (i+1)*f.outputs] {
			s.sum[j] -= float64(a * float64(v))
		}
	}
	for j, v := range s.sum {
		s.start[j] = float32(v)
	}
	s.started, s.version = true, w.version
	return s.start
}

// gradientShape: dense data sum into the whole of Θ's shape; sparse data into the
// rows that the samples touch, and Σ df, from which the bias's row and the part
// of the scaling's shift follow, into F64.
func (f *linear) gradientShape() round.Shape {
	if !f.sparse {
		return round.Shape{F32: f.parameters()}
	}
	shape := round.Shape{Rows: f.features, Width: f.outputs}
	if f.bias || f.scaled {
		shape.F64 = f.outputs
	}
	return shape
}

func (f *linear) begin(dst *round.Partial, u *round.Unit, samples []sample, most int, ws workspace) {
	if !f.sparse {
		return
	}
	s := ws.(*linearSpace)
	if s.touched == nil {
		s.touched = make([]uint64, (f.features+63)/64)
		s.slot = make([]uint32, f.features)
	}
	before := s.listed
	s.later = u.Later
	if s.listed = len(samples) <= most; s.listed {
		if !before {
			clear(s.slot)
		}
		return
	}
	for i := range samples {
		for _, c := range samples[i].columns {
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
	n := len(dst.Index) * f.outputs
	dst.Values = slices.Grow(dst.Values[:0], n)[:n]
	clear(dst.Values)
}

func (f *linear) backward(dst *round.Partial, df []float32, samples []sample, w *weights, ws workspace) {
	s := ws.(*linearSpace)
	if !f.sparse && f.together(samples) {
		f.backwardDense(dst, df, samples, w, s)
		return
	}
	if f.sparse {
		f.backwardSparse(dst, df, samples, &w.input, s)
		return
	}
	for i := range samples {
		x, d := &samples[i], df[i*f.outputs:(i+1)*f.outputs]
		rows, bias := f.split(dst.F32)
		num.AddOuter(rows, s.dense(x, &w.input), d)
		if f.bias {
			num.Add32(bias, d)
		}
	}
}

// backwardDense is backward of dense rows as products of matrices.
func (f *linear) backwardDense(dst *round.Partial, df []float32, samples []sample, w *weights, s *linearSpace) {
	rows, bias := f.split(dst.F32)
	f.eachDense(samples, w.input, s, true, func(from, n int, x []float32) {
		d := df[from*f.outputs : (from+n)*f.outputs]
		num.AddProductT(rows, x, d, n, f.outputs)
		if f.bias {
			for i := range n {
				num.Add32(bias, d[i*f.outputs:(i+1)*f.outputs])
			}
		}
	})
}

var one = []float32{1} // by which rows are added to float64 sums

func (f *linear) backwardSparse(dst *round.Partial, df []float32, samples []sample, input *scaling, s *linearSpace) {
	if s.listed {
		f.sumRows(dst, df, samples, input, s)
	}
	for i := range samples {
		x, d := &samples[i], df[i*f.outputs:(i+1)*f.outputs]
		if !s.listed {
			num.AddOuterVia(dst.Values, s.slot, x.columns, s.nonZeros(x, input), d)
		}
		if f.bias || f.scaled {
			num.AddOuter64(dst.F64[gradientAt:], one, d)
		}
	}
}

func (f *linear) gradientRows(sum *round.Partial, input scaling) (values []float32, index []uint32, n int) {
	if !f.sparse || !input.none() {
		return nil, nil, 0
	}
	return sum.Values, sum.Index, f.features * f.outputs
}

func (f *linear) gradient(g []float32, from int, sum *round.Partial, factor float32, input scaling) {
	if f.sparse {
		f.sparseGradient(g, from/f.outputs, sum, input)
	} else {
		copy(g, sum.F32[from:])
	}
	num.Scale32(g, factor)
}

// sparseGradient sets g to some of the gradient's rows, the first of which is row.
func (f *linear) sparseGradient(g []float32, row int, sum *round.Partial, input scaling) {
	n := f.outputs
	end := row + len(g)/n
	clear(g)
	at, _ := slices.BinarySearch(sum.Index, uint32(row))
	for ; at < len(sum.Index) && int(sum.Index[at]) < end; at++ {
		copy(g[(int(sum.Index[at])-row)*n:][:n], sum.Values[at*n:])
	}
	if !input.none() {
		for i := row; i < min(end, f.features); i++ {
			a, part := input.shift[i]*input.scale[i], g[(i-row)*n:][:n]
			for j, v := range part {
				part[j] = float32(float64(v) - float64(a*sum.F64[gradientAt+j]))
			}
		}
	}
	if end > f.features { // the bias's
		for j := range n {
			g[len(g)-n+j] = float32(sum.F64[gradientAt+j])
		}
	}
}
