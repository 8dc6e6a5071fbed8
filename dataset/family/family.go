// Package family generates datasets to compare the defaults of algorithms.
package family

import (
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Kinds lists the kinds of datasets.
func Kinds() []string {
	return []string{"smooth", "leaves", "interactions", "sparse", "noisy", "ordered"}
}

// The sizes of the family. The dataset sparse has about the shape of Movie.
const (
	denseFeatures, denseLabels   = 50, 10
	sparseFeatures, sparseLabels = 2000, 5
	sparsePerRow                 = 22
	orderedLabels                = 20

	trees         = 3
	treeDepth     = 5
	pairs         = 20
	concentration = 10 // α0 of the Dirichlet distribution
	influences    = 6  // features that decide the number of ordered
)

// New returns n rows of a kind of dataset. Each kind suits another model. In all kinds but sparse, x is 50 standard
// normal features, rounded to float32. W is normal with standard deviation .5.
//
//	smooth        10 labels, d = softmax(tanh(x) W)
//	leaves        10 labels, d = the mean of three trees with 2^5 leaves of random distributions; a split compares a
//	              feature with a threshold from N(0, .5²)
//	interactions  10 labels, d = softmax(z V), z has the products of 20 pairs of features, and V is as W
//	sparse        5 labels, d = softmax(x W), of 2,000 features; each row has 22 equal to 1; feature j is drawn with a
//	              density in proportion to 1/sqrt(j)
//	noisy         10 labels, d ~ Dirichlet(10 p) with p = softmax(tanh(x) W)
//	ordered       20 labels on a scale, d = N(μ, σ²) at 0 to 19 with μ = 9.5 + 9 tanh(y), y linear in six features, and
//	              σ from 1 to 3 by another one
//
// A row depends on kind, seed and its number only. An unknown kind is an error.
func New(kind string, n int, seed uint64) (dataset.Source, error) {
	f := &source{
		info: dataset.Info{Rows: n, Features: denseFeatures, Labels: denseLabels},
		key:  num.NewKey(seed, "dataset/family/"+kind),
	}
	switch kind {
	case "smooth", "noisy":
		f.weights, f.noisy = f.normals(denseFeatures*denseLabels, 0.5), kind == "noisy"
		f.label = f.smooth
	case "leaves":
		f.plant()
		f.label = f.leaves
	case "interactions":
		f.weights = f.normals(pairs*denseLabels, 0.5)
		s := f.stream(1)
		for range pairs {
			a := int(s.Uint64n(denseFeatures))
			b := (a + 1 + int(s.Uint64n(denseFeatures-1))) % denseFeatures
			f.pairs = append(f.pairs, [2]int{a, b})
		}
		f.label = f.interactions
	case "sparse":
		f.info.Features, f.info.Labels = sparseFeatures, sparseLabels
		f.weights = f.normals(sparseFeatures*sparseLabels, 0.5)
	case "ordered":
		f.info.Labels = orderedLabels
		f.weights = f.normals(influences, 1/math.Sqrt(influences))
		f.label = f.ordered
	default:
		return nil, fmt.Errorf("kind %q: want one of %v", kind, Kinds())
	}
	if n < 1 || n > dataset.MaxRows {
		return nil, fmt.Errorf("%d samples: want a number from 1 to %d", n, dataset.MaxRows)
	}
	return f, nil
}

type source struct {
	info    dataset.Info
	key     num.Key
	noisy   bool
	label   func(dst, x []float64, s *num.Stream) // nil: sparse
	weights []float64                             // of features, or of pairs, by labels
	pairs   [][2]int
	trees   [trees]tree
}

// tree is a complete tree: node i has the children 2i+1 and 2i+2.
type tree struct {
	feature   [1<<treeDepth - 1]int
	threshold [1<<treeDepth - 1]float64
	leaves    [1 << treeDepth][]float64
}

// modelStream is the unit of the stream that draws the model; units of rows are 0.
const modelStream = 1

func (f *source) stream(step uint64) *num.Stream { return num.NewStream(f.key, step, modelStream) }

func (f *source) normals(n int, deviation float64) []float64 {
	s, list := f.stream(0), make([]float64, n)
	for i := range list {
		list[i] = float64(deviation * s.Normal())
	}
	return list
}

func (f *source) plant() {
	s := f.stream(0)
	for i := range f.trees {
		t := &f.trees[i]
		for node := range t.feature {
			t.feature[node], t.threshold[node] = int(s.Uint64n(denseFeatures)), float64(0.5*s.Normal())
		}
		for leaf := range t.leaves {
			d := make([]float64, denseLabels)
			for k := range d {
				d[k] = float64(1.5 * s.Normal())
			}
			softmax(d)
			t.leaves[leaf] = d
		}
	}
}

// Info implements Source.
func (f *source) Info() dataset.Info { return f.info }

// Scan implements Source.
func (f *source) Scan(do func(*dataset.Row) error) error {
	row := dataset.Row{Values: make([]float64, f.info.Features), Labels: make([]float64, f.info.Labels)}
	if f.label == nil {
		row.Values, row.Sparse = slices.Repeat([]float64{1}, sparsePerRow), true
	}
	for i := range f.info.Rows {
		row.Number = i
		s := num.NewStream(f.key, uint64(i), 0)
		if f.label == nil {
			f.sparse(&row, s)
		} else {
			for j := range row.Values {
				row.Values[j] = float64(float32(s.Normal()))
			}
			f.label(row.Labels, row.Values, s)
		}
		if err := do(&row); err != nil {
			return err
		}
	}
	return nil
}

func (f *source) smooth(dst, x []float64, s *num.Stream) {
	clear(dst)
	for j, v := range x {
		t := tanh(v)
		for k, w := range f.weights[j*len(dst):][:len(dst)] {
			dst[k] += float64(t * w)
		}
	}
	softmax(dst)
	if f.noisy {
		dirichlet(dst, s)
	}
}

func (f *source) leaves(dst, x []float64, _ *num.Stream) {
	clear(dst)
	for i := range f.trees {
		t, node := &f.trees[i], 0
		for node < len(t.feature) {
			if node = 2*node + 1; x[t.feature[(node-1)/2]] > t.threshold[(node-1)/2] {
				node++
			}
		}
		for k, p := range t.leaves[node-len(t.feature)] {
			dst[k] += p / trees
		}
	}
}

func (f *source) interactions(dst, x []float64, _ *num.Stream) {
	clear(dst)
	for i, p := range f.pairs {
		z := float64(x[p[0]] * x[p[1]])
		for k, w := range f.weights[i*len(dst):][:len(dst)] {
			dst[k] += float64(z * w)
		}
	}
	softmax(dst)
}

func (f *source) ordered(dst, x []float64, _ *num.Stream) {
	y := 0.0
	for j, w := range f.weights {
		y += float64(w * x[j])
	}
	middle := float64(orderedLabels-1) / 2
	mean := middle + float64((middle-0.5)*tanh(y))
	deviation := 2 + tanh(x[influences])
	for k := range dst {
		z := (float64(k) - mean) / deviation
		dst[k] = float64(-z*z) / 2
	}
	softmax(dst)
}

// sparse draws a row: its columns are the squares of uniform numbers, so that the first columns are frequent.
func (f *source) sparse(row *dataset.Row, s *num.Stream) {
	columns := row.Columns[:0]
	for len(columns) < sparsePerRow {
		u := s.Float64()
		column := uint32(float64(sparseFeatures) * float64(u*u))
		if at, has := slices.BinarySearch(columns, column); !has {
			columns = slices.Insert(columns, at, column)
		}
	}
	row.Columns = columns
	clear(row.Labels)
	for _, j := range columns {
		for k, w := range f.weights[int(j)*len(row.Labels):][:len(row.Labels)] {
			row.Labels[k] += w
		}
	}
	softmax(row.Labels)
}

// softmax replaces scores by their softmax.
func softmax(x []float64) {
	most, sum := slices.Max(x), 0.0
	for k, v := range x {
		x[k] = num.Exp(v - most)
		sum += x[k]
	}
	for k := range x {
		x[k] /= sum
	}
}

func tanh(x float64) float64 { return 1 - 2/(num.Exp(2*x)+1) }

// dirichlet replaces a distribution p by a draw from Dirichlet(concentration·p).
func dirichlet(p []float64, s *num.Stream) {
	sum := 0.0
	for k, v := range p {
		p[k] = gamma(float64(concentration*v), s)
		sum += p[k]
	}
	if sum == 0 { // all underflowed
		p[0], sum = 1, 1
	}
	for k := range p {
		p[k] /= sum
	}
}

// gamma draws from the gamma distribution of a shape above 0 and scale 1 (Marsaglia and Tsang 2000, "A Simple Method
// for Generating Gamma Variables", with the boost of their section 6 for shapes below 1).
func gamma(shape float64, s *num.Stream) float64 {
	boost := 1.0
	if shape < 1 {
		boost = num.Exp(num.Log(1-s.Float64()) / shape)
		shape++
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := s.Normal()
		v := 1 + float64(c*x)
		if v <= 0 {
			continue
		}
		v = float64(float64(v*v) * v)
		if u := 1 - s.Float64(); num.Log(u) < float64(float64(0.5*x)*x)+float64(d*(1-v+num.Log(v))) {
			return float64(float64(d*v) * boost)
		}
	}
}
