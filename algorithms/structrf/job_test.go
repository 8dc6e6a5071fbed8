package structrf_test

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// artificial is the artificial set of Geng 2016.
func artificial(t *testing.T, rows int) *local.Data {
	t.Helper()
	m, shards := datatest.Artificial(t, rows)
	return &local.Data{Manifest: m, Shards: shards}
}

func run(t *testing.T, d *local.Data, set param.Values, split dataset.Split, lanes int) *pipeline.Outcome {
	t.Helper()
	j := jobOf(t, d.Manifest, set)
	j.Split = split
	j.Folds = split.Folds
	o, err := local.Run(t.Context(), j, d, local.Options{Lanes: lanes})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestGoldenDigests pins the bits of small forests: a change here is a change of
// algorithms.Numerics.
func TestGoldenDigests(t *testing.T) {
	d := artificial(t, 400)
	split := dataset.Split{Seed: 1, TestFraction: 0.1}
	for _, c := range []struct {
		set  param.Values
		want string
	}{
		{param.Values{"preset": "paper", "trees": int64(4)},
			"f999de43b150531590dbaa2e80930c915d0271738fc67324bef19f606113c46c"},
		{param.Values{"preset": "paper", "trees": int64(4), "step": "adaptive"},
			"4145403b56859d52189873ad4ded2b65a80eee3978d5525e55309b4199a9ab27"},
		{param.Values{"trees": int64(4), "features": "0.5", "min_samples": int64(2)},
			"003d32c5972501b4d1ac1742a91b56f888a2c6b32559cb18f05942a8ac024e50"},
		{param.Values{"trees": int64(4)}, "48ea7214821c512f17cb1e3c1f2b6dbf4ae5a1986a1883e3c7d767893cf2430c"},
		{param.Values{"trees": int64(4), "step": "adaptive"},
			"cd3dc714661d372652257a55b77514e5275900de4e3439b89a79bcde10051df5"},
		{param.Values{"trees": int64(4), "step": "adaptive", "alpha": 0.5, "beta": 4.0},
			"5873fd4b7112b1aebf9ff3ed2794a5281831a82463fc84f942b6e99f95dab3aa"},
	} {
		one, three := run(t, d, c.set, split, 1), run(t, d, c.set, split, 3)
		if one.ModelDigest != three.ModelDigest {
			t.Errorf("%v: lanes change the digest", c.set)
		}
		if one.ModelDigest != c.want {
			t.Errorf("%v: digest %s, want %s", c.set, one.ModelDigest, c.want)
		}
	}
}

// TestManyRows pins the bits of a tree of so many rows that inner growers grow its subtrees.
func TestManyRows(t *testing.T) {
	testkit.WithoutRace(t)
	if testing.Short() {
		t.Skip("many rows: not with -short")
	}
	const want = "87ad1e6e56f644d33ec419e8edb08eb7b6f206a7f0b925afc3ad4a0ef843202c"
	o := run(t, artificial(t, 150_000), param.Values{"preset": "paper", "trees": int64(1)},
		dataset.Split{Seed: 1, TestFraction: 0.1}, 1)
	if o.ModelDigest != want {
		t.Errorf("digest %s, want %s", o.ModelDigest, want)
	}
}

// TestLearns: on the artificial set a forest explains most of what the mean does
// not, its counters arrive in the outcome, and the model file gives it back.
func TestLearns(t *testing.T) {
	d := artificial(t, 1000)
	o := run(t, d, param.Values{"preset": "paper"}, dataset.Split{Seed: 1, TestFraction: 0.1}, 2)
	kl, mean := get(t, o.Measures, "kl").Mean, get(t, o.MeanPredictor, "kl").Mean
	t.Logf("K-L %.5f, of the mean %.5f", kl, mean)
	if kl > mean/10 {
		t.Errorf("K-L %.5f, of the mean %.5f", kl, mean)
	}
	if o.Counters["gain_evaluations"] == 0 || o.Steps != 50 || o.Samples != 50*720 {
		t.Errorf("counters %v, %d steps, %d samples", o.Counters, o.Steps, o.Samples)
	}
	f, m, err := registry.Model(o.Model)
	if err != nil {
		t.Fatal(err)
	}
	if f.Algorithm != "structrf" || f.Digest != o.ModelDigest {
		t.Errorf("a model of %s with digest %s", f.Algorithm, f.Digest)
	}
	if text, err := m.(interface {
		TreeText(n int, features, labels []string) (string, error)
	}).TreeText(49, []string{"a", "b", "c"}, nil); err != nil || !strings.Contains(text, " < ") {
		t.Errorf("error %v, tree\n%s", err, text)
	}
}

// TestFolds: each fold is the job run alone on its rows, and counters are summed.
func TestFolds(t *testing.T) {
	d := artificial(t, 300)
	set := param.Values{"trees": int64(3)}
	all := run(t, d, set, dataset.Split{Seed: 1, Folds: 3}, 2)
	sum := uint64(0)
	for i, f := range all.Folds {
		j := jobOf(t, d.Manifest, set)
		j.Split = dataset.Split{Seed: 1, Folds: 3, Fold: i}
		alone, err := local.Run(t.Context(), j, d, local.Options{Lanes: 1})
		if err != nil {
			t.Fatal(err)
		}
		if alone.ModelDigest != f.ModelDigest {
			t.Errorf("fold %d has another digest alone", i)
		}
		sum += f.Counters["gain_evaluations"]
	}
	if len(all.Folds) != 3 || sum == 0 || all.Counters["gain_evaluations"] != sum {
		t.Errorf("%d folds with %d gain evaluations, %v in all", len(all.Folds), sum, all.Counters)
	}
}
