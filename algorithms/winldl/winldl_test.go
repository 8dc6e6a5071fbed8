package winldl_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/winldl"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/harness/testkit/fittest"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/protocol"
)

// cases are the jobs of the golden digests and of the fuzz targets.
var cases = []contract.Case{
	{Name: "paper", Set: param.Values{"preset": "paper", "iterations": int64(30)}},
	{Name: "auto", Set: param.Values{"iterations": int64(20)}},
	{Name: "minmax", Set: param.Values{"iterations": int64(20), "scaling": "minmax", "rho": 0.5}},
}

func FuzzRestore(f *testing.F)  { contract.FuzzRestore(f, winldl.New(), contract.Sets(cases)...) }
func FuzzSettings(f *testing.F) { contract.FuzzSettings(f, winldl.New(), contract.Sets(cases)...) }
func FuzzDecodeModel(f *testing.F) {
	contract.FuzzDecodeModel(f, winldl.New(), contract.Sets(cases)...)
}

// TestDigests pins the bits of small jobs.
func TestDigests(t *testing.T) {
	fittest.Digests(t, winldl.New(), cases, map[string]string{
		"paper":         "c2892ab2d44017dc227b43a40d376fcb6f351a09ed7a8ff4aecb8b3b288418a3",
		"auto":          "825998e80b235fbc3c100633de71507b3a794d33764e2c1bcb0764194546be95",
		"minmax":        "4564527ce501cc0b1d72566b97b1b4786e5409b54d7197f4de4d0e9312d968f3",
		"paper sparse":  "39b7da4d44b0831fce04c1901d8a54436a3ab0d58a86262681a0e5821596a47a",
		"auto sparse":   "834db05958c2fae4bd797b6970e63d52d505d1f72b43008fd5372965a0b9c254",
		"minmax sparse": "a5ca637ad9cd925eb2bc3cd5101cca58ab3034f409646bb6a8dcfd25c03a7d16",
	})
}

// TestMaskedDigests pins the bits of small jobs on incomplete labels.
func TestMaskedDigests(t *testing.T) {
	fittest.MaskedDigests(t, winldl.New(), dataset.Mask{Rate: 0.6, Unlabelled: 0.1}, cases, map[string]string{
		"paper":         "16d848555e78b06e247de3cc8c7a63b729bfeaad34052757040aa081ae851447",
		"auto":          "cbfc932817c789b44483d6db2c4a71acbbb436e5ff13dee3171f3b0421c89da1",
		"minmax":        "8e590acff87d1ab2d1c294b671a823d307c87c991d66c0abf4e3843c2b95399f",
		"paper sparse":  "0446d21013fcd4f08ac073ffb3167899aa23437e51383bae2715fee45c912061",
		"auto sparse":   "79a0429d067fb4a31af77662917a72144c774e6ef548bdc5338bbaffecf3d6a5",
		"minmax sparse": "adf31f92d0222c136bcf905c98a9ba8a3b4b1a17114cd876f12868b16829f685",
	})
}

// TestObjectives: the objective on the first fold of SJAFFE, in which 80 % of the degrees are missing, after 1, 2 and
// 10 steps equals NumPy's.
func TestObjectives(t *testing.T) {
	f := fittest.Open(t, "SJAFFE")
	f.Mask = dataset.Mask{Rate: 0.8, Golden: true}
	got := map[uint64]float64{}
	f.First(t, winldl.New(), param.Values{"preset": "paper", "absolute": 0.0, "relative": 0.0},
		func(tr algorithms.Trainer, _ *dataset.Data) {
			step, value := winldl.Objective(tr)
			got[step] = value
		})
	for step, want := range map[uint64]float64{1: .174687, 2: .265905, 10: .044696} {
		t.Logf("objective %.6f after %d steps, of NumPy %.6f", got[step], step, want)
		if !(math.Abs(got[step]-want) <= 2e-6) {
			t.Errorf("objective %.7f after %d steps", got[step], step)
		}
	}
}

// TestFolds: the measures on ten folds equal NumPy's, where degrees of the training samples are missing. PyLDL, which
// begins with other values and other masks, has .0997, .3883, .7812, .0739, .9477 and .8699 with 80 % missing.
func TestFolds(t *testing.T) {
	for _, c := range []struct {
		name string
		rate float64
		want [6]float64
	}{
		{"SJAFFE", 0.5, [6]float64{.0914, .3929, .7771, .0554, .9548, .8763}},
		{"SJAFFE", 0.8, [6]float64{.0990, .3995, .8012, .0704, .9481, .8689}},
		{"Yeast_spo5", 0.8, [6]float64{.0925, .1861, .2862, .0302, .9733, .9075}},
	} {
		f := fittest.Open(t, c.name)
		f.Mask = dataset.Mask{Rate: c.rate, Golden: true}
		f.Measures(t, winldl.New(), param.Values{"preset": "paper"}, 0.02, c.want)
	}
}

// TestReplay: a worker that did not compute the steps before, or has no memory for their state, returns the same sums,
// and so do two executors that compute a task at the same time.
func TestReplay(t *testing.T) {
	m, shards := fittest.Problem(t, generate.Options{Rows: 200, Features: 6, Labels: 4, Density: 1, Seed: 2})
	mask := dataset.Mask{Rate: 0.5}
	set := param.Values{"iterations": int64(70), "absolute": 0.0, "relative": 0.0}
	j := contract.Job(t, winldl.New(), set, m, dataset.Split{Seed: 5, Mask: mask})
	d := datatest.Data(t, m, shards, j.Split, nil).Masked(mask, 5)
	kernel, err := winldl.New().NewKernel(j, m)
	if err != nil {
		t.Fatal(err)
	}
	k, states := kernel.(round.ReduceKernel), make(map[int]round.Derived)
	tr, err := winldl.New().NewTrainer(j, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	for steps := 0; ; {
		r, err := tr.Next()
		if err != nil {
			t.Fatal(err)
		}
		if r == nil {
			if steps < 70 {
				t.Errorf("only %d steps", steps)
			}
			return
		}
		if len(r.Vars) > protocol.MaxVars {
			t.Fatalf("a round has %d values", len(r.Vars))
		}
		sum := make([]float64, r.Reduce().Shape.F64)
		for task := range r.Tasks {
			u := r.Task(task)
			if u.DerivedVersion > 0 && states[task] == nil {
				if states[task], err = k.Derive(u, d, r.Vars, nil); err != nil || states[task].Bytes() < 16*4*len(u.Rows(d)) {
					t.Fatalf("a state: %v, %v", states[task], err)
				}
				u.Reserve = func(int) bool { return false }
				if none, err := k.Derive(u, d, r.Vars, nil); none != nil || err != nil {
					t.Fatalf("a state without memory: %v, %v", none, err)
				}
			}
			run := func(of round.Derived) []float64 {
				var p round.Partial
				p.Reset(r.Reduce().Shape)
				if err := k.Run(&p, r.Task(task), d, r.Vars, of, k.NewScratch()); err != nil {
					t.Error(err)
				}
				return p.F64
			}
			first, other := run(states[task]), make(chan []float64)
			go func() { other <- run(states[task]) }()
			for name, again := range map[string][]float64{"again": run(states[task]), "at the same time": <-other,
				"by another worker": run(nil)} {
				if !slices.Equal(first, again) {
					t.Fatalf("round %q, task %d, computed %s: other sums", r.Kind, task, name)
				}
			}
			for i, x := range first {
				sum[i] += x
			}
		}
		if r.Kind == "step" {
			steps++
		}
		if err := tr.Fold(&round.Result{Sum: &round.Partial{F64: sum}}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnseen: a label that is missing in all training samples is refused by name.
func TestUnseen(t *testing.T) {
	m, shards := fittest.Problem(t, generate.Options{Rows: 40, Features: 3, Labels: 3, Density: 1, Seed: 2})
	m.LabelNames = []string{"joy", "fear", "anger"}
	for _, r := range shards {
		r.Incomplete = true
		for i := range r.N {
			copy(r.Label(i)[1:], []float32{dataset.MissingDegree, dataset.MissingDegree})
		}
	}
	m.LabelType.Incomplete = true
	j := contract.Job(t, winldl.New(), nil, m, dataset.Split{})
	o := local.Options{}
	_, err := local.Run(t.Context(), j, &local.Data{Manifest: m, Shards: shards}, o)
	if err == nil || !strings.Contains(err.Error(), "the label fear is missing in every training sample") {
		t.Errorf("error %v", err)
	}
}
