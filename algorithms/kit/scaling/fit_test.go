package scaling

import (
	"bytes"
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// table is a small dense matrix of features, row-major.
type table struct {
	rows, features int
	x              []float32
}

// drawTable has a column far from zero, a constant one, a zero one, one without zeros, and two
// that are 0 in two of five rows.
func drawTable() *table {
	t := &table{130, 6, make([]float32, 130*6)}
	s := num.NewStream(num.NewKey(3, "test"), 0, 0)
	for i := range t.x {
		if s.Float64() < 0.6 {
			t.x[i] = float32(s.Normal() + 0.5)
		}
	}
	for i := range t.rows {
		x := t.x[i*t.features:]
		x[0] += 10000
		x[1] = 0.1
		x[2] = 0
		x[3] = x[3]*x[3] + 1
	}
	return t
}

// data cuts the table into shards; a fifth of the rows are test rows, a fifth of the rest
// validation rows.
func (t *table) data(shards int, sparse bool) *dataset.Data {
	split := dataset.Split{Seed: 3, TestFraction: 0.2, ValidationFraction: 0.2}
	roles, err := split.Assign(t.rows, nil)
	if err != nil {
		panic(err)
	}
	d := dataset.NewData(&dataset.Manifest{Rows: t.rows, Features: t.features, Sparse: sparse,
		Shards: make([]dataset.ShardRef, shards)}, roles)
	for i := range shards {
		from, to := dataset.ShardSpan(i, shards, t.rows)
		d.SetShard(i, t.shard(from, to, sparse))
	}
	return d
}

func (t *table) shard(from, to int, sparse bool) *dataset.Rows {
	r := &dataset.Rows{N: to - from, Features: t.features, Sparse: sparse, Start: []uint32{0}}
	for i := from; i < to; i++ {
		r.Row = append(r.Row, uint32(i))
		for j, v := range t.x[i*t.features : (i+1)*t.features] {
			if !sparse || v != 0 {
				r.X, r.Index = append(r.X, v), append(r.Index, uint32(j))
			}
		}
		r.Start = append(r.Start, uint32(len(r.X)))
	}
	return r
}

// column lists the values of a column in rows of some roles.
func (t *table) column(d *dataset.Data, i int, roles dataset.Roles) (v []float64) {
	for row := range t.rows {
		if d.Role(uint32(row))&roles != 0 {
			v = append(v, float64(t.x[row*t.features+i]))
		}
	}
	return v
}

// kernel runs the rounds of Fit alone.
type kernel struct{}

func (kernel) NewScratch() any { return new(Scratch) }

func (kernel) Derive(round.Task, *dataset.Data, round.Vars, any) (round.Derived, error) {
	return nil, nil
}

func (kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, _ round.Derived, s any) error {
	if !Run(dst, &u, d, v, s.(*Scratch)) {
		panic("a round of another's")
	}
	return nil
}

// fit runs f to its end on rows of some roles, with a state that is cut after every round.
func fit(t *testing.T, f *Fit, d *dataset.Data, roles dataset.Roles) *Fit {
	t.Helper()
	x := engine.NewLocal(kernel{}, d, 2, nil)
	var res round.Result
	for f.Begin(); !f.Done(); {
		r := round.Round{Roles: roles, How: &round.Reduce{}}
		f.Next(&r)
		if err := x.Do(t.Context(), 1, &r, &res); err != nil {
			t.Fatal(err)
		}
		if err := f.Fold(res.Sum.F64); err != nil {
			t.Fatal(err)
		}
		f = again(t, f, d.Manifest)
	}
	return f
}

// again returns the fit that f's state is the state of.
func again(t *testing.T, f *Fit, m *dataset.Manifest) *Fit {
	t.Helper()
	state, err := fields.Append(nil, 1, f.State)
	if err != nil {
		t.Fatal(err)
	}
	g := NewFit(f.kind, m)
	if err := fields.Read(state, 1, g.State); err != nil {
		t.Fatal(err)
	}
	if second, err := fields.Append(nil, 1, g.State); err != nil || !bytes.Equal(state, second) {
		t.Fatalf("a state is written again as another, error %v", err)
	}
	return g
}

// checkValues holds shifts and scales against those of the columns.
func checkValues(t *testing.T, f *Fit, p *table, d *dataset.Data, roles dataset.Roles,
	want func(v []float64) (shift, scale float64), tolerance float64) {
	t.Helper()
	x := f.Values()
	for i := range p.features {
		shift, scale := want(p.column(d, i, roles))
		if !(math.Abs(x.Shift[i]-shift) <= tolerance*math.Abs(shift)) || !(math.Abs(x.Scale[i]/scale-1) <= tolerance) {
			t.Errorf("sparse %v, column %d: shift %v and scale %v, want %v and %v", d.Manifest.Sparse, i, x.Shift[i], x.Scale[i],
				shift, scale)
		}
	}
}

func standard(v []float64) (shift, scale float64) {
	for _, x := range v {
		shift += x / float64(len(v))
	}
	for _, x := range v {
		scale += (x - shift) * (x - shift) / float64(len(v))
	}
	if scale < 1e-15*shift*shift || scale == 0 {
		return shift, 1
	}
	return shift, 1 / math.Sqrt(scale)
}

func minmax(v []float64) (shift, scale float64) {
	least, greatest := math.Inf(1), math.Inf(-1)
	for _, x := range v {
		least, greatest = min(least, x), max(greatest, x)
	}
	if greatest > least {
		return least, 1 / (greatest - least)
	}
	return least, 1
}

// TestValues: the shifts and scales are those of the rows trained on, dense or sparse, and of
// the validation rows too once the fit begins again for a refit.
func TestValues(t *testing.T) {
	p := drawTable()
	for _, shards := range []int{1, 4, 64} { // 64: some units have no training rows
		for _, sparse := range []bool{false, true} {
			d := p.data(shards, sparse)
			for _, kind := range Kinds[1:] {
				want, tolerance := standard, 1e-11
				if kind == MinMax {
					want, tolerance = minmax, 0
				}
				f := fit(t, NewFit(kind, d.Manifest), d, dataset.Train)
				checkValues(t, f, p, d, dataset.Train, want, tolerance)
				f = fit(t, f, d, dataset.Train|dataset.Validation)
				checkValues(t, f, p, d, dataset.Train|dataset.Validation, want, tolerance)
				if vars := f.AppendVar(nil); len(vars) != 1 || vars[0].Version != 2 || Find(vars).Scale[0] != f.Values().Scale[0] {
					t.Errorf("%s: the variables after a refit are %v", kind, vars)
				}
			}
		}
	}
}

// TestNone has no rounds, no variable, no state and no tensors, and maps nothing.
func TestNone(t *testing.T) {
	m := &dataset.Manifest{Features: 3, Shards: make([]dataset.ShardRef, 2)}
	f := NewFit(None, m)
	f.Begin()
	x := f.Values()
	if !f.Done() || !x.None() || f.AppendVar(nil) != nil || tensorsOf(x, None) != nil ||
		again(t, f, m).AppendVar(nil) != nil {
		t.Error("without scaling there is some")
	}
	if x := Find(nil); !x.None() {
		t.Error("a round without scaling has values")
	}
}

func tensorsOf(x Values, kind string) []algorithms.Tensor {
	return learner.ListTensors(func(l *learner.Tensors) { x.Tensors(l, kind, 3) })
}

// TestApplied: a dense row becomes (x - shift)·scale; a sparse one's non-zeros lack the part
// that all rows share.
func TestApplied(t *testing.T) {
	x := Of([]float64{1, -2, 1e6, 2, 0.5, 3})
	dst := make([]float32, 3)
	if x.Dense(dst, []float32{2, 0, 1e6 + 1}); dst[0] != 2 || dst[1] != 1 || dst[2] != 3 {
		t.Errorf("a dense row becomes %v", dst)
	}
	if x.NonZeros(dst[:2], []float32{2, 7}, []uint32{0, 2}); dst[0] != 4 || dst[1] != 21 {
		t.Errorf("non-zeros become %v", dst[:2])
	}
	tensors := tensorsOf(x, Standard)
	if len(tensors) != 2 || tensors[0].F64[2] != 1e6 || tensors[1].F64[2] != 3 || tensors[1].Dims[0] != 3 {
		t.Errorf("the tensors are %v", tensors)
	}
}

// TestManyColumns: a minmax fit of many columns takes several rounds of bounded size.
func TestManyColumns(t *testing.T) {
	m := &dataset.Manifest{Rows: 100, Features: 50_000, Shards: make([]dataset.ShardRef, 64)}
	f := NewFit(MinMax, m)
	columns := 0
	for f.Begin(); !f.Done(); {
		var r round.Round
		f.Next(&r)
		if r.Reduce().Shape.F64 > slotLimit+len(m.Shards) {
			t.Fatalf("a partial of %d values", r.Reduce().Shape.F64)
		}
		from, to := f.chunk()
		if from != columns {
			t.Fatalf("the round begins at column %d, want %d", from, columns)
		}
		columns = to
		sum := make([]float64, r.Reduce().Shape.F64)
		sum[0] = 1
		if err := f.Fold(sum); err != nil {
			t.Fatal(err)
		}
	}
	if columns != m.Features {
		t.Errorf("%d columns of %d were seen", columns, m.Features)
	}
}

// TestRefusals: no rows are an error, and so are states that no fit is in.
func TestRefusals(t *testing.T) {
	m := &dataset.Manifest{Features: 3, Shards: make([]dataset.ShardRef, 2)}
	for _, kind := range Kinds[1:] {
		f := NewFit(kind, m)
		f.Begin()
		var r round.Round
		f.Next(&r)
		if err := f.Fold(make([]float64, r.Reduce().Shape.F64)); err != algorithms.ErrNoRows {
			t.Errorf("%s: no samples give error %v", kind, err)
		}
		state, err := fields.Append(nil, 1, f.State)
		if err != nil {
			t.Fatal(err)
		}
		for name, bend := range map[string]func(b []byte){
			"stage":        func(b []byte) { b[1] = stages },
			"another kind": func(b []byte) { b[1] = map[string]uint8{Standard: stageExtremes, MinMax: stageSquares}[kind] },
			"column":       func(b []byte) { b[2] = 4 },
		} {
			bent := bytes.Clone(state)
			bend(bent)
			if err := fields.Read(bent, 1, NewFit(kind, m).State); err == nil {
				t.Errorf("%s: a wrong %s is read", kind, name)
			}
		}
	}
}
