package ptsvm

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/internal/num"
)

// data builds generated samples, all of them training samples.
func data(t *testing.T, density float64) *dataset.Data {
	t.Helper()
	src, err := generate.New(generate.Options{Rows: 120, Features: 15, Labels: 3, Density: density, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	m, shards, err := importer.Build(src, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := dataset.NewData(m, make([]dataset.Roles, m.Rows))
	for i, rows := range shards {
		d.SetShard(i, rows)
	}
	return d
}

// readAll reads all samples of data, with a scaling of the features.
func readAll(d *dataset.Data) *samples {
	v := make([]float64, 2*d.Manifest.Features)
	for k := range d.Manifest.Features {
		v[k], v[d.Manifest.Features+k] = 0.1*float64(k%3), 1+0.2*float64(k%4)
	}
	var refs []dataset.RowRef
	for shard := range d.Manifest.Shards {
		for pos := range d.Shard(shard).N {
			refs = append(refs, dataset.RowRef{Shard: uint32(shard), Pos: uint32(pos)})
		}
	}
	s := newSamples(refs, d, scaling.Of(v), num.NewKey(1, "test"))
	s.pair(0, 2)
	return s
}

// plain returns the objective by plain sums over the scaled features, without the samples of a fold.
func plain(s *samples, w []float64, gamma float64, left int) float64 {
	sum := 0.0
	for _, x := range w {
		sum += x * x / 2
	}
	for i, rows := range s.rows {
		if int(s.fold[i]) == left {
			continue
		}
		row := make([]float64, s.features)
		if rows.Sparse {
			columns, values := rows.NonZeros(s.at[i])
			for j, c := range columns {
				row[c] = float64(values[j])
			}
		} else {
			for k, x := range rows.Dense(s.at[i]) {
				row[k] = float64(x)
			}
		}
		value := w[s.features]
		for k, x := range row {
			value += w[k] * (x - s.scale.Shift[k]) * s.scale.Scale[k]
		}
		low, high := math.Max(0, 1-value), math.Max(0, 1+value)
		sum += gamma * (s.first[i]*low*low + s.second[i]*high*high)
	}
	return sum
}

// TestMachine: where a machine ends, central differences of the plain objective are next to 0, which is its only
// minimum; the values are those of the weights, and the effective weights read the features as they are.
func TestMachine(t *testing.T) {
	for _, density := range []float64{1, 0.1} {
		s := readAll(data(t, density))
		if (s.dense == nil) != (density < 1) {
			t.Fatal("the samples of small density are not sparse")
		}
		m := newMachine(s)
		for _, gamma := range []float64{0.01, 1, 100} {
			for _, left := range []int{1, folds} {
				if err := m.fit(t.Context(), gamma, left); err != nil {
					t.Fatal(err)
				}
				zero := make([]float64, len(m.w))
				slope := func(w []float64, k int) float64 {
					const h = 1e-6
					at := w[k]
					w[k] = at + h
					up := plain(s, w, gamma, left)
					w[k] = at - h
					down := plain(s, w, gamma, left)
					w[k] = at
					return (up - down) / (2 * h)
				}
				first := 0.0
				for k := range zero {
					first = math.Max(first, math.Abs(slope(zero, k)))
				}
				for k := range m.w {
					if g := slope(m.w, k); math.Abs(g) > 3e-5*first {
						t.Errorf("density %v, gamma %v, fold %d: derivative %d is %v, at the start up to %v", density, gamma, left, k,
							g, first)
					}
				}
			}
		}
	}
}

// TestSigmoid: the fit is the minimum of the cross-entropy with Platt's targets.
func TestSigmoid(t *testing.T) {
	f := []float64{-2, -1.5, -1, -0.2, 0.1, 0.4, 0.9, 1.4, 3}
	first := []float64{0.1, 0.2, 0.1, 0.5, 0.4, 0.6, 0.8, 0.5, 0.9}
	second := []float64{0.8, 0.7, 0.9, 0.4, 0.4, 0.4, 0.1, 0.5, 0.05}
	up, down := 0.0, 0.0
	for i := range f {
		up, down = up+first[i], down+second[i]
	}
	loss := func(a, b float64) (sum float64) {
		for i, x := range f {
			q := 1 / (1 + math.Exp(a*x+b))
			high, low := (up+1)/(up+2), 1/(down+2)
			sum -= first[i]*(high*math.Log(q)+(1-high)*math.Log(1-q)) + second[i]*(low*math.Log(q)+(1-low)*math.Log(1-q))
		}
		return sum
	}
	a, b := sigmoid(f, first, second)
	if a >= 0 {
		t.Errorf("A is %v: greater values are less probable", a)
	}
	const h = 1e-5
	ga, gb := (loss(a+h, b)-loss(a-h, b))/(2*h), (loss(a, b+h)-loss(a, b-h))/(2*h)
	if math.Abs(ga) > 1e-8 || math.Abs(gb) > 1e-8 {
		t.Errorf("at A %v and B %v the derivatives are %v and %v", a, b, ga, gb)
	}
}

// TestCouple: the distribution of three labels with the probabilities .7, .6 and .2 is that of NumPy, which solves the
// system of Wu, Lin and Weng with the condition as a further equation.
func TestCouple(t *testing.T) {
	s := newSpace(3)
	copy(s.scores, []float64{0.7, 0.6, 0.2})
	for c, want := range []float64{0.48989899, 0.14646465, 0.36363636} {
		if got := s.couple()[c]; math.Abs(got-want) > 1e-8 {
			t.Errorf("probability %d is %.10f, want %.10f", c, got, want)
		}
		copy(s.scores, []float64{0.7, 0.6, 0.2})
	}
}
