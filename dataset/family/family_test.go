package family

import (
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/internal/num"
)

// TestDigests pins the rows. A longer dataset begins with a shorter one, and seeds differ.
func TestDigests(t *testing.T) {
	want := map[string]string{
		"smooth":       "f5d95f536acf32c3483ef44d84264a99ce3a1a2e6b94e01b1672a2e83bfcf504",
		"leaves":       "e222766d4fa550fd57fab6b904b38877a74262a879647c2c3c994df568b45d48",
		"interactions": "b0800af87864eeaaa078248a3fca4b53eb82a000330204c7cdb5bf7d2c9ae2e7",
		"sparse":       "26c31f7007201f5293342c692b0f153c04222ac908bb3bfb1c9a2a39c25f9f78",
		"noisy":        "8d9ed9df17c5ae47fc805cdde66b361dcf19c5a0e7b18edd00905df687335ec5",
		"ordered":      "76fee7e9910ee6961cd543c97fda7800b3bf0bd3e1d51457579901c3d19f2fff",
	}
	for _, kind := range Kinds() {
		digest := func(n int, seed uint64) string {
			src, err := New(kind, n, seed)
			if err != nil {
				t.Fatal(err)
			}
			m, _, err := importer.Build(src, importer.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return m.Digest()
		}
		one := digest(300, 1)
		if one != want[kind] {
			t.Errorf("%q: %q,", kind, one)
		}
		if digest(300, 2) == one {
			t.Errorf("%s: two seeds give one dataset", kind)
		}
		_, long := rowsOf(t, kind, 40)
		_, short := rowsOf(t, kind, 20)
		for i := range short {
			if !slices.Equal(long[i].Values, short[i].Values) || !slices.Equal(long[i].Labels, short[i].Labels) ||
				!slices.Equal(long[i].Columns, short[i].Columns) {
				t.Errorf("%s: row %d depends on the number of rows", kind, i)
			}
		}
	}
	if _, err := New("rough", 10, 1); err == nil {
		t.Error("an unknown kind was accepted")
	}
	if _, err := New("smooth", 0, 1); err == nil {
		t.Error("0 samples were accepted")
	}
}

func rowsOf(t *testing.T, kind string, n int) (*source, []dataset.Row) {
	t.Helper()
	src, err := New(kind, n, 1)
	if err != nil {
		t.Fatal(err)
	}
	var rows []dataset.Row
	err = src.Scan(func(r *dataset.Row) error {
		rows = append(rows, dataset.Row{
			Number: r.Number, Sparse: r.Sparse,
			Columns: slices.Clone(r.Columns), Values: slices.Clone(r.Values), Labels: slices.Clone(r.Labels),
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return src.(*source), rows
}

// truth returns the distribution of a row by the formulas of New.
func (f *source) truth(kind string, r *dataset.Row) []float64 {
	exp := func(scores []float64) []float64 {
		sum := 0.0
		for k, v := range scores {
			scores[k] = math.Exp(v)
			sum += scores[k]
		}
		for k := range scores {
			scores[k] /= sum
		}
		return scores
	}
	product := func(z []float64, weights []float64, labels int) []float64 {
		scores := make([]float64, labels)
		for j, v := range z {
			for k := range scores {
				scores[k] += v * weights[j*labels+k]
			}
		}
		return scores
	}
	z := make([]float64, f.info.Features)
	p := make([]float64, f.info.Labels)
	switch kind {
	case "smooth", "noisy":
		for j, x := range r.Values {
			z[j] = math.Tanh(x)
		}
		p = exp(product(z, f.weights, len(p)))
	case "interactions":
		z = z[:0]
		for _, q := range f.pairs {
			z = append(z, r.Values[q[0]]*r.Values[q[1]])
		}
		p = exp(product(z, f.weights, len(p)))
	case "sparse":
		for _, j := range r.Columns {
			z[j] = 1
		}
		p = exp(product(z, f.weights, len(p)))
	case "leaves":
		for i := range f.trees {
			tree, node := &f.trees[i], 0
			for range treeDepth {
				side := 1
				if r.Values[tree.feature[node]] > tree.threshold[node] {
					side = 2
				}
				node = 2*node + side
			}
			for k, v := range tree.leaves[node-31] {
				p[k] += v / 3
			}
		}
	case "ordered":
		y := product(r.Values[:influences], f.weights, 1)[0]
		mu, sigma := 9.5+9*math.Tanh(y), 2+math.Tanh(r.Values[influences])
		for k := range p {
			p[k] = -(float64(k) - mu) * (float64(k) - mu) / (2 * sigma * sigma)
		}
		exp(p)
	}
	return p
}

// TestLabels computes the labels from the features. The labels of noisy have the mean and the variance of their
// Dirichlet distribution.
func TestLabels(t *testing.T) {
	for _, kind := range Kinds() {
		f, rows := rowsOf(t, kind, 4000)
		variance, expected := 0.0, 0.0
		mean := make([]float64, f.info.Labels) // of d - p
		for _, r := range rows {
			p := f.truth(kind, &r)
			for k, d := range r.Labels {
				mean[k] += (d - p[k]) / 4000
				variance += (d - p[k]) * (d - p[k])
				expected += p[k] * (1 - p[k]) / (concentration + 1)
				if kind != "noisy" && math.Abs(d-p[k]) > 1e-12 {
					t.Fatalf("%s, row %d: labels %v, want %v", kind, r.Number, r.Labels, p)
				}
			}
		}
		if kind != "noisy" {
			continue
		}
		if math.Abs(variance/expected-1) > 0.05 || slices.Max(mean) > 0.01 || slices.Min(mean) < -0.01 {
			t.Errorf("noisy: variance %v, want %v; differences from the mean %v", variance, expected, mean)
		}
	}
}

// TestGamma holds the mean and the variance of the draws against the shape.
func TestGamma(t *testing.T) {
	for _, shape := range []float64{0.03, 0.5, 1, 2.5, 40} {
		const n = 40_000
		s := num.NewStream(num.NewKey(1, "test/gamma"), 0, 0)
		sum, square := 0.0, 0.0
		for range n {
			x := gamma(shape, s)
			sum += x / n
			square += x * x / n
		}
		if d := math.Sqrt(shape / n); math.Abs(sum-shape) > 5*d {
			t.Errorf("shape %v: mean %v", shape, sum)
		}
		if variance := square - sum*sum; math.Abs(variance/shape-1) > 0.15 {
			t.Errorf("shape %v: variance %v", shape, variance)
		}
	}
}
