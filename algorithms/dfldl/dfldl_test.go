package dfldl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"pgregory.net/rapid"
)

// cases are small jobs.
var cases = []contract.Case{
	{Name: "paper", Set: param.Values{"preset": "paper", "iterations": int64(9)}},
	{Name: "auto", Set: param.Values{"iterations": int64(30), "validation_interval": int64(4), "patience": int64(2)}},
	{Name: "fixed", Set: param.Values{"decay": "fixed", "iterations": int64(9), "validation_interval": int64(3),
		"refit": false, "k": int64(3)}},
	{Name: "few", Set: param.Values{"iterations": int64(9), "scaling": "minmax", "validation_fraction": 0.0,
		"min_samples": int64(60)}},
}

func FuzzRestore(f *testing.F)     { contract.FuzzRestore(f, New(), contract.Sets(cases)...) }
func FuzzSettings(f *testing.F)    { contract.FuzzSettings(f, New(), contract.Sets(cases)...) }
func FuzzDecodeModel(f *testing.F) { contract.FuzzDecodeModel(f, New(), contract.Sets(cases)...) }

// FuzzResult: a result is refused, or has the bytes that it is encoded to.
func FuzzResult(f *testing.F) {
	const size = 6
	f.Add((&result{loss: 0.5, iterations: 3, samples: 70, weights: []float64{1, -2, 3, 0, 0.25, 7}}).encode())
	f.Add(make([]byte, resultHead))
	f.Add((&result{loss: math.NaN(), weights: make([]float64, size)}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeResult(b, size)
		if err != nil {
			if !errors.Is(err, errResult) {
				t.Fatal(err)
			}
			return
		}
		if !slices.Equal(r.encode(), b) {
			t.Fatal("a result that is accepted is encoded otherwise")
		}
	})
}

// problem builds generated rows.
func problem(t testing.TB, rows, features, labels int, density float64) (*dataset.Manifest, []*dataset.Rows) {
	t.Helper()
	src, err := generate.New(generate.Options{Rows: rows, Features: features, Labels: labels, Density: density, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	return datatest.Build(t, src)
}

// train runs a job to its end.
func train(t testing.TB, m *dataset.Manifest, shards []*dataset.Rows, given param.Values, lanes int,
	cut bool) (algorithms.Trainer, *dataset.Data) {
	t.Helper()
	j := contract.Job(t, New(), given, m, dataset.Split{Seed: 5, TestFraction: 0.1})
	d := datatest.Data(t, m, shards, j.Split, nil)
	each := contract.Cut(t, New(), j, m)
	if !cut {
		each = nil
	}
	return contract.Train(t, New(), j, d, lanes, each), d
}

// TestGoldenDigests pins the bits of small jobs, on one lane and on many, and cut after every round.
func TestGoldenDigests(t *testing.T) {
	want := map[string]string{
		"paper":        "0dba5a3177496e9efd840b2066899b1edf116227733601cbd1d26b8241218702",
		"auto":         "93246fffda3b5bb8c71a825b63a3198a5bbc0f1324ce4f9a9495c0bd83c6636a",
		"fixed":        "7df1328c0901ce4e848c19dec6dc7a930539cf2d5fd441f32a38ee4cb01f6414",
		"few":          "07b20426bb6b2f8c18d474e466173a4a5b27d412b4c30ea6b4e600f295c9c0b7",
		"paper sparse": "c2b8fcdf809bb06516ec72a2e6037571b5b7196a320a787978bd5f0f51be8d9c",
		"auto sparse":  "533cce2eab4e91a1dba29e673275db9085c4e2b63bca37c5b14c72ba0fa3da63",
		"fixed sparse": "aff718c6bce91b5cb8481a6a98b60dc4ecbe553a17823bddf29a80a1c6fbf531",
		"few sparse":   "6d502a1a5a75086e42dd8532492d76649fc04713b7ae8d2b4e64292fcd798cdc",
	}
	for _, density := range []float64{1, 0.2} {
		m, shards := problem(t, 200, 12, 4, density)
		for _, c := range cases {
			name := c.Name
			if m.Sparse {
				name += " sparse"
			}
			tr, _ := train(t, m, shards, c.Set, 1, false)
			one := contract.Digest(t, New(), tr)
			if one != want[name] {
				t.Errorf("%q: %q,", name, one)
			}
			for lanes, cut := range map[int]bool{3: false, 1: true} {
				if tr, _ := train(t, m, shards, c.Set, lanes, cut); contract.Digest(t, New(), tr) != one {
					t.Errorf("%s: with %d lanes, cut %v, the digest differs", name, lanes, cut)
				}
			}
		}
	}
}

// TestPairs: tasks list all pairs in order, each side once.
func TestPairs(t *testing.T) {
	for labels := 2; labels < 9; labels++ {
		task := 0
		for a := range labels {
			for b := a + 1; b < labels; b++ {
				for _, less := range []bool{false, true} {
					if x, y, l := pairOf(task, labels); x != a || y != b || l != less {
						t.Fatalf("task %d of %d labels is %d, %d, %v; want %d, %d, %v", task, labels, x, y, l, a, b, less)
					}
					task++
				}
			}
		}
		if task != models(labels) {
			t.Fatalf("%d labels have %d models, want %d", labels, models(labels), task)
		}
	}
}

// twin is the algorithm in plain float64: every model is minimised by gradient descent, and neighbours are found by
// sorting.
type twin struct {
	x, d [][]float64
	l2   float64
}

func newTwin(d *dataset.Data, l2 float64) *twin {
	w := &twin{l2: l2}
	for _, ref := range d.Select(0, len(d.Manifest.Shards), dataset.Train) {
		shard := d.Shard(int(ref.Shard))
		w.x = append(w.x, floats(shard.Dense(int(ref.Pos))))
		w.d = append(w.d, floats(shard.Label(int(ref.Pos))))
	}
	return w
}

func floats(v []float32) (x []float64) {
	for _, f := range v {
		x = append(x, float64(f))
	}
	return x
}

// softmax returns the prediction of a row under weights, features+1 rows of labels.
func softmax(x []float64, w [][]float64) []float64 {
	p, sum := slices.Clone(w[len(x)]), 0.0
	for c := range p {
		for k, v := range x {
			p[c] += v * w[k][c]
		}
		p[c] = math.Exp(p[c])
		sum += p[c]
	}
	for c := range p {
		p[c] /= sum
	}
	return p
}

// fit minimises the mean K-L of rows and ½·l2·‖W‖² without the biases.
func (w *twin) fit(rows []int) [][]float64 {
	features, labels := len(w.x[0]), len(w.d[0])
	weights := make([][]float64, features+1)
	for k := range weights {
		weights[k] = make([]float64, labels)
	}
	for range 6000 {
		g := make([][]float64, features+1)
		for k := range g {
			g[k] = make([]float64, labels)
		}
		for _, i := range rows {
			p := softmax(w.x[i], weights)
			for c := range p {
				r := (p[c] - w.d[i][c]) / float64(len(rows))
				for k, v := range w.x[i] {
					g[k][c] += v * r
				}
				g[features][c] += r
			}
		}
		for k := range g {
			for c := range g[k] {
				if k < features {
					g[k][c] += w.l2 * weights[k][c]
				}
				weights[k][c] -= 0.3 * g[k][c]
			}
		}
	}
	return weights
}

// nearestMean returns the mean label distribution of the k rows that are nearest to x.
func (w *twin) nearestMean(x []float64, k int) []float64 {
	order, distance := make([]int, len(w.x)), make([]float64, len(w.x))
	for i, y := range w.x {
		order[i] = i
		for c := range y {
			distance[i] += (x[c] - y[c]) * (x[c] - y[c])
		}
	}
	sort.SliceStable(order, func(i, j int) bool { return distance[order[i]] < distance[order[j]] })
	q := make([]float64, len(w.d[0]))
	for _, i := range order[:k] {
		for c, v := range w.d[i] {
			q[c] += v / float64(k)
		}
	}
	return q
}

// TestTwin: predictions equal the predictions of a slow implementation. One side is empty: label 3 is never as probable
// as label 2. Another side has fewer rows than min_samples: few rows have more of label 1 than of label 0.
func TestTwin(t *testing.T) {
	testkit.WithoutRace(t)
	const l2, k, least = 0.1, 4, 9
	m, shards := problem(t, 90, 3, 4, 1)
	for _, s := range shards {
		for i := range s.N {
			d := s.Label(i)
			slices.SortFunc(d[2:4], func(a, b float32) int { return int(math.Copysign(1, float64(b-a))) })
			if s.Row[i]%16 == 3 != (d[1] > d[0]) {
				d[0], d[1] = d[1], d[0]
			}
			for c := range m.Features {
				s.X[i*m.Features+c] *= 2
			}
		}
	}
	tr, d := train(t, m, shards, param.Values{"scaling": "none", "validation_fraction": 0.0, "l2": l2, "k": int64(k),
		"min_samples": int64(least), "iterations": int64(400)}, 1, false)
	got, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	w := newTwin(d, l2)
	var models [][][]float64
	var empty, few int
	for task := range 12 {
		a, b, less := pairOf(task, 4)
		var rows, all []int
		for i, label := range w.d {
			all = append(all, i)
			if (label[a] < label[b]) == less {
				rows = append(rows, i)
			}
		}
		switch {
		case len(rows) == 0:
			empty, rows = empty+1, all
		case len(rows) < least:
			few, rows = few+1, all
		}
		models = append(models, w.fit(rows))
	}
	if empty == 0 || few == 0 {
		t.Fatalf("%d sides are empty and %d have few rows, want some of each", empty, few)
	}
	refs := d.Select(0, len(shards), dataset.AllRows)
	predicted := make([]float32, len(refs)*4)
	got.Predict(predicted, refs, func(i uint32) *dataset.Rows { return shards[i] }, got.NewScratch())
	sides := make(map[int]int)
	for i, ref := range refs {
		x := floats(shards[ref.Shard].Dense(int(ref.Pos)))
		q, p := w.nearestMean(x, k), make([]float64, 4)
		for pair := range 6 {
			a, b, _ := pairOf(2*pair, 4)
			task := 2 * pair
			if float32(q[a]) < float32(q[b]) {
				task++
			}
			sides[task]++
			for c, v := range softmax(x, models[task]) {
				p[c] += v / 6
			}
		}
		for c := range p {
			if math.Abs(p[c]-float64(predicted[i*4+c])) > 2e-5 {
				t.Fatalf("row %d: predicted %v, want %v", i, predicted[i*4:][:4], p)
			}
		}
	}
	if len(sides) < 9 {
		t.Errorf("only %d models are chosen", len(sides))
	}
}

// TestTies: if the gate has two labels equally probable, the first side predicts.
func TestTies(t *testing.T) {
	m, shards := problem(t, 30, 2, 2, 1)
	for _, s := range shards {
		for i := range s.D {
			s.D[i] = 0.5
		}
	}
	tr, _ := train(t, m, shards, param.Values{"scaling": "none", "iterations": int64(2)}, 1, false)
	a, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	trained := a.(*model)
	clear(trained.weights)
	trained.weights[2*2], trained.weights[3*2+2*2+1] = 5, 5 // the first side predicts label 0, the second label 1
	p := make([]float32, 2)
	trained.Predict(p, []dataset.RowRef{{}}, func(uint32) *dataset.Rows { return shards[0] }, trained.NewScratch())
	if p[0] < 0.9 {
		t.Errorf("predicted %v", p)
	}
}

// TestRoles: a model sees the training rows on its side, or all if these are few; validation rows are a share of them,
// but at most half. The test rows are outside, and no role depends on the shards.
func TestRoles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, labels := rapid.IntRange(1, 120).Draw(t, "rows"), rapid.IntRange(2, 5).Draw(t, "labels")
		c := &Config{MinSamples: rapid.IntRange(1, 60).Draw(t, "min_samples")}
		c.ValidationFraction = rapid.SampledFrom([]float64{0, 0.1, 0.4}).Draw(t, "fraction")
		degrees := rapid.SliceOfN(rapid.SampledFrom([]float32{0, 0.25, 0.5}), n*labels, n*labels).Draw(t, "labels")
		order := rapid.Permutation(numbers(n)).Draw(t, "order")
		roles := make([]dataset.Roles, n)
		for i := range roles {
			roles[i] = rapid.SampledFrom([]dataset.Roles{dataset.Train, dataset.Train, dataset.Test}).Draw(t, "role")
		}
		task := rapid.IntRange(0, models(labels)-1).Draw(t, "task")
		got, err := rolesOf(c, task, degrees, roles, labels, numbers(n), n)
		again, _ := rolesOf(c, task, degrees, roles, labels, order, 1+n/3)
		if !slices.Equal(got, again) {
			t.Fatal("the roles depend on the shards")
		}
		a, b, less := pairOf(task, labels)
		var side, all []int
		for row, role := range roles {
			if role == dataset.Train {
				all = append(all, row)
				if (degrees[row*labels+a] < degrees[row*labels+b]) == less {
					side = append(side, row)
				}
			}
		}
		if len(all) == 0 {
			if !errors.Is(err, algorithms.ErrNoRows) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if len(side) < c.MinSamples {
			side = all
		}
		validates := 0
		for row, role := range got {
			switch {
			case slices.Contains(side, row) != (role == dataset.Train || role == dataset.Validation):
				t.Fatalf("row %d has the role %d", row, role)
			case role == dataset.Validation:
				validates++
			}
		}
		want := 0
		if c.ValidationFraction > 0 {
			want = min(max(validationMin, int(c.ValidationFraction*float64(len(side)))), len(side)/2)
		}
		if err != nil || validates != want {
			t.Fatalf("%d of %d rows validate, want %d (%v)", validates, len(side), want, err)
		}
	})
}

// TestGroupedRoles: the validation samples of a model are whole groups, if the job has groups.
func TestGroupedRoles(t *testing.T) {
	const rows = 60
	degrees, groups := make([]float32, 2*rows), make([]uint16, rows)
	for row := range rows {
		degrees[2*row], groups[row] = 1, uint16(row%6)
	}
	c := &Config{MinSamples: 1}
	c.ValidationFraction = 0.3
	of := func(groups []uint16) (both int) {
		d := dataset.NewData(&dataset.Manifest{Rows: rows, Features: 1, Labels: 2, Shards: make([]dataset.ShardRef, 1)},
			slices.Repeat([]dataset.Roles{dataset.Train}, rows))
		s := &dataset.Rows{N: rows, Labels: 2, D: degrees}
		for row := range rows {
			s.Row = append(s.Row, uint32(row))
		}
		d.SetShard(0, s)
		d.Groups = groups
		r := round.Round{Tasks: models(2), Scope: round.Whole, How: &round.Gather{}, Roles: dataset.Train}
		roles, err := c.roles(r.Task(0), d, &round.Job{Seed: 3})
		if err != nil || !slices.Contains(roles, dataset.Validation) {
			t.Fatalf("roles %v, error %v", roles, err)
		}
		for g := range 6 {
			for row := g; row < rows; row += 6 {
				if roles[row] != roles[g] {
					both++
					break
				}
			}
		}
		return both
	}
	if whole, crossing := of(groups), of(nil); whole != 0 || crossing == 0 {
		t.Errorf("%d of six groups cross, and %d without groups", whole, crossing)
	}
}

func numbers(n int) []int {
	v := make([]int, n)
	for i := range v {
		v[i] = i
	}
	return v
}

// rolesOf returns the roles for a task of rows that are in shards of so many, in an order.
func rolesOf(c *Config, task int, degrees []float32, roles []dataset.Roles, labels int, order []int,
	each int) ([]dataset.Roles, error) {
	var shards []*dataset.Rows
	for part := range slices.Chunk(order, each) {
		s := &dataset.Rows{N: len(part), Labels: labels}
		for _, row := range part {
			s.Row, s.D = append(s.Row, uint32(row)), append(s.D, degrees[row*labels:][:labels]...)
		}
		shards = append(shards, s)
	}
	m := &dataset.Manifest{Rows: len(order), Features: 1, Labels: labels, Shards: make([]dataset.ShardRef, len(shards))}
	d := dataset.NewData(m, roles)
	for i, s := range shards {
		d.SetShard(i, s)
	}
	r := round.Round{Tasks: models(labels), Scope: round.Whole, How: &round.Gather{}, Roles: dataset.Train}
	return c.roles(r.Task(task), d, &round.Job{Seed: 3})
}

// TestSparse: sparse rows are predicted as the same rows in dense storage, to the bit.
func TestSparse(t *testing.T) {
	testkit.WithoutRace(t)
	m, shards := problem(t, 120, 16, 3, 0.15)
	if !m.Sparse {
		t.Fatal("the rows are not sparse")
	}
	given := param.Values{"scaling": "none", "iterations": int64(20)}
	dense, wide := *m, []*dataset.Rows{}
	dense.Sparse = false
	for _, s := range shards {
		w := *s
		w.Sparse, w.Index, w.Start, w.X = false, nil, nil, make([]float32, s.N*s.Features)
		for i := range s.N {
			columns, values := s.NonZeros(i)
			for k, c := range columns {
				w.X[i*s.Features+int(c)] = values[k]
			}
		}
		wide = append(wide, &w)
	}
	var all [2][]float32
	for i, set := range [][]*dataset.Rows{shards, wide} {
		manifest := []*dataset.Manifest{m, &dense}[i]
		tr, d := train(t, manifest, set, given, 1, false)
		trained, err := tr.Model()
		if err != nil {
			t.Fatal(err)
		}
		refs := d.Select(0, len(set), dataset.AllRows)
		all[i] = make([]float32, len(refs)*m.Labels)
		trained.Predict(all[i], refs, func(i uint32) *dataset.Rows { return set[i] }, trained.NewScratch())
	}
	if !slices.Equal(all[0], all[1]) {
		t.Error("the predictions differ")
	}
}

// TestRefuses: errors say what does not go together.
func TestRefuses(t *testing.T) {
	m, _ := problem(t, 40, 3, 3, 1)
	for _, c := range []struct {
		rows, features, labels int
		set                    param.Values
		want                   string
	}{
		{40, 3, 1, nil, "compares pairs of labels, but the dataset has 1 label"},
		{40, 3, 101, nil,
			"101 labels need 10100 models, one for each ordered pair of labels; at most 100 labels are possible"},
		{40, 251, 70, nil, "the models would hold 85201200 weights (4830 models of (251 features + 1) × 70 labels), at " +
			"most 67108864 are possible"},
		{4, 3, 3, nil, "5 neighbours, but there are only 4 training samples"},
		{40, 3, 3, param.Values{"refit": true, "validation_fraction": 0.0}, "needs a validation_fraction above 0"},
	} {
		own := *m
		own.Rows, own.Features, own.Labels = c.rows, c.features, c.labels
		if _, err := New().Resolve(c.set, &own); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d x %d, %d labels, %v: error %v, want %q", c.rows, c.features, c.labels, c.set, err, c.want)
		}
	}
	// A split may leave fewer training samples than neighbours.
	m, shards := problem(t, 6, 3, 3, 1)
	j := contract.Job(t, New(), param.Values{"scaling": "none"}, m, dataset.Split{Seed: 5, TestFraction: 0.4})
	k, err := New().NewKernel(j, m)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := New().NewTrainer(j, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = engine.Drive(context.Background(), tr, 0, engine.NewLocal(k, datatest.Data(t, m, shards, j.Split, nil), 1, nil),
		func(uint64, round.Trainer) error {
			return nil
		})
	if wrong := (*param.Error)(nil); !errors.As(err, &wrong) || wrong.Name != "k" ||
		err.Error() != "df-ldl: k: 5 neighbours, but there are only 4 training samples" {
		t.Errorf("few training samples: error %v", err)
	}
}

// TestProgress: models that are trained count, and the loss is their mean.
func TestProgress(t *testing.T) {
	m, shards := problem(t, 60, 3, 3, 1)
	j := contract.Job(t, New(), param.Values{"iterations": int64(5)}, m, dataset.Split{Seed: 5})
	seen := 0
	var tr *trainer
	last := contract.Train(t, New(), j, datatest.Data(t, m, shards, j.Split, nil), 1,
		func(a algorithms.Trainer) algorithms.Trainer {
			tr = a.(*trainer)
			if !tr.gated || tr.weights != nil {
				return a
			}
			seen++
			part := (&result{loss: 0.5, samples: 7, weights: make([]float64, tr.size())}).encode()
			one, err := tr.ResultProgress(part)
			if err != nil || one != (round.Progress{Step: 1, Steps: 1, Samples: 7, Loss: 0.5}) {
				t.Errorf("the progress of a result is %+v, %v", one, err)
			}
			if _, err := tr.ResultProgress(part[1:]); err == nil {
				t.Error("a result that is cut is accepted")
			}
			other := one
			other.Loss = 0.25
			p := tr.RoundProgress([]round.TaskProgress{{Progress: one, Known: true, Done: true}, {}, {Done: true},
				{Progress: other, Known: true, Done: true}, {}, {}})
			if p.Step != 3 || p.Steps != 6 || p.Samples != 14 || p.Loss != 0.375 || p.Phase != "training models" {
				t.Errorf("the progress of a round is %+v", p)
			}
			return a
		})
	if p := last.Progress(); seen != 1 || p.Step != 6 || p.Steps != 6 || !(p.Loss > 0) || p.Samples == 0 ||
		last.Counters()["iterations"] == 0 {
		t.Errorf("the progress is %+v at the end, and %v; between gate and models %d rounds", p, last.Counters(), seen)
	}
}

// TestMemory: the estimate has the rows of the gate twice, since their copy exists while a state is written. A task
// demands at least the longest state of its L-BFGS.
func TestMemory(t *testing.T) {
	m, shards := problem(t, 400, 30, 2, 1)
	j := contract.Job(t, New(), param.Values{"iterations": int64(20)}, m, dataset.Split{Seed: 5})
	var gate int64
	contract.Train(t, New(), j, datatest.Data(t, m, shards, j.Split, nil), 1,
		func(a algorithms.Trainer) algorithms.Trainer {
			b, err := a.(*trainer).gate.AppendState(nil)
			if err != nil {
				t.Fatal(err)
			}
			gate = max(gate, int64(len(b)))
			return a
		})
	f, err := New().Footprint(j, m)
	if weights := int64(8 * 2 * 31 * 2); err != nil || gate < 4*400*30 || f.State < 2*gate+2*weights {
		t.Errorf("estimate %+v, %v; the state of the gate has %d bytes", f, err, gate)
	}

	k, err := New().NewKernel(j, m)
	if err != nil {
		t.Fatal(err)
	}
	own := k.(*kernel).own
	var state int64
	contract.Train(t, linear, own, datatest.Data(t, m, shards, own.Split, nil), 1,
		func(a algorithms.Trainer) algorithms.Trainer {
			b, err := a.AppendState(nil)
			if err != nil {
				t.Fatal(err)
			}
			state = max(state, int64(len(b)))
			return a
		})
	if bytes, what := k.(round.Demanding).Demand(); bytes < state ||
		!strings.Contains(what, "(30 features + 1) × 2 labels") {
		t.Errorf("a task demands %d bytes for %s; its state has %d", bytes, what, state)
	}
}

// TestCancelled: a task ends with the error of its context.
func TestCancelled(t *testing.T) {
	m, shards := problem(t, 60, 3, 3, 1)
	j := contract.Job(t, New(), nil, m, dataset.Split{Seed: 5})
	k, err := New().NewKernel(j, m)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("enough"))
	u := round.Task{Of: 6, Op: opPair, Scope: round.Whole, Roles: dataset.Train}
	if _, err := k.(round.GatherKernel).Gather(ctx, u, datatest.Data(t, m, shards, j.Split, nil), nil,
		k.NewScratch()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
