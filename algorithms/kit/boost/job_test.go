package boost_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/ldlogitboost"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/num"
)

var split = dataset.Split{Seed: 1, TestFraction: 0.1}

// TestGoldenDigests pins the bits of small models, which do not depend on lanes, shards or storage:
// a change here is a change of round.Numerics.
func TestGoldenDigests(t *testing.T) {
	p := makeProblem(3, 300, 12, 4)
	for _, c := range []struct {
		a    algorithms.Algorithm
		set  param.Values
		want string
	}{
		{both[0], param.Values{"rounds": int64(12)}, "ec82f62ac19138ead1c080d4af7129c2346e3e94dbae79fc412118ae1944f82c"},
		{both[0], param.Values{"rounds": int64(12), "refit": false},
			"2593f9adbae099133ec31473d15efc605a2d872d83d0a9698dd2598e9e845c59"},
		{both[0], param.Values{"rounds": int64(9), "preset": "paper", "leaves": int64(40), "leaf_rows": int64(2), "l2": 0.0},
			"8a721ab8cbefb164e7533db0a5af4300e7533f6a13dab4dd704bde4504495368"},
		{both[1], param.Values{"rounds": int64(12)}, "eeaabad7631ab2342472a20c3fbeda876bdeb8a938d68a3bcb46f48a0d3b0d43"},
		{both[1], param.Values{"rounds": int64(12), "refit": false},
			"8240e5329922e54610f08739618f47913edf9cbf18cf13619e9b664f699ea741"},
		{both[1], param.Values{"rounds": int64(9), "preset": "paper", "leaves": int64(40), "leaf_rows": int64(2)},
			"d21d6b976ef7c515729670b219628764ad17de9234340f7f58888cc6a9485624"},
	} {
		for _, lanes := range []int{1, 2, 3, 4} {
			d := p.data(1<<(lanes-1), lanes%2 == 0, split)
			j := jobOf(t, c.a, d.Manifest, c.set, split)
			d = p.data(1<<(lanes-1), lanes%2 == 0, j.Split)
			if got := contract.Digest(t, c.a, train(t, c.a, j, d, lanes)); got != c.want {
				t.Errorf("%s, %v, %d lanes: digest %s, want %s", c.a.Name(), c.set, lanes, got, c.want)
			}
		}
	}
}

func sameVar(a, b round.Var) bool { return a.ID == b.ID && bytes.Equal(a.Data, b.Data) }

// TestCuts: a trainer that is restored before each round and in the middle of it, between two
// trees, and units that are computed by kernels that have seen all rounds, some or none, make the same model.
func TestCuts(t *testing.T) {
	testkit.WithoutRace(t)
	p := makeProblem(5, 150, 8, 3)
	for _, a := range both {
		t.Run(a.Name(), func(t *testing.T) {
			set := param.Values{"rounds": int64(20), "patience": int64(100), "leaves": int64(6)}
			j := jobOf(t, a, p.data(1, false, split).Manifest, set, split)
			d := p.data(4, false, j.Split)
			want := contract.Digest(t, a, train(t, a, j, d, 1))
			restored := contract.Cut(t, a, j, d.Manifest)
			newKernel := func() round.Kernel {
				_, k := contract.Begin(t, a, j, d.Manifest)
				return k
			}
			n := 0
			change := func(tr algorithms.Trainer) algorithms.Trainer {
				tr = restored(tr)
				first, err := tr.Next() // the leader changes once the round has begun
				if err != nil {
					t.Fatal(err)
				}
				next := restored(tr)
				second, err := restored(tr).Next()
				if err != nil || (first == nil) != (second == nil) || first != nil && (second.Op != first.Op ||
					!slices.EqualFunc(second.Vars, first.Vars, sameVar)) {
					t.Fatalf("round %d: the restored trainer asks for another round, error %v", n, err)
				}
				return next
			}
			tr, all := contract.Begin(t, a, j, d.Manifest)
			some := newKernel()
			tr = contract.Follow(t, change(tr), func(r *round.Round) *round.Result {
				kernels := []round.Kernel{all, newKernel(), some}
				if n%3 == 0 {
					kernels[2] = newKernel()
				}
				res := contract.Compute(t, r, d, func(unit int) round.Kernel { return kernels[(unit+n)%3] })
				again := contract.Compute(t, r, d, contract.By(all))
				for i, part := range res.Gathered {
					if !bytes.Equal(part, again.Gathered[i]) {
						t.Fatalf("round %d: unit %d has other bytes after a cache miss", n, i)
					}
				}
				n++
				return res
			}, change)
			if got := contract.Digest(t, a, tr); got != want {
				t.Errorf("digest %s after cuts, want %s", got, want)
			}
		})
	}
}

// TestEarlierRounds: a kernel that is asked for a round before the last one begins again, and gives
// the same trees; so does one whose memory was released.
func TestEarlierRounds(t *testing.T) {
	p := makeProblem(6, 120, 6, 3)
	for _, a := range both {
		j := jobOf(t, a, p.data(1, false, split).Manifest, param.Values{"rounds": int64(12), "validation_fraction": 0.0},
			split)
		d := p.data(2, true, j.Split)
		tr, k := contract.Begin(t, a, j, d.Manifest)
		var rounds []round.Round
		var parts [][][]byte
		contract.Follow(t, tr, func(r *round.Round) *round.Result {
			res := contract.Compute(t, r, d, contract.By(k))
			kept := *r
			kept.Vars = nil
			for _, v := range r.Vars {
				v.Data = bytes.Clone(v.Data)
				kept.Vars = append(kept.Vars, v)
			}
			rounds, parts = append(rounds, kept), append(parts, slices.Clone(res.Gathered))
			return res
		}, nil)
		for i, n := range []int{12, 3, 9, 10, 1, 12, 8, 7} {
			if i%3 == 2 {
				k.(round.MemoryReleaser).ReleaseMemory()
			}
			for id, part := range contract.Compute(t, &rounds[n], d, contract.By(k)).Gathered {
				if !bytes.Equal(part, parts[n][id]) {
					t.Fatalf("%s: round %d gives other trees after later ones", a.Name(), n)
				}
			}
		}
	}
}

// TestEdges: two labels, degrees of exactly 0, a label that no row has, features that do not vary and
// very few rows: training ends, and predictions are distributions.
func TestEdges(t *testing.T) {
	testkit.WithoutRace(t)
	constant := makeProblem(8, 40, 3, 3)
	for i := range constant.x {
		constant.x[i] = 2
	}
	absent := makeProblem(9, 60, 4, 3)
	for i := range absent.rows {
		label := absent.label(i)
		label[0], label[2] = label[0]+label[2], 0
	}
	sure := makeProblem(10, 60, 4, 3)
	for i := range sure.rows {
		copy(sure.label(i), []float32{0, 0, 0})
		sure.label(i)[i%2] = 1
	}
	for name, p := range map[string]*problem{
		"two labels": makeProblem(7, 80, 4, 2), "constant features": constant, "a label of no row": absent,
		"sure labels": sure, "few rows": makeProblem(11, 4, 2, 2),
	} {
		for _, a := range both {
			for _, preset := range []string{"auto", "paper"} {
				set := param.Values{"rounds": int64(60), "preset": preset, "leaf_rows": int64(1)}
				j := jobOf(t, a, p.data(1, false, dataset.Split{}).Manifest, set, dataset.Split{Seed: 1})
				d := p.data(1, false, j.Split)
				m, err := train(t, a, j, d, 1).Model()
				if err != nil {
					t.Fatal(err)
				}
				refs := d.Select(0, 1, dataset.AllRows)
				out := make([]float32, len(refs)*p.labels)
				m.Predict(out, refs, func(i uint32) *dataset.Rows { return d.Shard(int(i)) }, m.NewScratch())
				for i := range refs {
					sum := 0.0
					for _, x := range out[i*p.labels : (i+1)*p.labels] {
						sum += float64(x)
						if !(x >= 0) {
							t.Fatalf("%s, %s: a degree of %v", name, a.Name(), x)
						}
					}
					if !(sum > 1-1e-5 && sum < 1+1e-5) {
						t.Errorf("%s, %s: degrees sum to %v", name, a.Name(), sum)
					}
				}
			}
		}
	}
}

// TestLossFalls: with small steps on all rows the training loss falls every round, towards 0 where features
// tell rows apart.
func TestLossFalls(t *testing.T) {
	testkit.WithoutRace(t)
	p := makeProblem(12, 100, 9, 4)
	for _, a := range both {
		j := jobOf(t, a, p.data(1, false, dataset.Split{}).Manifest,
			param.Values{"rounds": int64(150), "validation_fraction": 0.0, "leaf_rows": int64(1), "leaves": int64(30)},
			dataset.Split{})
		d := p.data(2, false, j.Split)
		var losses []float64
		contract.Train(t, a, j, d, 1, func(tr algorithms.Trainer) algorithms.Trainer {
			if p := tr.Progress(); p.Loss >= 0 {
				losses = append(losses, p.Loss)
			}
			return tr
		})
		for i := range losses[1:] {
			if !(losses[i+1] < losses[i]) {
				t.Fatalf("%s: the loss rises from %v to %v in round %d", a.Name(), losses[i], losses[i+1], i+1)
			}
		}
		if last := losses[len(losses)-1]; !(last < losses[0]/10) {
			t.Errorf("%s: the loss falls from %v to %v only", a.Name(), losses[0], last)
		}
	}
}

// TestEarlyStopping: training ends after `patience` rounds without improvement, with the trees of the
// best validation.
func TestEarlyStopping(t *testing.T) {
	p := makeProblem(13, 200, 5, 3)
	s := num.NewStream(num.NewKey(13, "noise"), 0, 0)
	for i := range p.rows { // nothing to learn
		copy(p.label(i), []float32{0.25, 0.25, 0.5})
		p.label(i)[0] += float32(s.Float64() / 4)
		p.label(i)[1] = 0.5 - p.label(i)[0]
	}
	for _, a := range both {
		j := jobOf(t, a, p.data(1, false, dataset.Split{}).Manifest, param.Values{"patience": int64(4), "refit": false},
			dataset.Split{Seed: 2})
		d := p.data(1, false, j.Split)
		tr := train(t, a, j, d, 1)
		progress := tr.Progress()
		if progress.Step != progress.BestStep+4 || progress.Step >= 500 || progress.ValidatedAt != progress.Step ||
			progress.BestLoss > progress.Validation {
			t.Errorf("%s: progress %+v", a.Name(), progress)
		}
		trees := uint64(len(tensors(t, tr)["nodes"].U32))
		if a.Name() == ldlogitboost.Name {
			trees /= 3
		}
		if trees != progress.BestStep {
			t.Errorf("%s: the model has %d rounds, round %d was best", a.Name(), trees, progress.BestStep)
		}
	}
}

// TestRefit: the refit gives the model of a job without validation rows and with the best number of rounds.
func TestRefit(t *testing.T) {
	p := makeProblem(14, 200, 6, 3)
	for _, a := range both {
		m := p.data(1, false, split).Manifest
		j := jobOf(t, a, m, param.Values{"rounds": int64(40), "patience": int64(5), "learning_rate": 0.5}, split)
		tr := train(t, a, j, p.data(2, false, j.Split), 2)
		progress := tr.Progress()
		best := progress.BestStep
		if best == 0 || progress.Refit != best || progress.Step != progress.ValidatedAt+best ||
			progress.Steps != progress.Step {
			t.Errorf("%s: progress %+v", a.Name(), progress)
		}
		if want := 160*progress.ValidatedAt + 180*best; progress.Samples != want {
			t.Errorf("%s: %d rows were trained on, want %d", a.Name(), progress.Samples, want)
		}
		alone := jobOf(t, a, m, param.Values{"rounds": int64(best), "validation_fraction": 0.0, "learning_rate": 0.5}, split)
		got := contract.Digest(t, a, tr)
		if want := contract.Digest(t, a, train(t, a, alone, p.data(1, true, alone.Split), 1)); got != want {
			t.Errorf("%s: digest %s after the refit, %s if trained on all rows for %d rounds", a.Name(), got, want, best)
		}
	}
}

// TestRefuses: settings and results that no job has.
func TestRefuses(t *testing.T) {
	m := makeProblem(1, 30, 2, 3).data(1, false, dataset.Split{}).Manifest
	for _, a := range both {
		_, err := a.Resolve(param.Values{"leaf_rows": int64(16)}, m)
		var wrong *param.Error
		if !errors.As(err, &wrong) || wrong.Name != "leaf_rows" || !strings.Contains(err.Error(), "30 samples") {
			t.Errorf("leaves of 16 of 30 rows: error %v", err)
		}
		j := jobOf(t, a, m, nil, dataset.Split{})
		tr, err := a.NewTrainer(j, m, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tr.Next(); err != nil {
			t.Fatal(err)
		}
		if err := tr.Fold(&round.Result{Sum: &round.Partial{F64: make([]float64, 4)}}); !errors.Is(err,
			algorithms.ErrNoRows) {
			t.Errorf("no rows: error %v", err)
		}
		if err := tr.Fold(&round.Result{Sum: &round.Partial{F64: []float64{30, 10, 10, 10}}}); err != nil {
			t.Fatal(err)
		}
		for _, parts := range [][][]byte{nil, {{}, {}, {}}, {{1, 2, 3}}} {
			if err := tr.Fold(&round.Result{Gathered: parts}); err == nil {
				t.Errorf("%s: %d trees of no bytes are taken", a.Name(), len(parts))
			}
		}
		if _, err := tr.Model(); err == nil {
			t.Error("there is a model before the first round")
		}
	}
	if _, err := both[1].Resolve(param.Values{"refit": true, "validation_fraction": 0.0}, m); err == nil ||
		!strings.Contains(err.Error(), "validation_fraction above 0") {
		t.Errorf("a refit without validation: error %v", err)
	}
	if _, err := both[1].Resolve(param.Values{"l2": 1.0}, m); err == nil {
		t.Error("aoso-ldlogitboost takes l2")
	}
}
