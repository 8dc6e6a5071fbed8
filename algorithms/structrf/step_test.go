package structrf_test

import (
	"fmt"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/num"
)

// tellingRows makes rows of normal features. The features in telling decide the four labels.
func tellingRows(rows, features int, seed uint64, telling ...int) (*dataset.Manifest, *dataset.Data) {
	s := num.NewStream(num.NewKey(seed, "test"), 0, 0)
	r := &dataset.Rows{N: rows, Features: features, Labels: 4}
	for i := range rows {
		r.Row = append(r.Row, uint32(i))
		for range features {
			r.X = append(r.X, float32(s.Normal()))
		}
		var d [4]float32
		sum := float32(0)
		for c := range d {
			d[c] = float32(0.2 + s.Float64())
			for _, j := range telling {
				if c < 2 && r.Dense(i)[j] > 0.3 {
					d[c] += 0.4
				}
			}
			sum += d[c]
		}
		for _, v := range d {
			r.D = append(r.D, v/sum)
		}
	}
	m := &dataset.Manifest{
		Format: dataset.ManifestFormat, Rows: rows, Features: features, Labels: 4, NonZeros: int64(rows * features),
		Shards: make([]dataset.ShardRef, 1),
	}
	roles, err := dataset.Split{}.Assign(rows, nil)
	if err != nil {
		panic(err)
	}
	d := dataset.NewData(m, roles)
	d.SetShard(0, r)
	return m, d
}

// TestAdaptiveStepOnOneNode reproduces section 4.5: at a node of 10,000 samples and
// 36 features the adaptive step computes at most a five-hundredth of the gains, for
// a gain within 5 % of the best.
func TestAdaptiveStepOnOneNode(t *testing.T) {
	testkit.WithoutRace(t)
	for _, telling := range [][]int{{0}, {3}, {35}, {3, 20}, {5, 6, 7}} {
		t.Run(fmt.Sprint(telling), func(t *testing.T) {
			all, best := rootSplit(t, "exhaustive", telling)
			some, gain := rootSplit(t, "adaptive", telling)
			t.Logf("%d and %d gain evaluations (%.0f times fewer), gains %.5f and %.5f", all, some, float64(all)/float64(some),
				best, gain)
			if some*500 > all {
				t.Errorf("%d gain evaluations of %d are more than a five-hundredth", some, all)
			}
			if gain < 0.95*best || gain > best {
				t.Errorf("gain %.5f, the best is %.5f", gain, best)
			}
		})
	}
}

// rootSplit grows a tree of one split on 10,000 draws.
func rootSplit(t *testing.T, step string, telling []int) (evaluations uint64, gain float64) {
	m, d := tellingRows(10_000, 36, 1, telling...)
	set := param.Values{"trees": int64(1), "max_depth": int64(1), "sampling_ratio": 1.0, "step": step}
	tr := grow(t, jobOf(t, m, set), m, d)
	model, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	for _, tensor := range model.Tensors() {
		if tensor.Name == "gain" {
			gain = tensor.Pieces[0].F64[0]
		}
	}
	return tr.Counters()["gain_evaluations"], gain
}
