package aaknn

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
)

// sets are settings of jobs that train in milliseconds.
func sets() []param.Values {
	return []param.Values{{}, {"preset": "paper"}, {"k": "auto", "scaling": "none"}, {"k": "7", "scaling": "minmax"}}
}

func FuzzRestore(f *testing.F) { contract.FuzzRestore(f, New(), sets()...) }

func FuzzSettings(f *testing.F) { contract.FuzzSettings(f, New(), sets()...) }

func FuzzDecodeModel(f *testing.F) { contract.FuzzDecodeModel(f, New(), sets()...) }

// whole is a unit that sees the rows of all shards.
func whole(roles dataset.Roles) round.Task {
	r := round.Round{Tasks: 1, Scope: round.Whole, Roles: roles, How: &round.Reduce{}}
	return r.Task(0)
}

// generated returns a data set whose features and degrees are multiples of 1/8, with a fifth of
// test rows.
func generated(t testing.TB, n, features, labels int, density float64) *dataset.Data {
	t.Helper()
	src, err := generate.New(generate.Options{Rows: n, Features: features, Labels: labels, Density: density, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	m, shards := datatest.Build(t, src)
	for _, r := range shards {
		for i, x := range r.X {
			r.X[i] = float32(math.Round(float64(x)*8)) / 8
		}
		for i := range r.N {
			d := r.Label(i)
			left := float32(1)
			for c := range d[1:] {
				d[c] = min(left, float32(math.Floor(float64(d[c])*8))/8)
				left -= d[c]
			}
			d[labels-1] = left
		}
	}
	return datatest.Data(t, m, shards, dataset.Split{Seed: 3, TestFraction: 0.2}, nil)
}

// train runs a job in so many lanes.
func train(t testing.TB, d *dataset.Data, set param.Values, lanes int) (*trainer, error) {
	t.Helper()
	a := New()
	r, err := a.Resolve(set, d.Manifest)
	if err != nil {
		return nil, err
	}
	j := &round.Job{Algorithm: Name, Numerics: round.Numerics, Seed: 1, Params: r.Params}
	tr, err := a.NewTrainer(j, d.Manifest, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := a.NewKernel(j, d.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	x := engine.NewLocal(k, d, lanes, nil)
	return tr.(*trainer), engine.Drive(context.Background(), tr, 0, x, func(uint64, round.Trainer) error { return nil })
}

func trained(t testing.TB, d *dataset.Data, set param.Values, lanes int) *trainer {
	t.Helper()
	tr, err := train(t, d, set, lanes)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func digest(t testing.TB, tr *trainer) string {
	t.Helper()
	m, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	return modelfile.Digest(Name, m.Tensors())
}

// reshaped returns the same rows in one shard, and, if dense, stored dense.
func reshaped(t testing.TB, d *dataset.Data, dense bool) *dataset.Data {
	t.Helper()
	all := rows.Gather(whole(dataset.AllRows), d, &wanted)
	m := *d.Manifest
	m.Shards = m.Shards[:1]
	if all.Sparse && dense {
		x := make([]float32, all.N*all.Features)
		for i := range all.N {
			columns, values := all.NonZeros(i)
			for k, c := range columns {
				x[i*all.Features+int(c)] = values[k]
			}
		}
		all.X, all.Sparse, all.Index, all.Start, m.Sparse = x, false, nil, nil, false
	}
	roles := make([]dataset.Roles, m.Rows)
	for i := range roles {
		roles[i] = d.Role(uint32(i))
	}
	out := dataset.NewData(&m, roles)
	out.SetShard(0, all)
	return out
}

// TestGoldenDigest: the model of a small job keeps its bits, for one lane and many, one shard and
// many.
func TestGoldenDigest(t *testing.T) {
	for name, want := range map[string]string{
		"dense":  "869ecd01afbb08fb64ff7e786ffc044cd77b4c5d1cc73762ffd91bc361d0c22b",
		"sparse": "0e38928fc290bd1758bb48c070e825201eed87d3ac0f9ce45e625dd78ed9b751",
	} {
		features, density := 5, 1.0
		if name == "sparse" {
			features, density = 40, 0.1
		}
		d := generated(t, 150, features, 3, density)
		if d.Manifest.Sparse != (name == "sparse") {
			t.Fatal("the rows are stored otherwise")
		}
		set := param.Values{"scaling": "none"}
		got := digest(t, trained(t, d, set, 1))
		if got != want {
			t.Errorf("%s: digest %s, want %s", name, got, want)
		}
		for lanes := 2; lanes <= 4; lanes++ {
			if other := digest(t, trained(t, d, set, lanes)); other != got {
				t.Errorf("%s: in %d lanes the digest is %s", name, lanes, other)
			}
		}
		if other := digest(t, trained(t, reshaped(t, d, false), set, 2)); other != got {
			t.Errorf("%s: of one shard the digest is %s", name, other)
		}
	}
}

// predict predicts the test rows.
func predict(t testing.TB, tr *trainer, d *dataset.Data) []float32 {
	t.Helper()
	m, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	refs := d.Select(0, len(d.Manifest.Shards), dataset.Test)
	refs = slices.Clone(refs)
	slices.SortFunc(refs, func(a, b dataset.RowRef) int {
		return int(d.Shard(int(a.Shard)).Row[a.Pos]) - int(d.Shard(int(b.Shard)).Row[b.Pos])
	})
	dst := make([]float32, len(refs)*d.Manifest.Labels)
	m.Predict(dst, refs, func(i uint32) *dataset.Rows { return d.Shard(int(i)) }, m.NewScratch())
	return dst
}

// TestStorage: dense and sparse rows of the same values have the same neighbours, and k.
func TestStorage(t *testing.T) {
	d := generated(t, 150, 40, 3, 0.1)
	dense := reshaped(t, d, true)
	for _, set := range []param.Values{{"scaling": "none"}, {"k": "3", "scaling": "minmax"}} {
		a, b := trained(t, d, set, 1), trained(t, dense, set, 1)
		if a.k != b.k || !slices.Equal(predict(t, a, d), predict(t, b, dense)) {
			t.Errorf("%v: dense rows have k %d, or other predictions; sparse ones have k %d", set, b.k, a.k)
		}
	}
}

// TestLeftOut: the loss of each k, and so the choice, is that of a slow twin in plain float64.
func TestLeftOut(t *testing.T) {
	for _, labels := range []int{2, 4} {
		d := generated(t, 260, 4, labels, 1)
		tr := trained(t, d, param.Values{"scaling": "none"}, 2)
		y := expanded(tr.kept, nil)
		best, least := 0, math.Inf(1)
		for _, k := range candidates(tr.kept.N) {
			loss := 0.0
			for i := range y {
				others := append(slices.Clone(y[:i]), y[i+1:]...)
				p := make([]float64, labels)
				for _, j := range brute(y[i:i+1], others, k)[0] {
					if int(j) >= i {
						j++
					}
					for c, v := range tr.kept.Label(int(j)) {
						p[c] += float64(v) / float64(k)
					}
				}
				for c, v := range tr.kept.Label(i) {
					if v > 0 {
						loss += float64(v) * math.Log(float64(v)/max(1e-12, p[c]))
					}
				}
			}
			if loss /= float64(len(y)); loss < least {
				best, least = k, loss
			}
		}
		if int(tr.k) != best || math.Abs(tr.loss-least) > 1e-12 {
			t.Errorf("%d labels: k %d of loss %v; the twin has %d of %v", labels, tr.k, tr.loss, best, least)
		}
		if p := tr.Progress(); p.Loss != tr.loss || p.Step != p.Steps {
			t.Errorf("progress %+v", p)
		}
	}
}

// TestFewerRows than neighbours are refused when the settings are resolved, or once the training
// rows are known; auto makes do.
func TestFewerRows(t *testing.T) {
	d := generated(t, 20, 3, 2, 1)
	_, err := train(t, d, param.Values{"k": "21"}, 1)
	var wrong *param.Error
	if !errors.As(err, &wrong) || wrong.Name != "k" ||
		!strings.Contains(err.Error(), "21 neighbours, but there are only 20 training samples") {
		t.Errorf("error %v", err)
	}
	if _, err = train(t, d, param.Values{"k": "17"}, 1); err == nil ||
		!strings.Contains(err.Error(), "17 neighbours, but there are only 16 training samples") {
		t.Errorf("error %v", err)
	}
	if tr := trained(t, d, param.Values{"k": "16"}, 1); tr.k != 16 {
		t.Errorf("k %d", tr.k)
	}
	if tr := trained(t, d, nil, 1); tr.k != 4 {
		t.Errorf("k auto of 16 rows is %d", tr.k)
	}
	for _, k := range []string{"0", "-1", "+4", "4.0", "automatic", "", "99999999999"} {
		if _, err := New().Resolve(param.Values{"k": k}, d.Manifest); !errors.As(err, &wrong) || wrong.Name != "k" {
			t.Errorf("k %q: error %v", k, err)
		}
	}
}

// TestBadParts: losses that no rows have are refused.
func TestBadParts(t *testing.T) {
	d := generated(t, 260, 4, 3, 1)
	done := trained(t, d, param.Values{"scaling": "none"}, 1)
	for name, b := range map[string][]byte{"short": make([]byte, 8), "none": nil,
		"not a number": slices.Repeat([]byte{0xff}, 8*len(candidates(done.kept.N)))} {
		tr := newTrainer(done.job)
		tr.Start()
		tr.kept = done.kept
		if err := tr.Fold(&round.Result{Gathered: [][]byte{b}}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := newTrainer(done.job).Fold(&round.Result{Gathered: [][]byte{nil}}); !errors.Is(err, rows.ErrRows) {
		t.Errorf("no rows: error %v", err)
	}
	if _, err := newTrainer(done.job).Model(); err == nil {
		t.Error("a model without rows")
	}
}

// TestNoRows: a split without training rows is said.
func TestNoRows(t *testing.T) {
	d := generated(t, 20, 3, 2, 1)
	none := dataset.NewData(d.Manifest, slices.Repeat([]dataset.Roles{dataset.Test}, 20))
	for i := range d.Manifest.Shards {
		none.SetShard(i, d.Shard(i))
	}
	if _, err := train(t, none, param.Values{"scaling": "none"}, 1); !errors.Is(err, algorithms.ErrNoRows) {
		t.Errorf("error %v", err)
	}
}

func TestCandidates(t *testing.T) {
	for rows, want := range map[int][]int{
		1: {1}, 2: {1}, 4: {3}, 5: {4}, 31: {4}, 32: {4, 8}, 192: {4, 8, 16, 32}, 6980: {4, 8, 16, 32, 64, 128, 256,
			512, 1024},
	} {
		if got := candidates(rows); !slices.Equal(got, want) {
			t.Errorf("of %d rows: %v, want %v", rows, got, want)
		}
	}
}
