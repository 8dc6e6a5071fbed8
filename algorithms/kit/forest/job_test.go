package forest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/num"
)

func digest(t testing.TB, trees []*Tree, features, labels int) string {
	t.Helper()
	return modelfile.Digest("forest", newModel(trees, features, labels).Tensors())
}

// variants are settings that between them go through all of the search.
func variants() map[string]Config {
	list := map[string]Config{}
	for name, change := range map[string]func(*Config){
		"plain":    func(*Config) {},
		"adaptive": func(c *Config) { c.Step = stepAdaptive },
		"half":     func(c *Config) { c.Features = "0.5" },
		"sqrt":     func(c *Config) { c.Features = featuresSqrt },
		"shallow":  func(c *Config) { c.MaxDepth, c.MinSamples, c.SamplingRatio = 3, 9, 0.5 },
	} {
		c := smallConfig()
		change(&c)
		list[name] = c
	}
	return list
}

// TestGoldenDigests pins the bits of small forests: a change here is a change of
// algorithms.Numerics. Storage, shards and slots do not matter.
func TestGoldenDigests(t *testing.T) {
	want := map[string]string{
		"many adaptive": "c832af550f2b8e46b79d5437ee73f237d0bd5b48106c3c1976eea7b3d4a10113",
		"many half":     "30b5afba6922c4bf75948ebbb8e3371029a552e59e0b47589e82e03cf7485415",
		"many plain":    "6a1d6bee7f51e214d2194b8135b784c1df23752f6f2f476462f282abf9c63caa",
		"many shallow":  "d147e3764fdbb365afb8b5f261118387ceddad68c3fc6263526d6f5e679b9cee",
		"many sqrt":     "8c0c6d95104d10b3180755e82d91464ed44b983b7e3b62fe39f8da356c79e695",
		"two adaptive":  "73803ac87f4d2bcf41b7140f8da4c9c41d9dc3382ede0dc31fe6ed91e7a594d5",
		"two half":      "a0740ad8ecb84f8d7e669f7f90d930165be4bd4162692f54e20d8b1ae2f54c4f",
		"two plain":     "aa44332494251c1da0f0e384853000c1e6671dad9200ec1d8da8b783f006eec8",
		"two shallow":   "0b19be760ad15624f2c7540200f3c82505bae79a12fe80b18e4925495883923b",
		"two sqrt":      "c56a58a945f5b9e63ec06d59463afb97e3e6ef5152308378e784594ab37e6316",
	}
	p := makeProblem(4, 300, 25, 3, 0.5)
	for family, f := range families {
		for name, c := range variants() {
			key := family + " " + name
			seen := map[string]bool{}
			for _, sparse := range []bool{false, true} {
				for _, shards := range []int{1, 8} {
					for _, lanes := range []int{1, 3} {
						d := p.data(shards, sparse, dataset.Split{})
						seen[digest(t, growTrees(t, f, c, 3, d, lanes), p.features, p.labels)] = true
					}
				}
			}
			if len(seen) != 1 {
				t.Errorf("%s: storage, shards or lanes change the digest", key)
			}
			if !seen[want[key]] {
				for got := range seen {
					t.Errorf("%q: %q,", key, got)
				}
			}
		}
	}
}

// TestSample: a sample has the stated number of draws, its rows are in the order of
// row numbers, and another tree or seed has another one.
func TestSample(t *testing.T) {
	p := makeProblem(1, 200, 3, 2, 1)
	c := smallConfig()
	d := p.data(4, false, dataset.Split{Seed: 1, TestFraction: 0.1})
	tab, err := newTable(&c, d, d.Select(0, 4, dataset.Train))
	if err != nil {
		t.Fatal(err)
	}
	if tab.draws != 144 {
		t.Errorf("%d draws of 180 rows, want 144", tab.draws)
	}
	var first []uint32
	for tree := range uint32(3) {
		g := newKernel(families["two"], c, 1, d).newGrower()
		g.drawSample(tab, tree)
		sum := uint32(0)
		for i, w := range g.sample.Weight {
			sum += w
			if i > 0 && g.origin[i-1] >= g.origin[i] {
				t.Fatal("rows are not ascending")
			}
			shard, pos := tab.At(g.origin[i])
			if w == 0 || !slices.Equal(g.sample.Label(uint32(i)), shard.Label(pos)) || d.Role(shard.Row[pos]) != dataset.Train {
				t.Fatalf("row %d of the sample is wrong", i)
			}
		}
		if int(sum) != tab.draws {
			t.Errorf("tree %d has %d draws", tree, sum)
		}
		if tree > 0 && slices.Equal(first, g.origin) {
			t.Errorf("trees 0 and %d have the same sample", tree)
		}
		first = append(first[:0], g.origin...)
	}
}

// TestChooser: exactly the stated number of features, each as often as the others,
// the same however they are asked for.
func TestChooser(t *testing.T) {
	cfg := *settings.Default()
	cfg.Features = "0.3"
	var marking, asking featureSampler
	marking.key = num.NewKey(1, "test")
	asking.key = marking.key
	marking.begin(&cfg, 2, 30)
	asking.begin(&cfg, 2, 30)
	counts := make([]int, 30)
	const nodes = 20_000
	for path := range uint64(nodes) {
		marking.draw(path, 30)
		asking.draw(path, 1)
		n := 0
		for f := range uint32(30) {
			if marking.tries(f) != asking.tries(f) {
				t.Fatalf("feature %d of node %d depends on how it is asked for", f, path)
			}
			if marking.tries(f) {
				n++
				counts[f]++
			}
		}
		if n != 9 || len(marking.sorted()) != 9 {
			t.Fatalf("node %d tries %d features, want 9", path, n)
		}
	}
	for f, n := range counts { // mean 6000, deviation 65
		if n < 6000-5*65 || n > 6000+5*65 {
			t.Errorf("feature %d was tried at %d of %d nodes", f, n, nodes)
		}
	}
}

// TestGrowDoesNotAllocate: once a grower is warm, trees allocate nothing by node.
func TestGrowDoesNotAllocate(t *testing.T) {
	p := makeProblem(6, 400, 30, 3, 0.3)
	for name, c := range variants() {
		for _, f := range families {
			d := p.data(4, true, dataset.Split{})
			tab, err := newTable(&c, d, d.Select(0, 4, dataset.Train))
			if err != nil {
				t.Fatal(err)
			}
			g := newKernel(f, c, 1, d).newGrower()
			grow := func() {
				if _, err := g.grow(t.Context(), tab, 1); err != nil {
					t.Fatal(err)
				}
			}
			grow()
			if n := testing.AllocsPerRun(5, grow); n > 2 {
				t.Errorf("%s, %s: %v allocations for a tree of %d nodes", f.Name, name, n, g.tree.Nodes())
			}
		}
	}
}

// TestCancel: a grower stops soon after nobody wants its tree any more.
func TestCancel(t *testing.T) {
	p := makeProblem(6, 2000, 5, 3, 1)
	d := p.data(4, false, dataset.Split{})
	k := newKernel(families["two"], smallConfig(), 1, d)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	u := round.Task{Of: 1, Op: OpGrow, Scope: round.Whole, Roles: dataset.Train}
	if _, err := k.Gather(ctx, u, d, nil, k.NewScratch()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestUnusableRows: splits that leave too few rows end with a line that says so.
func TestUnusableRows(t *testing.T) {
	p := makeProblem(6, 20, 2, 2, 1)
	c := smallConfig()
	c.MinSamples = 15
	u := round.Task{Of: 1, Op: OpGrow, Scope: round.Whole, Roles: dataset.Train}
	for fraction, want := range map[float64]string{0.5: "but a node needs 15 to be split",
		0.99: "but a node needs 15 to be split"} {
		d := p.data(1, false, dataset.Split{Seed: 1, TestFraction: fraction})
		k := newKernel(families["two"], c, 1, d)
		_, err := k.Gather(context.Background(), u, d, nil, k.NewScratch())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("test fraction %v: error %v", fraction, err)
		}
	}
	d := p.data(1, false, dataset.Split{Seed: 1, TestFraction: 0.9999999})
	k := newKernel(families["two"], c, 1, d)
	u.Roles = dataset.Validation
	if _, err := k.Gather(context.Background(), u, d, nil, k.NewScratch()); err == nil ||
		!strings.Contains(err.Error(), "no training samples are left") {
		t.Errorf("no rows: error %v", err)
	}
}

// TestTrainerChecksTheSplit: where the split leaves too few rows, nothing is begun.
func TestTrainerChecksTheSplit(t *testing.T) {
	m := &dataset.Manifest{Rows: 40, Features: 2, Labels: 2}
	j := testJob(t, param.Values{"preset": "paper"}, m)
	if _, err := families["two"].New().NewTrainer(j, m, nil); err != nil {
		t.Error(err)
	}
	j.Split = dataset.Split{Seed: 1, TestFraction: 0.5}
	_, err := families["two"].New().NewTrainer(j, m, nil)
	var param *param.Error
	if !errors.As(err, &param) || param.Name != "min_samples" {
		t.Errorf("error %v", err)
	}
}

func testJob(t *testing.T, given param.Values, m *dataset.Manifest) *round.Job {
	t.Helper()
	r, err := families["two"].New().Resolve(given, m)
	if err != nil {
		t.Fatal(err)
	}
	return &round.Job{Algorithm: "two", Numerics: round.Numerics, Seed: 1, Params: r.Params}
}

// stateTest is a job whose trainer is restored from its state again and again.
type stateTest struct {
	*testing.T
	job *round.Job
	d   *dataset.Data
	tr  algorithms.Trainer
}

func newStateTest(t *testing.T) *stateTest {
	p := makeProblem(6, 60, 4, 3, 1)
	s := &stateTest{T: t, d: p.data(2, false, dataset.Split{})}
	s.job = testJob(t, param.Values{"trees": int64(3), "min_samples": int64(2)}, s.d.Manifest)
	s.tr = s.trainer(nil)
	return s
}

func (s *stateTest) trainer(state []byte) algorithms.Trainer {
	s.Helper()
	tr, err := families["two"].New().NewTrainer(s.job, s.d.Manifest, state)
	if err != nil {
		s.Fatal(err)
	}
	return tr
}

// restore goes on with a trainer restored from the state of the one before.
func (s *stateTest) restore() {
	s.Helper()
	state, err := s.tr.AppendState([]byte("before"))
	if err != nil {
		s.Fatal(err)
	}
	again := s.trainer(state[len("before"):])
	second, _ := again.AppendState(nil)
	if !bytes.Equal(second, state[len("before"):]) || again.Progress() != s.tr.Progress() {
		s.Fatal("a restored trainer is another")
	}
	s.tr = again
}

// parts grows the round's trees.
func (s *stateTest) parts() (parts [][]byte) {
	s.Helper()
	r, _ := s.tr.Next()
	if r == nil || r.Tasks != 3 || r.Scope != round.Whole || r.Gather() == nil || r.Roles != dataset.Train {
		s.Fatalf("round %+v", r)
	}
	c, err := settings.Parse(s.job.Params)
	if err != nil {
		s.Fatal(err)
	}
	k := newKernel(families["two"], *c, s.job.Seed, s.d)
	for id := range r.Tasks {
		part, err := k.Gather(s.Context(), r.Task(id), s.d, nil, k.NewScratch())
		if err != nil {
			s.Fatal(err)
		}
		parts = append(parts, part)
	}
	return parts
}

// TestStateCuts: a trainer restored before or after the round goes on as it was.
func TestStateCuts(t *testing.T) {
	s := newStateTest(t)
	s.restore()
	if _, err := s.tr.Model(); err == nil {
		t.Error("there is a model before the round")
	}
	if err := s.tr.Fold(&round.Result{Gathered: s.parts()}); err != nil {
		t.Fatal(err)
	}
	s.restore()
	if r, _ := s.tr.Next(); r != nil {
		t.Error("the job goes on")
	}
	if p := s.tr.Progress(); p.Step != 3 || p.Steps != 3 || p.Samples != 3*48 || p.Loss < 0 {
		t.Errorf("progress %+v", p)
	}
	if n := s.tr.(*trainer).Counters()["gain_evaluations"]; n == 0 {
		t.Error("no gain evaluations were counted")
	}
}

// TestPieces: the pieces of the model are the results of the units, by the digests that the executor told
// or that a restored trainer finds itself, and the kernel composes the model of them.
func TestPieces(t *testing.T) {
	s := newStateTest(t)
	parts, digests := s.parts(), make([]string, 3)
	for i := range parts {
		digests[i] = blobs.Sum(parts[i])
	}
	told := []string{digests[0], "", "of the executor"}
	if err := s.tr.Fold(&round.Result{Gathered: slices.Clone(parts), Digests: told}); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{{digests[0], digests[1], told[2]}, digests} {
		pieces := s.tr.(algorithms.Composite).Pieces()
		for i, p := range pieces {
			if b, err := p.Bytes(); err != nil || !bytes.Equal(b, parts[i]) || p.Digest() != want[i] {
				t.Errorf("piece %d: %d bytes of %s, error %v; want %d of %s", i, len(b), p.Digest(), err, len(parts[i]), want[i])
			}
		}
		m, err := newKernel(families["two"], smallConfig(), 1, s.d).Compose(pieces)
		if err != nil {
			t.Fatal(err)
		}
		of, err := s.tr.Model()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := modelfile.Digest("two", m.Tensors()), modelfile.Digest("two", of.Tensors()); got != want {
			t.Errorf("the composed model has digest %s, the trainer's %s", got, want)
		}
		s.restore()
	}
}

// TestTrainerRefuses: rounds and states that are not the job's.
func TestTrainerRefuses(t *testing.T) {
	s := newStateTest(t)
	parts := s.parts()
	if err := s.tr.Fold(&round.Result{Gathered: parts[:2]}); err == nil {
		t.Error("a round of two trees was taken")
	}
	if err := s.tr.Fold(&round.Result{Gathered: [][]byte{parts[0], parts[1], parts[2][:9]}}); !errors.Is(err, ErrTree) {
		t.Errorf("a corrupt tree: error %v", err)
	}
	if err := s.tr.Fold(&round.Result{Gathered: parts}); err != nil {
		t.Fatal(err)
	}
	state, _ := s.tr.AppendState(nil)
	for _, bad := range [][]byte{{}, {9}, state[:20], state[:len(state)-1], append(slices.Clone(state), state[1:]...)} {
		if _, err := families["two"].New().NewTrainer(s.job, s.d.Manifest, bad); !errors.Is(err, fields.ErrState) {
			t.Errorf("%d bytes of state: error %v", len(bad), err)
		}
	}
}

// TestSettings: each wrong setting is named, with what would be right.
func TestSettings(t *testing.T) {
	m := &dataset.Manifest{Rows: 100, Features: 9, Labels: 3}
	a := families["two"].New()
	for want, given := range map[string]param.Values{
		"trees: 0 is not a whole number from 1":                                 {"trees": int64(0)},
		"max_depth: 0 is not a whole number from 1":                             {"max_depth": int64(0)},
		"max_depth: 61 is not":                                                  {"max_depth": int64(61)},
		"sampling_ratio: 0 is not a number from 0.0001":                         {"sampling_ratio": 0.0},
		"sampling_ratio: 1.5 is not a number":                                   {"sampling_ratio": 1.5},
		"min_samples: 1 is not a whole number from 2":                           {"min_samples": int64(1)},
		"min_samples: a sampling_ratio of 0.8 of 100 training samples makes 80": {"min_samples": int64(81)},
		`features: "none": want all, sqrt, or a fraction`:                       {"features": "none"},
		`features: "0": want`:                                                   {"features": "0"},
		`features: "1.5": want`:                                                 {"features": "1.5"},
		`features: "0x1p-1": want`:                                              {"features": "0x1p-1"},
		`step: "slow" is not exhaustive or adaptive`:                            {"step": "slow"},
		"alpha: 0 is not a number":                                              {"alpha": 0.0},
		"beta: -1 is not a number":                                              {"beta": -1.0},
		"depth: two has no such setting":                                        {"depth": int64(5), "zeal": 1.0},
		"trees: a float64 is not a whole number":                                {"trees": 5.0},
	} {
		_, err := a.Resolve(given, m)
		var param *param.Error
		if !errors.As(err, &param) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: error %v, want %s...", given, err, want)
		}
	}
	if _, err := a.Resolve(nil, &dataset.Manifest{Rows: 100, Features: 9}); err == nil ||
		!strings.Contains(err.Error(), "no labels") {
		t.Errorf("a dataset without labels: error %v", err)
	}
}

// TestDefaults: the defaults of both presets, all of them written down. Preset auto is the default, and its min_samples
// is at most a fifth of the samples.
func TestDefaults(t *testing.T) {
	const others = `"features":"all","step":"exhaustive","alpha":0.25,"beta":8}`
	const paper = `{"trees":50,"max_depth":20,"sampling_ratio":0.8,"min_samples":20,` + others
	for _, c := range []struct {
		given param.Values
		rows  int
		want  string
	}{
		{nil, 100, `{"trees":60,"max_depth":20,"sampling_ratio":0.8,"min_samples":15,` + others},
		{param.Values{"preset": "auto"}, 74, `{"trees":60,"max_depth":20,"sampling_ratio":0.8,"min_samples":14,` + others},
		{nil, 5, `{"trees":60,"max_depth":20,"sampling_ratio":0.8,"min_samples":2,` + others},
		{param.Values{"preset": "auto", "min_samples": int64(16)}, 74,
			`{"trees":60,"max_depth":20,"sampling_ratio":0.8,"min_samples":16,` + others},
		{param.Values{"preset": "paper"}, 100, paper},
		{param.Values{"preset": "paper"}, 74, paper},
	} {
		r, err := families["two"].New().Resolve(c.given, &dataset.Manifest{Rows: c.rows, Features: 9, Labels: 3})
		if err != nil || string(r.Params) != c.want || r.ValidationFraction != 0 {
			t.Errorf("%v, %d rows: %s, error %v, want %s", c.given, c.rows, r.Params, err, c.want)
		}
	}
	for _, bad := range []string{`{"trees":50}`, strings.Replace(paper, `"trees"`, `"more":1,"trees"`, 1), `{`} {
		if _, err := settings.Parse(json.RawMessage(bad)); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
	for text, tried := range map[string]int{"all": 30, "sqrt": 5, "0.5": 15, "0.01": 1, "1": 30, "1e-1": 3} {
		c := Config{Features: text}
		if got := c.tried(30); got != tried {
			t.Errorf("features %s: %d of 30 are tried, want %d", text, got, tried)
		}
	}
}
