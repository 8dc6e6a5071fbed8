package ldlldm

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/internal/linalg"
	"github.com/coppice-ldl/coppice/internal/num"
)

// cases are the jobs of the golden digests and of the fuzz targets.
var cases = []contract.Case{
	{Name: "paper", Set: param.Values{"preset": "paper", "iterations": int64(12)}},
	{Name: "auto", Set: param.Values{"decay": "fixed", "iterations": int64(12), "validation_interval": int64(3),
		"clusters": int64(3)}},
	{Name: "path", Set: param.Values{"iterations": int64(50), "validation_interval": int64(7), "clusters": int64(2)}},
	{Name: "fixed", Set: param.Values{"l2": 1.0, "l3": 1.0, "decay": "fixed", "iterations": int64(12),
		"validation_interval": int64(3), "clusters": int64(3), "refit": false}},
	{Name: "path alone", Set: param.Values{"l2": 1.0, "l3": 1.0, "iterations": int64(50), "validation_interval": int64(7),
		"clusters": int64(2), "refit": false}},
	{Name: "raw", Set: param.Values{"l2": 1.0, "l3": 1.0, "iterations": int64(12), "scaling": "none",
		"validation_fraction": 0.0, "bias": false, "clusters": int64(1)}},
}

func FuzzRestore(f *testing.F)  { contract.FuzzRestore(f, New(), contract.Sets(cases)...) }
func FuzzSettings(f *testing.F) { contract.FuzzSettings(f, New(), contract.Sets(cases)...) }
func FuzzDecodeModel(f *testing.F) {
	contract.FuzzDecodeModel(f, New(), contract.Sets(cases)...)
}

// FuzzEntries: the rows that a unit drew come from a worker: they are refused, or written again as
// they were.
func FuzzEntries(f *testing.F) {
	list := []entry{{3, 7, []float32{0.5, 0.5}}, {9, 2, []float32{0, 1}}}
	f.Add(appendEntries(nil, list))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := parseEntries(b, 3, 2)
		if err != nil {
			if !errors.Is(err, errEntries) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if len(list) > 3 || !bytes.Equal(appendEntries(nil, list), b) {
			t.Fatalf("%d rows are written again otherwise", len(list))
		}
	})
}

func problem(t testing.TB, o generate.Options) (*dataset.Manifest, []*dataset.Rows) {
	t.Helper()
	src, err := generate.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return datatest.Build(t, src)
}

// TestGoldenDigests pins the bits of small jobs, on one lane and on many, and cut after every
// round.
func TestGoldenDigests(t *testing.T) {
	want := map[string]string{
		"paper":             "2ade82abfec0ef1ce8ed0137f51fe0ed69db615633af4ed5e117f49edf4b817a",
		"auto":              "08b9370d60ab98d6c479040ac64b22d8732db706b5db31de8d2cf3bfd4d2d03f",
		"path":              "0ab9931cea1af08373dc0dee86f6d68728e957f32a24a86e6188839e8ec521f1",
		"path sparse":       "1b6649c9066c48c7932d73a46aa0b007371cb38fc7fd65a1e75a83f4953d8a98",
		"fixed":             "b25d168cce0bd70a34170071d9bb1281c44c544e2fe05d258306b280ae39a3a1",
		"path alone":        "7fdb5e1b10c7225a6723ccc68e6ead70d3265f65a23866e225ec3cd6d5267339",
		"path alone sparse": "a64a3fdeb33763c3cc21da1d41ebffd03b0958e7abb98d7f8ee7eda9b8d3126c",
		"raw":               "7be7d664fc300aa65736da5605728c88aeb9f815ac4db7ad360dcd97e1d00626",
		"paper sparse":      "24e0c2fd744d998c149a65fed131e96948b6a8b0ae155adc5f986ccc69ae2bec",
		"auto sparse":       "ed2d1997494f38e1fbab5c19d1c44bf69ffbdc585d1ab2b32c03ffc6b2e30a80",
		"fixed sparse":      "c2b23ad2702f7ee3797886f984e85ccf7430c3da7146cf9688dd5a4647550238",
		"raw sparse":        "df2828bfff14fc5af51b50c6339ef9f001452da3eab4710353448196588e7b7f",
	}
	for _, o := range []generate.Options{{Rows: 200, Features: 6, Labels: 4, Density: 1, Seed: 2},
		{Rows: 200, Features: 40, Labels: 4, Density: 0.1, Seed: 2}} {
		m, shards := problem(t, o)
		for _, c := range cases {
			name := c.Name
			if m.Sparse {
				name += " sparse"
			}
			j := contract.Job(t, New(), c.Set, m, dataset.Split{Seed: 5, TestFraction: 0.1})
			d := datatest.Data(t, m, shards, j.Split, nil)
			one := contract.Digest(t, New(), contract.Train(t, New(), j, d, 1, nil))
			if one != want[name] {
				t.Errorf("%q: %q,", name, one)
			}
			if many := contract.Digest(t, New(), contract.Train(t, New(), j, d, 3, nil)); many != one {
				t.Errorf("%s: on three lanes %s", name, many)
			}
			if cut := contract.Digest(t, New(), contract.Train(t, New(), j, d, 1, contract.Cut(t, New(), j, m))); cut != one {
				t.Errorf("%s: cut after every round %s", name, cut)
			}
		}
	}
}

// TestRefit: a refit is the training without validation, on the same rows, as far as was best: the clusters too.
func TestRefit(t *testing.T) {
	m, shards := problem(t, generate.Options{Rows: 200, Features: 30, Labels: 4, Density: 1, Seed: 2})
	set := param.Values{"decay": "fixed", "validation_interval": int64(2), "validation_fraction": 0.3,
		"clusters": int64(3)}
	contract.CheckRefit(t, New(), set, func(set param.Values) algorithms.Trainer {
		j := contract.Job(t, New(), set, m, dataset.Split{Seed: 5, TestFraction: 0.1})
		return contract.Train(t, New(), j, datatest.Data(t, m, shards, j.Split, nil), 2, nil)
	})
}

// twin computes the clusters, the manifolds and the loss of section 3's equations by plain loops over
// rows, from the trainer's centres.
type twin struct {
	c       *Config
	x, d    [][]float64
	share   [][]float64 // degrees that sum to 1
	cluster []int
	z       [][][]float64 // Z⁰, then Z^g
}

func newTwin(t *testing.T, c *Config, d *dataset.Data, centres []float64) *twin {
	w := &twin{c: c}
	for _, ref := range d.Select(0, len(d.Manifest.Shards), dataset.Train) {
		rows := d.Shard(int(ref.Shard))
		x := make([]float64, 0, d.Manifest.Features+1)
		for _, v := range rows.Dense(int(ref.Pos)) {
			x = append(x, float64(v))
		}
		var label []float64
		for _, v := range rows.Label(int(ref.Pos)) {
			label = append(label, float64(v))
		}
		share := make([]float64, len(label))
		maxent.Degrees(share, rows.Label(int(ref.Pos)))
		w.x, w.d, w.share = append(w.x, append(x, 1)), append(w.d, label), append(w.share, share)
		w.cluster = append(w.cluster, w.nearest(centres, label))
	}
	for g := -1; g < c.Clusters; g++ {
		w.z = append(w.z, w.manifold(t, g))
	}
	return w
}

func (w *twin) nearest(centres, label []float64) int {
	best, least := 0, math.Inf(1)
	for g := range w.c.Clusters {
		far := 0.0
		for i, v := range label {
			far += (v - centres[g*len(label)+i]) * (v - centres[g*len(label)+i])
		}
		if far < least {
			best, least = g, far
		}
	}
	return best
}

// manifold returns Z of a cluster (-1: of all rows) by Gaussian elimination on differences of columns.
func (w *twin) manifold(t *testing.T, g int) [][]float64 {
	n := len(w.d[0])
	z := make([][]float64, n)
	for i := range z {
		z[i] = make([]float64, n)
	}
	for col := range n {
		k := make([][]float64, n-1)
		trace := 0.0
		for i := range k {
			k[i] = make([]float64, n)
			for j := range n - 1 {
				for r, d := range w.d {
					if g < 0 || w.cluster[r] == g {
						k[i][j] += (d[other(i, col)] - d[col]) * (d[other(j, col)] - d[col])
					}
				}
			}
			k[i][n-1] = 1
			trace += k[i][i]
		}
		add := 1e-3 * trace
		if trace < 1e-14 {
			add = 1e-3
		}
		for i := range k {
			k[i][i] += add
		}
		eliminate(k)
		sum := 0.0
		for i := range k {
			sum += k[i][n-1]
		}
		for i := range k {
			z[other(i, col)][col] = k[i][n-1] / sum
		}
	}
	return z
}

func eliminate(k [][]float64) {
	for i := range k {
		for r := range k {
			if r == i {
				continue
			}
			by := k[r][i] / k[i][i]
			for j := range k[r] {
				k[r][j] -= by * k[i][j]
			}
		}
	}
	for i := range k {
		k[i][len(k)] /= k[i][i]
	}
}

// loss is J(W)/N, with the labels' entropy taken off.
func (w *twin) loss(weights []float64) float64 {
	labels := len(w.d[0])
	sum := 0.0
	for i, x := range w.x {
		p, total := make([]float64, labels), 0.0
		for c := range p {
			for j, v := range x {
				p[c] += v * weights[j*labels+c]
			}
			p[c] = math.Exp(p[c])
			total += p[c]
		}
		for c := range p {
			p[c] /= total
			if d := w.share[i][c]; d > 0 {
				sum += d * math.Log(d/p[c])
			}
		}
		sum += w.c.L2*far(p, w.z[0]) + w.c.L3*far(p, w.z[1+w.cluster[i]])
	}
	for _, v := range weights[:len(weights)-labels] {
		sum += w.c.L1 / 2 * v * v
	}
	return sum / float64(len(w.x))
}

// far is ‖p(I - Z)‖².
func far(p []float64, z [][]float64) (sum float64) {
	for t := range p {
		v := p[t]
		for j := range p {
			v -= p[j] * z[j][t]
		}
		sum += v * v
	}
	return sum
}

// TestGradient: the loss and its gradient at a random point, with the manifolds of the trainer's rounds, are
// those of the twin, whose gradient is by central differences: of usual labels, of two labels, and where
// all labels of a cluster are equal.
func TestGradient(t *testing.T) {
	for name, o := range map[string]generate.Options{
		"usual":        {Rows: 80, Features: 4, Labels: 5, Density: 1, Seed: 3},
		"two labels":   {Rows: 80, Features: 4, Labels: 2, Density: 1, Seed: 4},
		"equal labels": {Rows: 80, Features: 4, Labels: 3, Density: 1, Seed: 5},
	} {
		m, shards := problem(t, o)
		if name == "equal labels" {
			equalLabels(shards)
		}
		given := param.Values{"preset": "paper", "scaling": "none", "clusters": int64(3), "l1": 0.5, "l2": 0.7, "l3": 1.3,
			"iterations": int64(3)}
		j := contract.Job(t, New(), given, m, dataset.Split{})
		d := datatest.Data(t, m, shards, j.Split, nil)
		tr := contract.Train(t, New(), j, d, 1, nil).(*trainer)
		checkMeans(t, name, tr, d)
		w := newTwin(t, tr.cfg, d, tr.centres)
		k, err := New().NewKernel(j, m)
		if err != nil {
			t.Fatal(err)
		}
		x := make([]float64, tr.Objective.Point())
		s := num.NewStream(num.NewKey(1, "test"), 0, 0)
		for i := range x {
			x[i] = 0.4 * s.Normal()
		}
		f, g := evaluate(t, k.(*kernel), tr, d, x)
		if want := w.loss(x); math.Abs(f-want) > 1e-10 {
			t.Errorf("%s: loss %v, want %v", name, f, want)
		}
		for i, at := range x {
			const h = 1e-5
			x[i] = at + h
			up := w.loss(x)
			x[i] = at - h
			down := w.loss(x)
			x[i] = at
			if want := (up - down) / (2 * h); math.Abs(g[i]-want) > 1e-8 {
				t.Fatalf("%s: derivative %d is %v, want %v", name, i, g[i], want)
			}
		}
	}
}

// equalLabels gives the rows two label distributions, one of them uniform, so that clusters have equal
// labels, and one cluster none.
func equalLabels(shards []*dataset.Rows) {
	for _, rows := range shards {
		for i := range rows.N {
			if d := rows.Label(i); rows.Row[i]%3 == 0 {
				copy(d, []float32{0.25, 0.25, 0.5})
			} else {
				copy(d, []float32{0.375, 0.375, 0.25})
			}
		}
	}
}

// checkMeans: each centre is the mean of the rows that are nearest to it.
func checkMeans(t *testing.T, name string, tr *trainer, d *dataset.Data) {
	t.Helper()
	sums := make([]float64, len(tr.centres))
	rows := make([]float64, tr.cfg.Clusters)
	for _, ref := range d.Select(0, len(d.Manifest.Shards), dataset.Train) {
		label := d.Shard(int(ref.Shard)).Label(int(ref.Pos))
		g := nearest(tr.centres, label)
		rows[g]++
		for c, v := range label {
			sums[g*len(label)+c] += float64(v)
		}
	}
	for i, sum := range sums {
		if n := rows[i/tr.labels]; n > 0 && math.Abs(sum/n-tr.centres[i]) > 1e-12 {
			t.Errorf("%s: value %d of the centres is %v, the mean of its rows %v", name, i, tr.centres[i], sum/n)
		}
	}
	if tr.moved == mostMeans {
		t.Errorf("%s: k-means has not ended", name)
	}
}

// clustered runs k-means and the products from given centres, on samples of label distributions with whole weights, or
// on as many samples without weights. It returns the sums of the last round of means, and the products.
func clustered(t *testing.T, labels [][]float64, weights []int, repeat bool,
	centres []float64) (means, gram []float64) {
	t.Helper()
	l := &datasettest.Listed{Described: dataset.Info{Features: 1, Labels: 3, HasWeights: !repeat}}
	for i, d := range labels {
		row := dataset.Row{Values: []float64{1}, Labels: d, Weight: float64(weights[i])}
		times := 1
		if repeat {
			row.Weight, times = 0, weights[i]
		}
		for range times {
			row.Number = len(l.Rows)
			l.Rows = append(l.Rows, row)
		}
	}
	l.Described.Rows = len(l.Rows)
	m, shards := datatest.Build(t, l)
	clusters := len(centres) / 3
	j := contract.Job(t, New(), param.Values{"clusters": int64(clusters), "validation_fraction": 0.0}, m, dataset.Split{})
	d := datatest.Data(t, m, shards, j.Split, nil)
	own, err := New().NewKernel(j, m)
	if err != nil {
		t.Fatal(err)
	}
	k := own.(*kernel)
	tr := &trainer{cfg: &Config{Clusters: clusters}, labels: 3, stage: stageMeans, centres: slices.Clone(centres)}
	run := func(op uint8, values int) []float64 {
		var sum round.Partial
		sum.Reset(round.Shape{F64: values})
		vars := []round.Var{{ID: varCentres, Data: num.Bytes64(tr.centres)}}
		if err := k.Run(&sum, round.Task{Of: 1, Op: op, Roles: dataset.Train}, d, vars, nil, k.NewScratch()); err != nil {
			t.Fatal(err)
		}
		return sum.F64
	}
	for tr.stage == stageMeans {
		means = run(opMeans, clusters*4)
		tr.move(means)
	}
	return append(means, tr.centres...), run(opGram, (clusters+1)*9)
}

// TestWeightedClusters: samples with whole weights have the clusters, centres and products of as many samples, where
// samples without weights have others.
func TestWeightedClusters(t *testing.T) {
	differ := 0
	for seed := range uint64(20) {
		s := num.NewStream(num.NewKey(seed, "test"), 0, 0)
		var labels [][]float64
		var weights, ones []int
		for range 24 {
			a, b := s.Float64(), s.Float64()
			labels, ones = append(labels, []float64{a * b, a * (1 - b), 1 - a}), append(ones, 1)
			weights = append(weights, int(6*s.Float64()*s.Float64())*int(3*s.Float64()))
		}
		weights[0] = 7
		start := slices.Concat(labels[0], labels[1], labels[2])
		means, gram := clustered(t, labels, weights, false, start)
		wantMeans, wantGram := clustered(t, labels, weights, true, start)
		for i, want := range slices.Concat(wantMeans, wantGram) {
			if got := slices.Concat(means, gram)[i]; math.Abs(got-want) > 1e-9 {
				t.Fatalf("seed %d: value %d is %v with weights, %v of repeated samples", seed, i, got, want)
			}
		}
		// With weights, the centres of samples without weights move to other clusters:
		if centres, _ := clustered(t, labels, ones, true, start); !slices.Equal(centres[12:], wantMeans[12:]) {
			other, _ := clustered(t, labels, weights, true, centres[12:])
			if math.Abs(other[0]-wantMeans[0])+math.Abs(other[4]-wantMeans[4]) > 0.5 {
				differ++
			}
		}
	}
	if differ < 5 {
		t.Errorf("the weights decide the clusters of %d of 20 drawn sets, want at least 5", differ)
	}
}

func evaluate(t *testing.T, k *kernel, tr *trainer, d *dataset.Data, x []float64) (f float64, g []float64) {
	t.Helper()
	r := &round.Round{Op: fullbatch.OpEvaluate, Roles: dataset.Train, Vars: tr.Objective.AppendVars(nil, x, 1),
		How: &round.Reduce{}}
	var sum round.Partial
	sum.Reset(round.Shape{F64: fullbatch.SumsAt + tr.Objective.Sums()})
	if err := k.Run(&sum, round.Task{Of: 1, Op: r.Op, Roles: r.Roles}, d, r.Vars, nil, k.NewScratch()); err != nil {
		t.Fatal(err)
	}
	g = make([]float64, len(x))
	return tr.Objective.Fold(g, x, sum.F64[0], sum.F64[1], sum.F64[fullbatch.SumsAt:]), g
}

// TestDraw: the first centres are the rows with the least random numbers, however rows are shared among
// units.
func TestDraw(t *testing.T) {
	m, shards := problem(t, generate.Options{Rows: 90, Features: 2, Labels: 3, Density: 1, Seed: 6})
	d := datatest.Data(t, m, shards, dataset.Split{Seed: 1, TestFraction: 0.2}, nil)
	key := num.NewKey(11, "ldl-ldm/start")
	var rows []uint32
	for _, ref := range d.Select(0, len(m.Shards), dataset.Train) {
		rows = append(rows, d.Shard(int(ref.Shard)).Row[ref.Pos])
	}
	slices.SortFunc(rows, func(a, b uint32) int {
		return compare(entry{order: orderOf(key, a)}, entry{order: orderOf(key, b)})
	})
	for units := 1; units <= len(m.Shards); units *= 2 {
		var drawn []entry
		for id := range units {
			u := round.Task{ID: id, Of: units, Roles: dataset.Train}
			list, err := parseEntries(appendEntries(nil, draw(7, key, &u, d)), 7, 3)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range list {
				drawn = insert(drawn, e, 7)
			}
		}
		for i, e := range drawn {
			if e.row != rows[i] {
				t.Errorf("%d units: row %d is drawn as number %d, want %d", units, e.row, i, rows[i])
			}
		}
	}
}

// TestDrawWithoutWeight: samples of weight 0 are no first centres.
func TestDrawWithoutWeight(t *testing.T) {
	l := &datasettest.Listed{Described: dataset.Info{Rows: 30, Features: 1, Labels: 2, HasWeights: true}}
	for i := range l.Described.Rows {
		l.Rows = append(l.Rows, dataset.Row{Number: i, Weight: float64(i % 3), Values: []float64{1}, Labels: []float64{0, 1}})
	}
	m, shards := datatest.Build(t, l)
	d := datatest.Data(t, m, shards, dataset.Split{}, nil)
	drawn := draw(30, num.NewKey(11, "ldl-ldm/start"), &round.Task{Of: 1, Roles: dataset.Train}, d)
	for _, e := range drawn {
		if e.row%3 == 0 {
			t.Errorf("sample %d of weight 0 is drawn", e.row)
		}
	}
	if len(drawn) != 20 {
		t.Errorf("%d samples are drawn, want 20", len(drawn))
	}
}

// TestDistanceOfNothing: products that are all zero, and one label, give finite matrices.
func TestDistanceOfNothing(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		for _, v := range distance(linalg.New(n, n)).V {
			if v-v != 0 {
				t.Errorf("%d labels: %v", n, v)
			}
		}
	}
}

// TestTrains: with few rows there is one cluster; with equal labels and with two labels a job ends with a
// model that is no worse than the mean.
func TestTrains(t *testing.T) {
	for name, o := range map[string]generate.Options{
		"few rows": {Rows: 60, Features: 3, Labels: 4, Density: 1, Seed: 1}, "two labels": {Rows: 200, Features: 3, Labels: 2,
			Density: 1, Seed: 1},
		"equal labels": {Rows: 200, Features: 3, Labels: 3, Density: 1, Seed: 1},
	} {
		m, shards := problem(t, o)
		if name == "equal labels" {
			equalLabels(shards)
		}
		j := contract.Job(t, New(), param.Values{"validation_fraction": 0.0}, m, dataset.Split{})
		d := datatest.Data(t, m, shards, j.Split, nil)
		tr := contract.Train(t, New(), j, d, 2, nil).(*trainer)
		if want := map[bool]int{true: 1, false: 10}[m.Rows < 100]; tr.cfg.Clusters != want {
			t.Errorf("%s: %d clusters", name, tr.cfg.Clusters)
		}
		model, err := tr.Model()
		if err != nil {
			t.Fatal(err)
		}
		if !num.Finite64(model.(*maxent.Model).Weights) || tr.Progress().Loss > 0.5 {
			t.Errorf("%s: progress %+v", name, tr.Progress())
		}
	}
}

// TestCollectedIsChecked: bytes that no unit draws end the job with an error.
func TestCollectedIsChecked(t *testing.T) {
	m, _ := problem(t, generate.Options{Rows: 200, Features: 3, Labels: 2, Density: 1, Seed: 1})
	j := contract.Job(t, New(), param.Values{"preset": "paper", "scaling": "none"}, m, dataset.Split{})
	for _, b := range [][]byte{{1}, bytes.Repeat([]byte{0xff}, entryBytes(2)), make([]byte, 2*entryBytes(2)),
		make([]byte, 11*entryBytes(2))} {
		tr, err := New().NewTrainer(j, m, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := tr.Fold(&round.Result{Gathered: [][]byte{b}}); !errors.Is(err, errEntries) {
			t.Errorf("%d bytes: error %v", len(b), err)
		}
	}
	tr, err := New().NewTrainer(j, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Fold(&round.Result{Gathered: [][]byte{nil}}); !errors.Is(err, algorithms.ErrNoRows) {
		t.Errorf("no rows: error %v", err)
	}
}

// TestTooManyProducts: the setting is named, with the numbers.
func TestTooManyProducts(t *testing.T) {
	_, err := New().Resolve(nil, &dataset.Manifest{Rows: 1000, Features: 2, Labels: 5000, NonZeros: 2000})
	if wrong, ok := errors.AsType[*param.Error](err); !ok || wrong.Name != "clusters" {
		t.Errorf("error %v", err)
	}
}
