package rows

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/internal/num"
	"pgregory.net/rapid"
)

// generated returns a data set with a fifth of test rows.
func generated(t testing.TB, o generate.Options) *dataset.Data {
	t.Helper()
	src, err := generate.New(o)
	if err != nil {
		t.Fatal(err)
	}
	m, shards := datatest.Build(t, src)
	return datatest.Data(t, m, shards, dataset.Split{Seed: 3, TestFraction: 0.2}, nil)
}

// collect runs a round of so many units and joins what it returns.
func collect(d *dataset.Data, units int, w *Wanted) (*dataset.Rows, error) {
	r := &round.Round{Tasks: units, How: &round.Gather{}, Roles: dataset.Train}
	var parts [][]byte
	for u := range units {
		parts = append(parts, Collect(r.Task(u), d, w))
	}
	return Join(parts, d.Manifest, w)
}

func kept(t testing.TB, d *dataset.Data, units int, w *Wanted) *dataset.Rows {
	t.Helper()
	r, err := collect(d, units, w)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// storages are a dense and a sparse data set.
var storages = map[string]generate.Options{
	"dense":  {Rows: 150, Features: 5, Labels: 3, Density: 1, Seed: 1},
	"sparse": {Rows: 150, Features: 40, Labels: 3, Density: 0.1, Seed: 2},
}

// TestJoin: the training rows are there as they are stored, in the order of their numbers,
// whatever the number of units, and as one unit that sees all shards gathers them.
func TestJoin(t *testing.T) {
	for name, o := range storages {
		t.Run(name, func(t *testing.T) {
			d := generated(t, o)
			w := &Wanted{Labels: true}
			r := kept(t, d, len(d.Manifest.Shards), w)
			if r.N != 120 || r.Sparse != d.Manifest.Sparse {
				t.Fatalf("%d rows, sparse %v", r.N, r.Sparse)
			}
			at := 0
			for row := range uint32(150) {
				if d.Role(row) != dataset.Train {
					continue
				}
				if r.Row[at] != row || !sameRow(d, r, at) {
					t.Fatalf("row %d stands for row %d, or has other values", r.Row[at], row)
				}
				at++
			}
			one := round.Round{Tasks: 1, Scope: round.Whole, Roles: dataset.Train, How: &round.Reduce{}}
			for _, other := range []*dataset.Rows{kept(t, d, 1, w), Gather(one.Task(0), d, w)} {
				if !slices.Equal(dataset.EncodeShard(other, nil), dataset.EncodeShard(r, nil)) {
					t.Error("another number of units gives other rows")
				}
			}
			if bare := kept(t, d, 2, &Wanted{}); bare.Labels != 0 || bare.D != nil || !slices.Equal(bare.X, r.X) {
				t.Error("rows without labels are others")
			}
		})
	}
}

// sameRow reports whether row i of r has the features and labels of the data's row.
func sameRow(d *dataset.Data, r *dataset.Rows, i int) bool {
	for s := range d.Manifest.Shards {
		shard := d.Shard(s)
		pos := slices.Index(shard.Row, r.Row[i])
		if pos < 0 {
			continue
		}
		if !r.Sparse {
			return slices.Equal(shard.Dense(pos), r.Dense(i)) && slices.Equal(shard.Label(pos), r.Label(i))
		}
		columns, values := shard.NonZeros(pos)
		c, v := r.NonZeros(i)
		return slices.Equal(columns, c) && slices.Equal(values, v) && slices.Equal(shard.Label(pos), r.Label(i))
	}
	return false
}

// TestLandmarks: a bounded number of rows is drawn by their numbers, whatever the units; those
// of a lower bound are among them.
func TestLandmarks(t *testing.T) {
	d := generated(t, storages["dense"])
	w := &Wanted{Most: 40, Key: num.NewKey(1, "test/landmarks")}
	r := kept(t, d, len(d.Manifest.Shards), w)
	if r.N != 40 || !slices.IsSorted(r.Row) {
		t.Fatalf("%d rows %v", r.N, r.Row)
	}
	if one := kept(t, d, 1, w); !slices.Equal(one.Row, r.Row) || !slices.Equal(one.X, r.X) {
		t.Error("one unit draws other rows")
	}
	fewer := kept(t, d, 4, &Wanted{Most: 10, Key: w.Key})
	var least []uint32
	for _, i := range w.Least(r, 10) {
		least = append(least, r.Row[i])
	}
	if !slices.Equal(least, fewer.Row) {
		t.Errorf("the ten rows of least priority are %v, of all %v", least, fewer.Row)
	}
	if other := kept(t, d, 4, &Wanted{Most: 40, Key: num.NewKey(2, "test/landmarks")}); slices.Equal(other.Row, r.Row) {
		t.Error("another key draws the same rows")
	}
	if all := kept(t, d, 4, &Wanted{Most: 1000, Key: w.Key}); all.N != 120 {
		t.Errorf("%d rows of 120", all.N)
	}
}

// drawRows draws rows whose values may be zero, scaled or not.
func drawRows(t *rapid.T, n, features int) (dense, sparse *dataset.Rows) {
	dense = &dataset.Rows{N: n, Features: features, X: make([]float32, n*features), Row: make([]uint32, n)}
	sparse = &dataset.Rows{N: n, Features: features, Sparse: true, Start: []uint32{0}, Row: dense.Row}
	value := rapid.OneOf(rapid.Just(float32(0)), rapid.Float32Range(-3, 3), rapid.SampledFrom([]float32{1, 0.1, 1e20}))
	for i := range n {
		dense.Row[i] = uint32(i)
		for c := range features {
			x := value.Draw(t, "x")
			dense.X[i*features+c] = x
			if x != 0 {
				sparse.Index, sparse.X = append(sparse.Index, uint32(c)), append(sparse.X, x)
			}
		}
		sparse.Start = append(sparse.Start, uint32(len(sparse.X)))
	}
	return dense, sparse
}

// TestDistances: dense and sparse rows, of queries and kept, in any number at a time, have the
// bits of the plain sum.
func TestDistances(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, q, features := rapid.IntRange(1, 40).Draw(t, "rows"), rapid.IntRange(1, 19).Draw(t, "queries"),
			rapid.IntRange(1, 12).Draw(t, "features")
		y, ySparse := drawRows(t, n, features)
		x, xSparse := drawRows(t, q, features)
		var scale []float64
		if rapid.Bool().Draw(t, "scaled") {
			scale = rapid.SliceOfN(rapid.Float64Range(0.01, 100), features, features).Draw(t, "scale")
		}
		want := make([]float64, q*n)
		for i := range q {
			for j := range n {
				want[i*n+j] = slowDistance(x.Dense(i), y.Dense(j), scale)
			}
		}
		for _, kept := range []*dataset.Rows{y, ySparse} {
			d := NewDistances(kept, scale)
			s := d.NewScratch()
			for _, from := range []*dataset.Rows{x, xSparse} {
				refs := make([]dataset.RowRef, q)
				for i := range refs {
					refs[i].Pos = uint32(i)
				}
				got, shard := make([]float64, q*n), func(uint32) *dataset.Rows { return from }
				for at, step := 0, rapid.IntRange(1, q).Draw(t, "step"); at < q; at += step {
					to := min(q, at+step)
					d.To(got[at*n:to*n], refs[at:to], shard, s)
				}
				for i := range want {
					if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
						t.Fatalf("query %d, row %d: %v, want %v (kept sparse %v, query sparse %v)", i/n, i%n, got[i], want[i],
							kept.Sparse, from.Sparse)
					}
				}
			}
		}
	})
}

func slowDistance(x, y []float32, scale []float64) (sum float64) {
	for c := range x {
		a, b := float64(x[c]), float64(y[c])
		if scale != nil {
			a, b = float64(a*scale[c]), float64(b*scale[c])
		}
		sum += float64((a - b) * (a - b))
	}
	return sum
}

// TestDistancesDoNotAllocate and have room for each kind of row.
func TestDistancesDoNotAllocate(t *testing.T) {
	for name, o := range storages {
		data := generated(t, o)
		r := kept(t, data, 1, &Wanted{})
		d := NewDistances(r, nil)
		s, dst, refs := d.NewScratch(), make([]float64, 3*r.N), []dataset.RowRef{{Pos: 0}, {Pos: 5}, {Pos: 9}}
		shard := func(uint32) *dataset.Rows { return r }
		if n := testing.AllocsPerRun(10, func() { d.To(dst, refs, shard, s) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		if dst[0] != 0 || dst[r.N+5] != 0 || dst[1] <= 0 {
			t.Errorf("%s: a row is %v from itself, %v from another", name, dst[0], dst[1])
		}
	}
}

// TestBadParts: what a worker returned is refused with a reason, or is rows of the data set.
func TestBadParts(t *testing.T) {
	d := generated(t, storages["dense"])
	m, w := d.Manifest, &Wanted{Labels: true, Most: 30}
	r := kept(t, d, 1, w)
	encoded := func(change func(*dataset.Rows)) []byte {
		c := *r
		c.Row, c.X, c.D = slices.Clone(r.Row), slices.Clone(r.X), slices.Clone(r.D)
		change(&c)
		return dataset.EncodeShard(&c, nil)
	}
	good := encoded(func(*dataset.Rows) {})
	for name, parts := range map[string][][]byte{
		"no shard":       {[]byte("rows")},
		"cut short":      {good[:len(good)-1]},
		"no bytes":       {nil},
		"a row twice":    {good, good},
		"a row too many": {encoded(func(c *dataset.Rows) { c.Row[29] = 150 })},
		"not finite":     {encoded(func(c *dataset.Rows) { c.X[3] = float32(math.NaN()) })},
		"negative":       {encoded(func(c *dataset.Rows) { c.D[3] = -1 })},
		"no labels":      {encoded(func(c *dataset.Rows) { c.D, c.Labels = nil, 0 })},
		"features":       {encoded(func(c *dataset.Rows) { c.X, c.Features = c.X[:4*30], 4 })},
		"values":         {encoded(func(c *dataset.Rows) { c.Value = make([]float64, 30) })},
	} {
		if _, err := Join(parts, m, w); !errors.Is(err, ErrRows) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := Join([][]byte{good}, m, &Wanted{Labels: true, Most: 29}); !errors.Is(err, ErrRows) {
		t.Errorf("too many rows: error %v", err)
	}
	none := encoded(func(c *dataset.Rows) { c.N, c.Row, c.X, c.D = 0, nil, nil, nil })
	if _, err := Join([][]byte{none, none}, m, w); !errors.Is(err, algorithms.ErrNoRows) {
		t.Errorf("no rows: error %v", err)
	}
}

// state is a training state of rows alone.
type state struct {
	m *dataset.Manifest
	w *Wanted
	r *dataset.Rows
}

func (s *state) list(l *fields.List) { Field(l, &s.r, s.m, s.w) }

// model is a model of rows alone.
type model struct {
	z Sizes
	r dataset.Rows
}

func (m *model) tensors(l *learner.Tensors) {
	l.Settings(1, m.z.Numbers()...)
	Tensors(l, &m.z, &m.r)
}

// TestKept: state and tensors hold what was collected, within the estimate.
func TestKept(t *testing.T) {
	for name, o := range storages {
		for _, w := range []*Wanted{{Labels: true}, {Most: 30}} {
			d := generated(t, o)
			s := &state{d.Manifest, w, kept(t, d, 4, w)}
			want := dataset.EncodeShard(s.r, nil)
			stateBytes, modelBytes := Bytes(s.m, w)
			b, err := fields.Append(nil, 1, s.list)
			if err != nil || int64(len(b)-1) > stateBytes {
				t.Fatalf("%s: a state of %d bytes, %d are estimated, error %v", name, len(b)-1, stateBytes, err)
			}
			back := &state{m: s.m, w: w}
			if err := fields.Read(b, 1, back.list); err != nil || !slices.Equal(dataset.EncodeShard(back.r, nil), want) {
				t.Errorf("%s: other rows, error %v", name, err)
			}
			empty := &state{m: s.m, w: w}
			if b, err = fields.Append(nil, 1, empty.list); err != nil || fields.Read(b, 1, back.list) != nil || back.r != nil {
				t.Errorf("%s: rows of a state without, error %v", name, err)
			}
			m := &model{SizesOf(s.r), *s.r}
			tensors, size := learner.ListTensors(m.tensors), int64(0)
			for _, x := range tensors[1:] {
				size += int64(4*len(x.F32) + 4*len(x.U32))
			}
			again := new(model)
			if err := learner.ReadTensors(tensors, again.tensors); err != nil ||
				!slices.Equal(dataset.EncodeShard(&again.r, nil), want) || size > modelBytes {
				t.Errorf("%s: a model of %d bytes, %d are estimated, error %v", name, size, modelBytes, err)
			}
			s.r.Row[0] = s.r.Row[1]
			if err := learner.ReadTensors(tensors, again.tensors); !errors.Is(err, ErrRows) {
				t.Errorf("%s: a row twice: error %v", name, err)
			}
			b, _ = fields.Append(nil, 1, s.list)
			if err := fields.Read(b, 1, back.list); !errors.Is(err, fields.ErrState) {
				t.Errorf("%s: a row twice: error %v", name, err)
			}
		}
	}
}

func TestGaussian(t *testing.T) {
	v := []float64{0, 2}
	if Gaussian(v, 4); v[0] != 1 || math.Abs(v[1]-math.Exp(-0.5)) > 1e-15 {
		t.Errorf("%v", v)
	}
}

// FuzzRows: no bytes of a worker make Join panic or take memory out of proportion; what it
// returns is written to a state and read again.
func FuzzRows(f *testing.F) {
	for _, o := range storages {
		d := generated(f, o)
		r := &round.Round{Tasks: 2, How: &round.Gather{}, Roles: dataset.Train}
		for _, w := range []*Wanted{{Labels: true}, {Most: 5}} {
			f.Add(Collect(r.Task(0), d, w), Collect(r.Task(1), d, w), d.Manifest.Sparse, w.Labels, uint8(w.Most))
		}
	}
	f.Add([]byte{}, []byte("COPSHARD"), true, false, uint8(0))
	f.Fuzz(func(t *testing.T, a, b []byte, sparse, labels bool, most uint8) {
		m := &dataset.Manifest{Rows: 150, Features: 5, Labels: 3, Sparse: sparse}
		if sparse {
			m.Features = 40
		}
		w := &Wanted{Labels: labels, Most: int(most)}
		var r *dataset.Rows
		var err error
		size := len(a) + len(b)
		allocs.AtMost(t, 16*size+64<<10, "collected rows", func() { r, err = Join([][]byte{a, b}, m, w) })
		if err != nil {
			if !errors.Is(err, ErrRows) && !errors.Is(err, algorithms.ErrNoRows) {
				t.Fatalf("error %v", err)
			}
			return
		}
		s := &state{m, w, r}
		written, err := fields.Append(nil, 1, s.list)
		if err != nil {
			t.Fatal(err)
		}
		back := &state{m: m, w: w}
		if err := fields.Read(written, 1, back.list); err != nil {
			t.Fatal(err)
		}
		NewDistances(r, nil)
	})
}
