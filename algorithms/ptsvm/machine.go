package ptsvm

import (
	"context"
	"math"

	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// folds is the number of folds whose values the sigmoid is fitted to.
const folds = 3

// samples are the training samples of a pair's task.
type samples struct {
	features int
	rows     []*dataset.Rows // of each sample
	at       []int           // its place there
	dense    []float64       // samples×features: scaled features; nil if the samples are sparse
	scale    scaling.Values
	fold     []uint8
	first    []float64 // the degrees of both labels of the pair, times the weights of the samples
	second   []float64
	raw      []float64 // features+1: weights that read the features of sparse samples as they are
}

// newSamples reads the samples of a task.
func newSamples(refs []dataset.RowRef, d *dataset.Data, scale scaling.Values, key num.Key) *samples {
	s := &samples{features: d.Manifest.Features, scale: scale, raw: make([]float64, d.Manifest.Features+1)}
	if !d.Manifest.Sparse {
		s.dense = make([]float64, 0, len(refs)*s.features)
	}
	for _, ref := range refs {
		rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		s.rows, s.at = append(s.rows, rows), append(s.at, pos)
		s.fold = append(s.fold, uint8(num.Philox(key, [4]uint32{rows.Row[pos]})[0]%folds))
		if d.Manifest.Sparse {
			continue
		}
		for k, x := range rows.Dense(pos) {
			z := float64(x)
			if !scale.None() {
				z = (z - scale.Shift[k]) * scale.Scale[k]
			}
			s.dense = append(s.dense, z)
		}
	}
	s.first, s.second = make([]float64, len(refs)), make([]float64, len(refs))
	return s
}

// pair reads the weighted degrees of two labels.
func (s *samples) pair(a, b int) {
	degrees := make([]float64, s.rows[0].Labels)
	for i, rows := range s.rows {
		maxent.Degrees(degrees, rows.Label(s.at[i]))
		weight := rows.WeightOf(s.at[i])
		s.first[i], s.second[i] = weight*degrees[a], weight*degrees[b]
	}
}

// effective sets raw to weights that read features as the samples have them, the offset last.
func (s *samples) effective(raw, w []float64) {
	copy(raw, w)
	if s.scale.None() {
		return
	}
	for k, scale := range s.scale.Scale {
		raw[k] *= scale
		raw[s.features] -= float64(s.scale.Shift[k] * raw[k])
	}
}

// values sets dst to w·x of each sample.
func (s *samples) values(dst, w []float64) {
	if s.dense != nil {
		for i := range dst {
			dst[i] = w[s.features] + num.Dot64(w[:s.features], s.dense[i*s.features:][:s.features])
		}
		return
	}
	s.effective(s.raw, w)
	for i := range dst {
		columns, values := s.rows[i].NonZeros(s.at[i])
		sum := s.raw[s.features]
		for j, c := range columns {
			sum += float64(s.raw[c] * float64(values[j]))
		}
		dst[i] = sum
	}
}

// addProducts adds Σ r_i x_i to dst.
func (s *samples) addProducts(dst, r []float64) {
	if s.dense != nil {
		for i, x := range r {
			if x != 0 {
				num.AddScaled64(dst[:s.features], x, s.dense[i*s.features:][:s.features])
				dst[s.features] += x
			}
		}
		return
	}
	sums, total := s.raw, 0.0
	clear(sums)
	for i, x := range r {
		if x == 0 {
			continue
		}
		total += x
		columns, values := s.rows[i].NonZeros(s.at[i])
		for j, c := range columns {
			sums[c] += float64(x * float64(values[j]))
		}
	}
	for k := range s.features {
		sum := sums[k]
		if !s.scale.None() {
			sum = (sum - float64(s.scale.Shift[k]*total)) * s.scale.Scale[k]
		}
		dst[k] += sum
	}
	dst[s.features] += total
}

// machine minimises the objective of a pair.
type machine struct {
	*samples
	gamma           float64
	left            int       // the fold that is left out; folds: none
	w, g            []float64 // features+1: weights and gradient
	step, rest, way []float64 // of the conjugate gradients: the solution, the residual, the direction
	product         []float64
	value, move     []float64 // of each sample: w·x, and the change by a step
	slope           []float64 // of each sample
}

func newMachine(s *samples) *machine {
	n, m := s.features+1, len(s.rows)
	v := func(n int) []float64 { return make([]float64, n) }
	return &machine{
		samples: s, w: v(n), g: v(n), step: v(n), rest: v(n), way: v(n), product: v(n),
		value: v(m), move: v(m), slope: v(m),
	}
}

// The bounds of the search.
const (
	mostSteps     = 100  // Newton steps
	mostGradients = 200  // conjugate gradients of a step
	mostHalves    = 30   // of a step that is too long
	enough        = 1e-6 // share of the first gradient
	decrease      = 1e-4 // share of the fall that the slope promises
)

// fit minimises the objective from w = 0, without one fold. w and value are then those of the minimum; value is of all
// samples.
func (m *machine) fit(ctx context.Context, gamma float64, left int) error {
	m.gamma, m.left = gamma, left
	clear(m.w)
	clear(m.value)
	first := 0.0
	for k := range mostSteps {
		if err := ctx.Err(); err != nil {
			return err
		}
		f := m.evaluate()
		size := math.Sqrt(num.Dot64(m.g, m.g))
		if k == 0 {
			first = size
		}
		if size <= float64(enough*first) {
			return nil
		}
		m.solve(size)
		m.values(m.move, m.step)
		if !m.search(f) {
			return nil // rounding allows no lower value
		}
	}
	return nil
}

// evaluate returns the objective at w, and sets g to its gradient.
func (m *machine) evaluate() float64 {
	f := float64(0.5 * num.Dot64(m.w, m.w))
	copy(m.g, m.w)
	for i, v := range m.value {
		m.slope[i] = 0
		if int(m.fold[i]) == m.left {
			continue
		}
		if over := 1 - v; over > 0 {
			loss := float64(m.first[i] * over)
			f += float64(float64(m.gamma*loss) * over)
			m.slope[i] -= float64(2 * float64(m.gamma*loss))
		}
		if over := 1 + v; over > 0 {
			loss := float64(m.second[i] * over)
			f += float64(float64(m.gamma*loss) * over)
			m.slope[i] += float64(2 * float64(m.gamma*loss))
		}
	}
	m.addProducts(m.g, m.slope)
	return f
}

// at returns the objective at w + t·step.
func (m *machine) at(t, ww, ws, ss float64) float64 {
	f := float64(0.5 * (ww + float64(t*(2*ws+float64(t*ss)))))
	for i, v := range m.value {
		if int(m.fold[i]) == m.left {
			continue
		}
		v += float64(t * m.move[i])
		low, high := max(0, 1-v), max(0, 1+v)
		f += float64(m.gamma * (float64(m.first[i]*float64(low*low)) + float64(m.second[i]*float64(high*high))))
	}
	return f
}

// search moves w along the step, whose length it halves until the objective falls enough. It reports whether there was
// such a length.
func (m *machine) search(f float64) bool {
	ww, ws, ss := num.Dot64(m.w, m.w), num.Dot64(m.w, m.step), num.Dot64(m.step, m.step)
	slope, t := num.Dot64(m.g, m.step), 1.0
	for range mostHalves {
		if m.at(t, ww, ws, ss) <= f+float64(float64(decrease*t)*slope) {
			num.AddScaled64(m.w, t, m.step)
			m.values(m.value, m.w)
			return true
		}
		t /= 2
	}
	return false
}

// solve sets step to an approximate solution of H·step = -g by conjugate gradients, where H is the second derivative.
func (m *machine) solve(size float64) {
	clear(m.step)
	for i, x := range m.g {
		m.rest[i] = -x
	}
	copy(m.way, m.rest)
	square := float64(size * size)
	for range min(mostGradients, 2*len(m.w)) {
		m.curve()
		length := square / num.Dot64(m.way, m.product)
		num.AddScaled64(m.step, length, m.way)
		num.AddScaled64(m.rest, -length, m.product)
		next := num.Dot64(m.rest, m.rest)
		if math.Sqrt(next) <= 0.01*size {
			return
		}
		share := next / square
		for i, x := range m.rest {
			m.way[i] = x + float64(share*m.way[i])
		}
		square = next
	}
}

// curve sets product to H·way.
func (m *machine) curve() {
	copy(m.product, m.way)
	m.values(m.move, m.way)
	for i, v := range m.value {
		weight := 0.0
		if int(m.fold[i]) != m.left {
			if v < 1 {
				weight = m.first[i]
			}
			if v > -1 {
				weight += m.second[i]
			}
		}
		m.slope[i] = float64(float64(2*m.gamma) * float64(weight*m.move[i]))
	}
	m.addProducts(m.product, m.slope)
}
