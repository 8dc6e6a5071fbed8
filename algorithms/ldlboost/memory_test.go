package ldlboost

import (
	"context"
	"runtime"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/num"
)

// liveHeap is the memory in use once what is unused is collected.
func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestMemoryOfSamples holds the estimate of what a kernel keeps of samples against what a training leaves allocated.
func TestMemoryOfSamples(t *testing.T) {
	testkit.WithoutRace(t)
	for name, c := range map[string]struct {
		features, labels int
		density          float64
		set              param.Values
	}{
		"many labels": {features: 8, labels: 24, density: 1},
		"dense":       {features: 60, labels: 3, density: 0.9, set: param.Values{"hessian": "bound"}},
		"sparse":      {features: 120, labels: 3, density: 0.1, set: param.Values{"hessian": "bound"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &problem{rows: 12_000, features: c.features, labels: c.labels}
			s := num.NewStream(num.NewKey(1, "memory"), 0, 0)
			nonZeros := int64(0)
			for range p.rows * p.features {
				x := float32(0)
				if s.Float64() < c.density {
					x, nonZeros = float32(s.Normal()), nonZeros+1
				}
				p.x = append(p.x, x)
			}
			for range p.rows * p.labels {
				p.d = append(p.d, 1/float32(p.labels))
			}
			set := param.Values{"rounds": int64(2), "bins": int64(16)}
			for k, v := range c.set {
				set[k] = v
			}
			m := p.data(4, c.density < 0.5, dataset.Split{}).Manifest
			m.NonZeros = nonZeros
			j := jobOf(t, m, set, dataset.Split{})
			d := p.data(4, c.density < 0.5, j.Split)
			d.Manifest.NonZeros = nonZeros
			tr, k := contract.Begin(t, New(), j, d.Manifest)
			none := func(uint64, round.Trainer) error { return nil }
			before := liveHeap()
			if err := engine.Drive(context.Background(), tr, 0, engine.NewLocal(k, d, 1, nil), none); err != nil {
				t.Fatal(err)
			}
			trained := liveHeap()
			estimate, demand := k.(*kernel).cfg.kept(d.Manifest), k.(*kernel).needs
			k.(round.MemoryReleaser).ReleaseMemory()
			used := trained - liveHeap()
			if estimate < used || estimate > 2*used {
				t.Errorf("the estimate is %d bytes, the kernel keeps %d", estimate, used)
			}
			if bytes, what := k.(round.Demanding).Demand(); bytes < max(trained-before, estimate) || bytes != demand ||
				what == "" {
				t.Errorf("a task demands %d bytes, training took %d", bytes, trained-before)
			}
			runtime.KeepAlive(tr)
			runtime.KeepAlive(d)
		})
	}
}

// TestMemoryOfValues: the estimate has room for the values that the bins are made from.
func TestMemoryOfValues(t *testing.T) {
	p := makeProblem(9, 4000, 4, 2)
	d := p.data(1, false, tenth)
	d.Manifest.NonZeros = int64(len(p.x))
	size := int64(len(appendValues(nil, num.Key{}, round.Task{Of: 1, Roles: dataset.Train}, d, 1)))
	c := &Config{Rounds: 1, Depth: 2, Leaves: 2, LeafRows: 1, Bins: 2, Grow: growLevel, Hessian: hessianBound}
	if f := memory(c, d.Manifest); f.Working < size {
		t.Errorf("the estimate is %d bytes, and the values have %d", f.Working, size)
	}
}
