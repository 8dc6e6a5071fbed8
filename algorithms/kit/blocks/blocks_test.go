package blocks

import (
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/internal/num"
)

// TestProducts: over the blocks of all rows, dense ones of more features than are multiplied at once and
// sparse ones, both products are the sums that their comments tell.
func TestProducts(t *testing.T) {
	for _, o := range []generate.Options{
		{Rows: 300, Features: 7, Labels: 2, Density: 1, Seed: 1},
		{Rows: 70, Features: maxFeatures + 5, Labels: 2, Density: 1, Seed: 2},
		{Rows: 200, Features: 40, Labels: 2, Density: 0.1, Seed: 3},
	} {
		src, err := generate.New(o)
		if err != nil {
			t.Fatal(err)
		}
		m, shards := datatest.Build(t, src)
		d := datatest.Data(t, m, shards, dataset.Split{Seed: 5, TestFraction: 0.2}, nil)
		for _, n := range []int{1, 5, 6} {
			compare(t, d, n)
		}
	}
}

func compare(t *testing.T, d *dataset.Data, n int) {
	t.Helper()
	features, refs := d.Manifest.Features, d.Select(0, len(d.Manifest.Shards), dataset.Train)
	stream := num.NewStream(num.NewKey(1, "test"), 0, 0)
	matrix, sums, want := make([]float64, features*n), make([]float64, features*n), make([]float64, features*n)
	for i := range matrix {
		matrix[i] = stream.Normal()
	}
	var s Space
	count := 0
	for len(refs) > 0 {
		b := Next(refs, func(i uint32) *dataset.Rows { return d.Shard(int(i)) })
		refs, count = refs[len(b.Refs):], count+1
		products, x := make([]float64, len(b.Refs)*n), make([]float64, len(b.Refs)*n)
		for i := range x {
			products[i], x[i] = 1, stream.Normal()
		}
		s.AddProduct(products, &b, matrix, n)
		s.AddProductT(sums, &b, x, n)
		for i, ref := range b.Refs {
			row := plain(b.Rows, int(ref.Pos))
			for j := range n {
				p := 1.0
				for k, v := range row {
					p += v * matrix[k*n+j]
					want[k*n+j] += v * x[i*n+j]
				}
				if got := products[i*n+j]; math.Abs(got-p) > 1e-11 {
					t.Fatalf("%d features, row %d: value %d of the product is %v, want %v", features, i, j, got, p)
				}
			}
			if !slices.Equal(b.Label(i), b.Rows.Label(int(ref.Pos))) || ref.Shard != b.Refs[0].Shard {
				t.Fatalf("row %d of a block has another label or shard", i)
			}
		}
	}
	for i := range want {
		if math.Abs(sums[i]-want[i]) > 1e-11 {
			t.Fatalf("%d features: value %d of the transposed product is %v, want %v", features, i, sums[i], want[i])
		}
	}
	if count < 2 {
		t.Errorf("%d blocks", count)
	}
}

// plain returns a row with its zeros.
func plain(rows *dataset.Rows, pos int) []float64 {
	x := make([]float64, rows.Features)
	if rows.Sparse {
		columns, values := rows.NonZeros(pos)
		for i, column := range columns {
			x[column] = float64(values[i])
		}
		return x
	}
	for k, v := range rows.Dense(pos) {
		x[k] = float64(v)
	}
	return x
}
