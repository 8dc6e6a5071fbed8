package ndf_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"flag"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/ndf"
	"github.com/coppice-ldl/coppice/algorithms/rf"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
)

var tables = flag.Bool("tables", false, "measure all rows of the tables of DESIGN.md, which takes minutes")

// problem is a dataset whose rows are training or test rows.
type problem struct {
	manifest *dataset.Manifest
	shards   []*dataset.Rows
	roles    []dataset.Roles
}

func (p *problem) data() *dataset.Data {
	d := dataset.NewData(p.manifest, p.roles)
	for i, rows := range p.shards {
		d.SetShard(i, rows)
	}
	return d
}

// digits returns the digits with each of the three test sets of 30 %.
func digits(t testing.TB) (list []*problem) {
	t.Helper()
	src, err := read.Open(testkit.Shared(t, "data/digits.csv.gz"), read.OpenOptions{CSV: read.CSVOptions{Header: "no"},
		Labels: read.LabelOptions{Kind: dataset.Class, Columns: []string{"last"}}})
	if err != nil {
		t.Fatal(err)
	}
	m, shards := datatest.Build(t, src)
	text, err := os.ReadFile(testkit.Shared(t, "folds/digits-70-30.csv"))
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for k := range 3 {
		p := &problem{manifest: m, shards: shards, roles: make([]dataset.Roles, m.Rows)}
		for _, line := range lines[1:] {
			row, err := strconv.Atoi(line[0])
			if err != nil {
				t.Fatal(err)
			}
			p.roles[row] = dataset.Train
			if line[1+k] == "1" {
				p.roles[row] = dataset.Test
			}
		}
		list = append(list, p)
	}
	return list
}

// train trains a model.
func (p *problem) train(t testing.TB, a algorithms.Algorithm, seed uint64, given param.Values) algorithms.Model {
	t.Helper()
	r, err := a.Resolve(given, p.manifest)
	if err != nil {
		t.Fatal(err)
	}
	j := &round.Job{Algorithm: a.Name(), Numerics: round.Numerics, Seed: seed, Params: r.Params}
	tr, err := a.NewTrainer(j, p.manifest, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := a.NewKernel(j, p.manifest)
	if err != nil {
		t.Fatal(err)
	}
	none := func(uint64, round.Trainer) error { return nil }
	if err := engine.Drive(context.Background(), tr, 0, engine.NewLocal(k, p.data(), 1, nil), none); err != nil {
		t.Fatal(err)
	}
	model, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// score returns the measures of classes of a model on the test rows.
func (p *problem) score(m algorithms.Model) *measures.Classes {
	d := p.data()
	refs := d.Select(0, len(p.shards), dataset.Test)
	labels := p.manifest.Labels
	predicted := make([]float32, len(refs)*labels)
	shard := func(i uint32) *dataset.Rows { return p.shards[i] }
	m.Predict(predicted, refs, shard, m.NewScratch())
	plan := measures.Plan{Labels: labels, Type: p.manifest.LabelType}
	sums := make([]float64, plan.Width())
	for i, ref := range refs {
		plan.Add(sums, shard(ref.Shard), int(ref.Pos), predicted[i*labels:(i+1)*labels])
	}
	_, added := plan.Read(sums)
	return added.Classes
}

// values returns settings with their types.
func values(pairs ...any) param.Values {
	v := make(param.Values)
	for i := 0; i < len(pairs); i += 2 {
		value := pairs[i+1]
		if n, ok := value.(int); ok {
			value = int64(n)
		}
		v[pairs[i].(string)] = value
	}
	return v
}

// accuracy returns the mean accuracy over the test sets of the digits, its deviation, and the
// seconds of training.
func accuracy(t testing.TB, sets []*problem, a algorithms.Algorithm, v param.Values) (mean, deviation,
	seconds float64) {
	t.Helper()
	square := 0.0
	for i, p := range sets {
		begin := time.Now()
		m := p.train(t, a, uint64(i+1), v)
		seconds += time.Since(begin).Seconds() / float64(len(sets))
		x := p.score(m).Accuracy.Mean
		mean += x / float64(len(sets))
		square += x * x / float64(len(sets))
	}
	return mean, math.Sqrt(max(0, square-mean*mean)), seconds
}

// TestDigits holds the accuracy on the digits, the mean over three test sets, against that of
// an independent implementation less what its deviation allows.
func TestDigits(t *testing.T) {
	if testing.Short() || testkit.Race {
		t.Skip("takes seconds")
	}
	sets := digits(t)
	for _, c := range []struct {
		name  string
		least float64
		set   param.Values
	}{
		{"hard", 0.962, values("routing", "hard")},
		{"soft", 0.967, values("routing", "soft")},
		{"three trees", 0.94, values("routing", "hard", "trees", 3)},
		{"one tree", 0.87, values("routing", "hard", "trees", 1)},
		{"paper", 0.96, values("preset", "paper")},
		{"auto", 0.967, nil},
	} {
		mean, deviation, seconds := accuracy(t, sets, ndf.New(), c.set)
		t.Logf("%s: %.4f ± %.4f, %.2f s", c.name, mean, deviation, seconds)
		if mean < c.least {
			t.Errorf("%s: accuracy %.4f, want %.3f or more", c.name, mean, c.least)
		}
	}
}

// TestDigitsTable measures variants of the networks, and forests of other splits.
func TestDigitsTable(t *testing.T) {
	if !*tables {
		t.Skip("-tables is not given")
	}
	sets := digits(t)
	line := func(name string, a algorithms.Algorithm, v param.Values) {
		mean, deviation, seconds := accuracy(t, sets, a, v)
		fmt.Printf("| %s | %.4f ± %.4f | %.2f |\n", name, mean, deviation, seconds)
	}
	for _, hidden := range []string{"0", "8", "adaptive", "2-16"} {
		for _, l1 := range []float64{0, 1e-4, 1e-3, 1e-2} {
			for _, routing := range []string{"hard", "soft"} {
				for _, trees := range []int{10, 3, 1} {
					if trees < 10 && (routing == "soft" || l1 > 1e-4) {
						continue
					}
					line(fmt.Sprintf("ndf hidden %s, l1 %g, %s, %d trees", hidden, l1, routing, trees), ndf.New(),
						values("hidden", hidden, "l1", l1, "routing", routing, "trees", trees))
				}
			}
		}
	}
	line("ndf untrained, hard, 10 trees", ndf.New(), values("iters", 0, "starts", 50, "routing", "hard"))
	for _, features := range []string{"sqrt", "all"} {
		for _, trees := range []int{10, 3, 1} {
			line(fmt.Sprintf("rf depth 5, %s, %d trees", features, trees), rf.New(),
				values("trees", trees, "max_depth", 5, "features", features, "min_samples", 10, "sampling_ratio", 1.0))
		}
	}
	line("rf depth 60, sqrt, min 2, 200 trees", rf.New(), values("trees", 200, "max_depth", 60, "features", "sqrt",
		"min_samples", 2, "sampling_ratio", 1.0))
}

// TestTextures: on textures, of which one pixel says nothing, forests of networks have a mean
// Jaccard index that is higher than that of forests of the same number of trees that test features,
// and three trees of networks have a higher one than eight of the others.
func TestTextures(t *testing.T) {
	testkit.Large(t)
	seeds := []uint64{1}
	if *tables {
		seeds = []uint64{1, 2, 3, 4, 5}
	}
	for _, seed := range seeds {
		p := textured(t, seed)
		networks, tests := map[int]float64{}, map[int]float64{}
		for trees, least := range map[int]float64{1: 0.76, 3: 0.82, 8: 0.87} {
			begin := time.Now()
			m := p.train(t, ndf.New(), seed, values("trees", trees, "routing", "hard"))
			seconds := time.Since(begin).Seconds()
			networks[trees] = p.score(m).MeanJaccard.Mean
			tests[trees] = p.score(p.train(t, rf.New(), seed, values("trees", trees, "max_depth", 5, "min_samples", 10,
				"sampling_ratio", 1.0))).MeanJaccard.Mean
			t.Logf("seed %d, %d trees: networks %.3f (%.1f s), tests of features %.3f", seed, trees, networks[trees], seconds,
				tests[trees])
			if networks[trees] < least || networks[trees] < tests[trees]+0.05 {
				t.Errorf("seed %d, %d trees: Jaccard %.3f, want %.2f or more, and .05 more than %.3f", seed, trees, networks[trees],
					least, tests[trees])
			}
		}
		if networks[3] <= tests[8] {
			t.Errorf("seed %d: three trees have %.3f, eight that test features %.3f", seed, networks[3], tests[8])
		}
	}
}

// TestTexturesTable measures variants of both forests on textures.
func TestTexturesTable(t *testing.T) {
	if !*tables {
		t.Skip("-tables is not given")
	}
	type variant struct {
		name string
		a    algorithms.Algorithm
		set  []any
	}
	full := []any{"sampling_ratio", 1.0, "max_depth", 60, "min_samples", 2}
	list := []variant{
		{name: "ndf hard", a: ndf.New(), set: []any{"routing", "hard"}},
		{name: "ndf hard, l1 1e-4", a: ndf.New(), set: []any{"routing", "hard", "l1", 1e-4}},
		{name: "ndf soft", a: ndf.New(), set: []any{"routing", "soft"}},
		{name: "ndf perceptron", a: ndf.New(), set: []any{"routing", "hard", "hidden", "0"}},
		{name: "ndf adaptive", a: ndf.New(), set: []any{"routing", "hard", "hidden", "adaptive"}},
		{name: "rf depth 5, all", a: rf.New(), set: []any{"sampling_ratio", 1.0, "max_depth", 5, "min_samples", 10}},
		{name: "rf depth 10, all", a: rf.New(), set: []any{"sampling_ratio", 1.0, "max_depth", 10, "min_samples", 10}},
		{name: "rf full, all", a: rf.New(), set: full},
	}
	for seed := uint64(1); seed <= 3; seed++ {
		p := textured(t, seed)
		for _, v := range list {
			var cells []string
			for _, trees := range []int{1, 3, 8} {
				begin := time.Now()
				m := p.train(t, v.a, seed, values(append([]any{"trees", trees}, v.set...)...))
				cells = append(cells, fmt.Sprintf("%.3f (%.1f s)", p.score(m).MeanJaccard.Mean, time.Since(begin).Seconds()))
			}
			fmt.Printf("| seed %d, %s | %s |\n", seed, v.name, strings.Join(cells, " | "))
		}
		m := p.train(t, rf.New(), seed, values(append([]any{"trees", 100, "features", "sqrt"}, full...)...))
		fmt.Printf("| seed %d, rf full, sqrt, 100 trees | %.3f |\n", seed, p.score(m).MeanJaccard.Mean)
	}
}
